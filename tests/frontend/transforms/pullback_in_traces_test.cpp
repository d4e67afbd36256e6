// Pullbacks of functions that were recorded in eager mode, called in other recordings: loops with
// memory policies, checkpointed and jitted functions. The dims of the one recording are symbols of
// the other.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "reel/reel.h"
#include "reel/tests/frontend/policies/policies.h"

namespace reel {
namespace {

using Function = std::function<Tensor(const Tensor&)>;

/// Functions of a vector that eager mode records. Each sums over steps of another dim.
std::vector<std::pair<std::string, std::function<Function(const Dim& steps)>>>
recorded_functions() {
  const auto looped = [](LoopPolicy policy) {
    return [policy](const Dim& steps) -> Function {
      return [=](const Tensor& x) {
        const auto body = [](const Tensor& k, const Tensor& s) {
          const Tensor next = sin(s * k) + s;
          return std::pair{next * s, next};
        };
        const auto result = scan(Scan{.spatial_dim = steps,
                                      .initial = x,
                                      .xs = range(steps, f64) * 0.25 + 0.5,
                                      .body = body,
                                      .checkpoint = policy.checkpoint,
                                      .swap_memory = policy.swap_memory});
        return sum(result.ys, steps) + result.state;
      };
    };
  };
  const auto as_jitted = [=](const Dim& steps) -> Function { return jit(looped({})(steps)); };
  const auto as_checkpointed = [=](const Dim& steps) -> Function {
    return checkpoint(looped({})(steps));
  };
  return {{"a loop", looped({})},
          {"a loop with checkpoints", looped({Checkpoint::every(2)})},
          {"a loop in a file", looped({{}, true})},
          {"a jitted function", as_jitted},
          {"a checkpointed function", as_checkpointed}};
}

using State = std::pair<Tensor, Tensor>;
using Step = std::function<State(const State&)>;

/// Recordings in eager mode that apply a step three times.
std::vector<std::pair<std::string, std::function<State(const Step&, const State&)>>> recordings() {
  const auto looped = [](LoopPolicy policy) {
    return [policy](const Step& step, const State& first) {
      return fori_loop(0, 3, [&](const Tensor&, const State& s) { return step(s); }, first,
                       {.checkpoint = policy.checkpoint, .swap_memory = policy.swap_memory});
    };
  };
  const auto thrice = [](const auto& step, const State& first) -> State {
    return step(step(step(first)));
  };
  const auto as_jitted = [=](const Step& step, const State& first) {
    return thrice(jit(step), first);
  };
  const auto as_checkpointed = [=](const Step& step, const State& first) {
    return thrice(checkpoint(step), first);
  };
  return {{"C++", thrice},
          {"a loop", looped({})},
          {"a loop with checkpoints", looped({Checkpoint::every(2)})},
          {"a loop in a file", looped({{}, Spill{.bytes_in_memory = 1}})},
          {"a jitted function", as_jitted},
          {"a checkpointed function", as_checkpointed}};
}

/// Returns a function of x that takes the pullback of f at x and calls it in the recording.
Function calling_pullback(const Function& f,
                          const std::function<State(const Step&, const State&)>& recording) {
  return [=](const Tensor& x) {
    const auto [y, pull] = vjp(f, x);
    const Step step = [&pull = pull](const State& s) {
      return State{tanh(s.first), s.second + pull(s.first)};
    };
    return sum(sin(recording(step, {y, pull(y)}).second));
  };
}

TEST(PullbackInTracesTest, RecordedFunctionsArePulledBackInOtherRecordings) {
  manual_seed(3);
  const Dim batch("batch", 2), features("features", 3), steps("steps", 3);
  const Dim time("time", tensor({2, 1}, {batch}));
  for (const auto& dims : {Dims{batch}, Dims{batch, features}, Dims{batch, time}}) {
    const Tensor x = mask_padding(random_normal(dims, f64));
    const Tensor v = mask_padding(random_normal(dims, f64));
    for (const auto& [f_name, make] : recorded_functions()) {
      const Function f = make(steps);
      const Function expected = calling_pullback(f, recordings()[0].second);
      for (const auto& [name, recording] : recordings()) {
        SCOPED_TRACE(str(f_name, " in ", name, ", ", x.type()));
        const Function actual = calling_pullback(f, recording);
        expect_all_close(actual(x), expected(x), 1e-12);
        expect_all_close(grad(actual)(x), grad(expected)(x), 1e-12);
        expect_all_close(hvp(actual, x, v), hvp(expected, x, v), 1e-12);
      }
    }
  }
}

}  // namespace
}  // namespace reel
