// Memory policies in nested loops that are ragged, of unknown length and draw random numbers.
#include <gtest/gtest.h>

#include "reel/tests/frontend/policies/policies.h"
#include "reel/trace/executors/spill/spilled.h"

namespace reel {
namespace {

class PoliciesTogetherTest : public UnderPolicies {
 protected:
  /// A loss over a ragged batch; an inner loop draws random numbers and ends by a condition on its
  /// state.
  static auto loss(const Tensor& x, const LoopPolicy& outer, const LoopPolicy& inner) {
    return [=](const Tensor& w) {
      const Dim batch = x.dim("batch"), time = x.dim("time");
      const auto body = [&](const Tensor& x, const Tensor& h) {
        using State = std::pair<Tensor, Tensor>;
        const auto goes_on = [](const State& s) { return sum(s.first) < 6.0; };
        const auto step = [&](const State& s) {
          const Tensor noise = random_uniform({batch}, 0.5, 1.5, f64);
          const Tensor next = tanh(sin(s.second * w) * noise + x);
          return State{s.first + square(next) + 0.7, next};
        };
        const Tensor next =
            while_loop(goes_on, step, State{zeros({batch}, f64), h},
                       {.checkpoint = inner.checkpoint, .swap_memory = inner.swap_memory})
                .second;
        return std::pair{next, next + h * 0.1};
      };
      const auto made = scan(Scan{.spatial_dim = time,
                                  .initial = zeros({batch}, f64),
                                  .xs = x,
                                  .body = body,
                                  .checkpoint = outer.checkpoint,
                                  .swap_memory = outer.swap_memory});
      return sum(square(made.ys)) + sum(made.state);
    };
  }
  static Tensor ragged() {
    manual_seed(5);
    const Dim batch("batch", 3), time("time", tensor({6, 2, 5}, {batch}));
    return random_normal({time, batch}, f64);
  }
  static std::vector<LoopPolicy> loop_policies() {
    const SavingRule rule = [](const StepValue& v) {
      return v.op == "sin"    ? Saving::recompute
             : v.op == "tanh" ? Saving::spill
                              : Saving::by_default;
    };
    std::vector<LoopPolicy> result;
    for (const Checkpoint& over_time :
         {Checkpoint(), Checkpoint::every(2), Checkpoint::budget(300)})
      for (const bool has_rule : {false, true})
        for (const bool swaps : {false, true})
          result.push_back({has_rule ? over_time.where(rule) : over_time, swaps});
    return result;
  }
};

// Finished entries must not contribute to the gradient, although running entries have read them.
// Recomputed iterations must respect this as well.
TEST_P(PoliciesTogetherTest, SecondGradientsTakeNothingFromFinishedEntries) {
  const Dim batch("batch", 3), time("time", tensor({6, 1, 4}, {batch}));
  const Tensor x = cast(ones({batch, time}), f64) * 0.4, w = scalar(0.7, f64);
  const auto make = [&](const Checkpoint& policy) {
    return [&, policy](const Tensor& w) {
      const auto body = [&](const Tensor& x, const Tensor& h) {
        return std::pair{None{}, tanh(h * w + x) + sum(h * h, batch) * w * 0.1};
      };
      return sum(scan(Scan{.spatial_dim = time,
                           .initial = full({batch}, 0.5, f64),
                           .xs = x,
                           .body = body,
                           .checkpoint = policy})
                     .state);
    };
  };
  expect_same_second_gradients(make, w);
  const auto first = [&](double at) { return grad(make({}))(scalar(at, f64)).item<double>(); };
  const double difference = (first(0.7 + 1e-5) - first(0.7 - 1e-5)) / 2e-5;
  const auto second =
      grad([&](const Tensor& w) { return grad(make(Checkpoint::every(2)))(w) * 1.0; });
  EXPECT_NEAR(run(second)(w).item<double>(), difference, 1e-6 * std::abs(difference));
}

TEST_P(PoliciesTogetherTest, GradientsAreThoseOfKeepingAll) {
  const Tensor x = ragged(), w = scalar(0.8, f64);
  const auto gradient = [&](const LoopPolicy& outer, const LoopPolicy& inner) {
    manual_seed(17);
    return run(value_and_grad(loss(x, outer, inner)))(w);
  };
  const auto expected = gradient({}, {});
  SmallSpillBlocks blocks;
  const std::vector<LoopPolicy> all = loop_policies();
  for (std::size_t k = 0; k < all.size(); ++k) {
    const LoopPolicy &outer = all[k], &inner = all[(5 * k + 3) % all.size()];
    SCOPED_TRACE(str("outer ", k, ", inner ", (5 * k + 3) % all.size()));
    const auto actual = gradient(outer, inner);
    expect_same_bits(actual.first, expected.first);
    expect_same_bits(actual.second, expected.second);
  }
  EXPECT_GT(blocks.written(), 0);
}

TEST_P(PoliciesTogetherTest, SecondGradientsAreThoseOfKeepingAll) {
  const Tensor x = ragged(), w = scalar(0.8, f64);
  const auto second = [&](const LoopPolicy& outer, const LoopPolicy& inner) {
    manual_seed(17);
    const auto first = grad(loss(x, outer, inner));
    return run(grad([&](const Tensor& w) { return square(first(w)); }))(w);
  };
  const Tensor expected = second({}, {});
  SmallSpillBlocks blocks;
  const std::vector<LoopPolicy> all = loop_policies();
  for (std::size_t k = 0; k < all.size(); ++k) {
    SCOPED_TRACE(str("outer ", k));
    expect_all_close(second(all[k], all[(5 * k + 3) % all.size()]), expected, 1e-11);
  }
  EXPECT_GT(blocks.written(), 0);
}
REEL_IN_EVERY_MODE(PoliciesTogetherTest);

}  // namespace
}  // namespace reel
