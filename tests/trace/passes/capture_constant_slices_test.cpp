// Stacks with equal elements in all iterations: the loop that reads them captures one element.
#include "reel/trace/passes/hoisting/capture_constant_slices.h"

#include <gtest/gtest.h>

#include "reel/core/ops/loop/loop.h"
#include "reel/reel.h"
#include "reel/tests/check.h"
#include "reel/trace/passes/hoisting/batch_across_iterations.h"
#include "reel/trace/passes/pipeline.h"

namespace reel {
namespace {

/// Returns the numbers of slices and captures of each loop, in order.
std::vector<std::pair<int, int>> loops(const Graph& graph) {
  std::vector<std::pair<int, int>> result;
  for (const OpRecord& record : graph.records) {
    if (record.op != &loop_op) continue;
    const auto& loop = get<LoopAttrs>(record.attrs.get());
    result.emplace_back(static_cast<int>(loop.slices.size()),
                        static_cast<int>(loop.body_captures.size()));
  }
  return result;
}

TEST(ConstantSlicesTest, SlicesOfEqualElementsBecomeCaptures) {
  const auto f = [](Tensor x, Tensor w) {
    const auto ys = scan(Scan{.xs = x, .body = [&](Tensor x) { return std::pair{w, x + 1}; }}).ys;
    const auto body = [](std::pair<Tensor, Tensor> wx, Tensor s) {
      const Tensor y = tanh(matmul(s, wx.first) * wx.second);
      return std::pair{y, y};
    };
    return sum(scan(Scan{.initial = ones({2, 3}), .xs = ys, .body = body}).ys);
  };
  manual_seed(4);
  const Tensor x = random_normal({5, 2, 3}), w = random_normal({3, 3});
  const auto jitted = jit(f);
  const Tensor y = jitted(x, w);
  const Ref<Graph> before = batch_across_iterations(jitted.graph()),
                   after = capture_constant_slices(*before);
  EXPECT_EQ(loops(*after).back().first, loops(*before).back().first - 1);
  EXPECT_EQ(loops(*after).back().second, loops(*before).back().second + 1);
  // The stack is removed together with its last reader.
  const Ref<Graph> rest = optimise(Ref<Graph>(new Graph(*after))).graph;
  for (const TensorType& type : rest->types) EXPECT_NE(type, TensorType(f32, {5, 3, 3}));
  expect_all_close(y, f(x, w), 1e-5);
}

TEST(ConstantSlicesTest, SlicesThatCountTheStepsStay) {
  // The stack consists of the captured n. Its length is known only at run time and may be zero.
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
