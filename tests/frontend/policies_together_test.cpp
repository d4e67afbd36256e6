// Policies of loops in loops, ragged ones, of unknown length, whose bodies draw, all at once; and
// of long loops that a plan runs in chunks.
#include <gtest/gtest.h>

#include "reel/tests/frontend/policies.h"
#include "reel/trace/executors/spilled.h"

namespace reel {
namespace {

struct LoopPolicy {
  Checkpoint checkpoint = {};
  SwapMemory swap_memory = false;
};

class PoliciesTogetherTest : public UnderPolicies {
 protected:
  /// Over a ragged batch; inside, until what was computed says so, with random numbers.
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
                       {.swap_memory = inner.swap_memory, .checkpoint = inner.checkpoint})
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
    expect_all_close(actual.second, expected.second, is_exact() ? 0 : 1e-13);
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

/// An LSTM over so many steps, in f32.
struct LongRun {
  LstmCell cell;
  Tensor x;
};
auto long_loss(const LoopPolicy& policy) {
  return [policy](const LongRun& run) {
    const auto body = [&](const Tensor& x, const LstmCell::State& state) {
      const LstmCell::State next = run.cell(x, state).second;
      return std::pair{sum(square(next.h)), next};
    };
    return sum(scan(Scan{.spatial_dim = run.x.dim("time"),
                         .initial = run.cell.initial_state({run.x.dim("batch")}),
                         .xs = run.x,
                         .body = body,
                         .checkpoint = policy.checkpoint,
                         .swap_memory = policy.swap_memory})
                   .ys);
  };
}

template <class T>
void expect_same_leaves(const T& actual, const T& expected) {
  const TreeLeaves all = flatten(expected), mine = flatten(actual);
  for (std::size_t i = 0; i < all.size(); ++i)
    if (all[i].kind == TreeLeaf::Kind::tensor) expect_same_bits(mine[i].tensor, all[i].tensor);
}

// Chunks are cut from the first step on, whatever the policy: sums over steps add up the same terms
// in the same order.
TEST(PoliciesInChunksTest, GradientsHaveTheBitsOfKeepingAll) {
  const Dim batch("batch", 4), in("in", 8);
  for (const Dim& time : {Dim("time", 1000), Dim("time", 97),  // two chunks, of 49 steps and of 48
                          Dim("time", tensor({320, 1000, 17, 700}, {batch})),
                          Dim("time", tensor({0, 97, 1, 60}, {batch}))}) {
    manual_seed(4);
    const LongRun at{LstmCell::init(in, Dim("hidden", 32)), random_normal({time, batch, in})};
    const auto keeps_all = jit(value_and_grad(long_loss({})));
    const auto [value, gradient] = keeps_all(at);
    ASSERT_NE(keeps_all.explain().find(" chunk"), std::string::npos) << keeps_all.explain();
    SmallSpillBlocks blocks;
    for (const LoopPolicy& policy :
         {LoopPolicy{Checkpoint::every(1)}, LoopPolicy{Checkpoint::every(200)},
          LoopPolicy{Checkpoint::budget(40'000)}, LoopPolicy{Checkpoint::budget(400'000)},
          LoopPolicy{{}, true}, LoopPolicy{Checkpoint::every(100), true}}) {
      SCOPED_TRACE(str(time, ' ', time.size(), ", ", text_of(policy.checkpoint),
                       policy.swap_memory.spill() ? ", in a file" : ""));
      const auto f = jit(value_and_grad(long_loss(policy)));
      const auto actual = f(at);
      EXPECT_NE(f.explain().find(" chunk"), std::string::npos) << f.explain();
      expect_same_bits(actual.first, value);
      expect_same_leaves(actual.second, gradient);
      if (policy.swap_memory.spill() && time.size() == 1000) {
        EXPECT_GT(blocks.written(), 0);
      }
    }
  }
}

/// An RNN over plain dims, or over entries that end: rows enough to be cut into blocks.
struct WideRun {
  Tensor in, recurrent, x;
};
auto wide_loss(const LoopPolicy& policy) {
  return [policy](const WideRun& run) {
    const bool is_named = run.x.type().is_named();
    const Dim rows = run.x.dims()[1], from = run.x.dims()[2], unit = run.in.dims()[1];
    const auto times = [&](const Tensor& a, const Tensor& b, const Dim& dim) {
      return is_named ? matmul(a, b, dim) : matmul(a, b);
    };
    const Dim before = run.recurrent.dims()[0];
    const auto body = [&](const Tensor& x, const Tensor& h) {
      const Tensor sum = times(x, run.in, from) + times(h, run.recurrent, before);
      const Tensor next = is_named ? rename(tanh(sum), unit, before) : tanh(sum);
      return std::pair{sin(next), next};
    };
    const Dims state{rows, before};
    return sum(square(scan(Scan{.spatial_dim = run.x.dims()[0],
                                .initial = zeros(state),
                                .xs = run.x,
                                .body = body,
                                .checkpoint = policy.checkpoint,
                                .swap_memory = policy.swap_memory})
                          .ys));
  };
}

TEST(PoliciesInChunksTest, RowsOfEntriesThatEndAndPlainLengthsWithoutADivisorHaveThemToo) {
  SmallSpillBlocks blocks;
  for (const bool is_named : {true, false}) {
    manual_seed(4);
    const std::int64_t steps = 131, rows = 20, units = 128;
    std::vector<std::int64_t> lengths;
    for (std::int64_t row = 0; row < rows; ++row) lengths.push_back((row * 37 + 131) % 132);
    const Dim batch = is_named ? Dim("batch", rows) : Dim(rows),
              time = is_named ? Dim("time", tensor(lengths, {batch})) : Dim(steps),
              in = is_named ? Dim("in", 8) : Dim(8),
              unit = is_named ? Dim("unit", units) : Dim(units),
              before = is_named ? Dim("before", units) : Dim(units);
    const WideRun at{random_normal({in, unit}), random_normal({before, unit}) * 0.1,
                     random_normal({time, batch, in})};
    const auto [value, gradient] = jit(value_and_grad(wide_loss({})))(at);
    for (const LoopPolicy& policy :
         {LoopPolicy{Checkpoint::every(1)}, LoopPolicy{Checkpoint::every(50)},
          LoopPolicy{Checkpoint::budget(2'000'000)}, LoopPolicy{{}, true},
          LoopPolicy{Checkpoint::every(100), true}})
      for (const int count : {1, 2}) {
        SCOPED_TRACE(str(time, ", ", text_of(policy.checkpoint),
                         policy.swap_memory.spill() ? ", in a file, " : ", ", count, " threads"));
        const int threads_before = threads();
        set_threads(count);
        const auto actual = jit(value_and_grad(wide_loss(policy)))(at);
        set_threads(threads_before);
        expect_same_bits(actual.first, value);
        expect_same_leaves(actual.second, gradient);
      }
  }
  EXPECT_GT(blocks.written(), 0);
}

}  // namespace
}  // namespace reel
