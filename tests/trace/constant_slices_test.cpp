// What every step of a forward loop saved alike is captured by the gradient's loop.
#include "reel/trace/passes/constant_slices.h"

#include <gtest/gtest.h>

#include "reel/core/ops/loop.h"
#include "reel/reel.h"
#include "reel/tests/check.h"
#include "reel/trace/passes/batch_over_time.h"
#include "reel/trace/passes/pipeline.h"

namespace reel {
namespace {

/// Slices and captures of each loop, in order.
std::vector<std::pair<int, int>> loops(const Graph& graph) {
  std::vector<std::pair<int, int>> result;
  for (const OpRecord& record : graph.records) {
    if (record.op != &loop_op) continue;
    const auto& loop = get<LoopAttrs>(record.attrs.get());
    result.emplace_back(loop.slices, static_cast<int>(loop.body_captures.size()));
  }
  return result;
}

TEST(ConstantSlicesTest, PartsOfAWeightAreNotSavedStepByStep) {
  const auto f = [](Tensor x, Tensor w) {
    const auto body = [&](Tensor x, Tensor s) {
      const auto [a, b] = split<2>(w, 1);
      const Tensor y = tanh(matmul(s, a) * x + matmul(tanh(matmul(s, b)), a));
      return std::pair{y, y};
    };
    return sum(scan(Scan{.initial = ones({2, 3}), .xs = x, .body = body}).ys);
  };
  manual_seed(4);
  const Tensor x = random_normal({5, 2, 3}), w = random_normal({3, 6});
  const auto gradient = [f](Tensor x, Tensor w) {
    return grad([&](std::pair<Tensor, Tensor> xw) { return f(xw.first, xw.second); })(
        std::pair{x, w});
  };
  const auto jitted = jit(gradient);
  const auto [dx, dw] = jitted(x, w);
  const Ref<Graph> before = batch_over_time(jitted.graph()), after = constant_slices(*before);
  EXPECT_EQ(loops(*after)[1].first, loops(*before)[1].first - 2);
  EXPECT_EQ(loops(*after)[1].second, loops(*before)[1].second + 2);
  // The stacks are gone with who read them.
  const Ref<Graph> rest = optimise(Ref<Graph>(new Graph(*after))).graph;
  for (const TensorType& type : rest->types) EXPECT_NE(type, TensorType(f32, {5, 3, 3}));
  const auto [eager_dx, eager_dw] = gradient(x, w);
  expect_all_close(dx, eager_dx, 1e-5);
  expect_all_close(dw, eager_dw, 1e-5);
}

TEST(ConstantSlicesTest, SlicesThatCountTheStepsStay) {
  // The stack is of the captured n alone, and only a run knows how long it is: no step.
  const auto f = [](Tensor x, Tensor n) {
    const auto first = scan(Scan{.xs = x,
                                 .cond = [](None) { return full({}, true, boolean); },
                                 .body = [&](Tensor) { return n; }});
    const auto body = [](Tensor, Tensor) { return std::pair{None{}, full({}, 0.5, f64)}; };
    return scan(Scan{.initial = scalar(0., f64), .xs = first.ys, .body = body, .max_seq_len = n})
        .state;
  };
  const Tensor n = scalar(1, i32);
  expect_values(jit(f)(zeros({0}), n), {0});
  expect_values(jit(f)(zeros({3}), n), {.5});
}

}  // namespace
}  // namespace reel
