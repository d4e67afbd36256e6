// Higher derivatives of loops with a growing state: iterations have values of different sizes.
#include <gtest/gtest.h>

#include <functional>

#include "reel/tests/frontend/policies/policies.h"
#include "reel/trace/executors/spill/spilled.h"

namespace reel {
namespace {

using Function = std::function<Tensor(const Tensor&)>;

class GrowingDerivativesTest : public UnderPolicies {
 protected:
  /// Returns x -> the sum of sines of f's gradient.
  static Function slope(const Function& f) {
    return [f](const Tensor& x) { return sum(sin(grad(f)(x))); };
  }
  static std::vector<std::pair<const char*, LoopPolicy>> loop_policies() {
    const auto spills = [](const StepValue&) { return Saving::spill; };
    return {{"in a file", {{}, true}},
            {"spill", {Checkpoint().where(spills)}},
            {"every 1", {Checkpoint::every(1)}},
            {"budget 1", {Checkpoint::budget(1)}},
            {"every 1, in a file", {Checkpoint::every(1), true}}};
  }
};
REEL_IN_EVERY_MODE(GrowingDerivativesTest);

/// Returns the sum of x and of a history that a loop makes. `start` is its dim, of size 1.
Tensor with_history(const Tensor& x, const Dim& start, const LoopPolicy& policy) {
  const auto body = [&](const Tensor& i, const Tensor& frames, const Dim& before) {
    const auto [longer, hist] =
        cum_concat(x * 0.5 + sum(square(frames), before), tanh(frames), before);
    return std::tuple{i + 1, longer, hist};
  };
  const auto [i, frames, hist] =
      while_loop([](const Tensor& i, const Tensor&, const Dim&) { return i < 3; }, body,
                 std::tuple{scalar(0), full({x.dims()[0], start}, 0.25, f64), start},
                 {.checkpoint = policy.checkpoint, .swap_memory = policy.swap_memory});
  return x + sum(frames, hist);
}

// A loop of no iteration reads the history: residuals have no cotangent, and zeros have their
// sizes.
TEST_P(GrowingDerivativesTest, PoliciesAgreeIfNoSecondDerivativeReachesTheHistory) {
  const Dim time("time", 2);
  const Tensor x = tensor({.3, -.4}, {time}, f64);
  for (const bool is_static : {false, true}) {
    const auto make = [=](const LoopPolicy& policy) -> Function {
      return [=](const Tensor& x) -> Tensor {
        const Dim start = is_static ? Dim("hist", 1) : Dim("hist", scalar(1));
        const Tensor read = with_history(x, start, policy);
        return sum(
            sin(while_loop([](const Tensor&) { return true; }, [&](const Tensor&) { return read; },
                           x, {.maximum_iterations = full({}, 0, i32)})));
      };
    };
    const Tensor expected = grad(slope(make({})))(x), third = grad(slope(slope(make({}))))(x);
    const SmallSpillBlocks blocks;
    for (const auto& [name, policy] : loop_policies()) {
      SCOPED_TRACE(str(name, is_static ? ", one size" : ""));
      const Function f = make(policy), called = [g = run(f)](const Tensor&x) { return g(x); };
      expect_all_close(run(grad(slope(f)))(x), expected, 1e-12);
      expect_all_close(grad(slope(called))(x), expected, 1e-12);
      expect_all_close(grad(slope(slope(called)))(x), third, 1e-12);
    }
  }
}

struct History {
  Tensor frames;
  Dim hist;
};
/// Returns the square of x³ for each iteration and frame so far: 5 x⁶ in two iterations.
Function sum_of_histories(const Dim& start) {
  return [=](const Tensor& x) -> Tensor {
    const auto body = [&](const History& s) {
      const auto [frames, hist] = cum_concat(x, s.frames, s.hist);
      return std::pair{sum(frames * frames * frames, hist), History{frames, hist}};
    };
    const auto made = scan(Scan{.spatial_dim = Dim("time", 2),
                                .initial = History{zeros({x.dims()[0], start}, f64), start},
                                .body = body});
    return sum(made.ys * made.ys);
  };
}

// In higher gradients a loop may take residuals over hist + 1 without any value that knows hist.
TEST_P(GrowingDerivativesTest, FourthOfAHistoryOfAScan) {
  const Dim batch("batch", 2);
  const Tensor x = tensor({1., 2.}, {batch}, f64), fourth = tensor({1800., 7200.}, {batch}, f64);
  const auto along = [](const Function& f) -> Function {
    return [f](const Tensor& x) { return sum(grad(f)(x)); };
  };
  for (const Dim& start : {Dim("hist", 0), Dim("hist", zeros({batch}, i32))}) {
    SCOPED_TRACE(str(start));
    const Function f = sum_of_histories(start), second = along(along(f));
    expect_all_close(run(grad(along(second)))(x), fourth, 1e-12);
    const Function called = [g = run(second)](const Tensor& x) { return g(x); };
    expect_all_close(grad(along(called))(x), fourth, 1e-12);
  }
}

}  // namespace
}  // namespace reel
