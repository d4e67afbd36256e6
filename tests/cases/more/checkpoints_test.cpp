// Gradients under checkpoints and with cuts, after rows L2, L4 and L8 of the further cases.
#include "reel/tests/gradients.h"
#include "reel/tests/modes.h"
#include "reel/trace/executors/checkpoints/recomputed_residuals.h"

namespace reel {
namespace {

class MoreCheckpoints : public InEveryMode {
 protected:
  /// Returns y squared three times, by a scan without xs.
  static auto to_the_eighth(const Checkpoint& policy) {
    return [policy](const Tensor& y) {
      const auto body = [](const Tensor& k, const std::pair<Tensor, Tensor>& s) {
        return std::pair{None{}, std::pair{s.first + k, s.second * s.second}};
      };
      return scan(Scan{.initial = std::pair{scalar(0.0, f64), y},
                       .xs = ones({3}, f64),
                       .body = body,
                       .checkpoint = policy})
          .state.second;
    };
  }
};
REEL_IN_EVERY_MODE(MoreCheckpoints);

TEST_P(MoreCheckpoints, L8_SecondOrderThroughACheckpointedScan) {
  for (const Checkpoint& policy :
       {Checkpoint(), Checkpoint::every(1), Checkpoint::every(2), Checkpoint::budget(1)}) {
    const auto f = to_the_eighth(policy);
    const Tensor y = scalar(1.1, f64);
    EXPECT_NEAR(run(f)(y).item<double>(), 2.14358881, 1e-8);
    EXPECT_NEAR(run(grad(f))(y).item<double>(), 15.58973681, 1e-7);
    EXPECT_NEAR(run(grad(grad(f)))(y).item<double>(), 99.207416, 1e-5);
    EXPECT_NEAR(run(grad(grad(grad(f))))(y).item<double>(), 541.131360, 1e-4);  // 336 y^5
  }
}

TEST_P(MoreCheckpoints, L2_EverySlotCountGivesTheSameBits) {
  const Tensor x = random_normal({60}, f64);
  const auto f = [&](int steps, const Checkpoint& policy) {
    return run(grad([&x, steps, policy](const Tensor& w) {
      const auto body = [&](const Tensor& k, const Tensor& h) {
        const Tensor next = sin(h * w + gather(x, k, 0));
        return std::pair{next, next};
      };
      return sum(scan(Scan{.initial = scalar(0.3, f64),
                           .xs = range(steps),
                           .body = body,
                           .checkpoint = policy})
                     .ys);
    }));
  };
  const Tensor w = scalar(1.3, f64);
  for (const int steps : {1, 2, 3, 5, 8, 12, 24, 60}) {
    const Tensor expected = f(steps, {})(w);
    for (int slots = 1; slots <= 12; ++slots) {
      SCOPED_TRACE(str(steps, " steps, ", slots, " slots"));
      const RecomputedSteps before = recomputed_steps();
      // A state takes eight bytes and its number sixteen; half of the budget is for states.
      expect_same_bits(f(steps, Checkpoint::budget(48 * slots))(w), expected);
      EXPECT_EQ(recomputed_steps().saved - before.saved, steps);
    }
  }
}

TEST_P(MoreCheckpoints, L4_CutEverywhereIsTheGradientOfOneStep) {
  const Tensor x = random_normal({6}, f64), w = scalar(0.7, f64);
  const auto f = [&](std::int64_t truncate) {
    return run(grad([&x, truncate](const Tensor& w) {
      const auto body = [&](const Tensor& x, const Tensor& h) {
        const Tensor next = tanh(h * w + x);
        return std::pair{next, next};
      };
      return sum(
          scan(Scan{.initial = scalar(0.2, f64), .xs = x, .body = body, .truncate = truncate}).ys);
    }));
  };
  double h = 0.2, of_one_iteration = 0;
  for (const double at : x.to_vector<double>()) {
    const double next = std::tanh(h * 0.7 + at);
    of_one_iteration += (1 - next * next) * h;
    h = next;
  }
  EXPECT_NEAR(f(1)(w).item<double>(), of_one_iteration, 1e-12);
  for (const int k : {6, 7, 100}) expect_same_bits(f(k)(w), f(0)(w));
}

}  // namespace
}  // namespace reel
