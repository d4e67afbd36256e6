// Loops and conds as nodes that pass tokens: which nodes there are, and how they are connected.
#include "reel/trace/executors/dataflow/lowered.h"

#include "reel/core/graph_builder.h"
#include "reel/reel.h"
#include "reel/tests/check.h"

namespace reel {
namespace {

template <class F>
LoweredGraph lowered(const std::vector<TensorType>& types, F&& f) {
  return lower(record_graph("f", types, f).graph);
}

const std::vector<TensorType> kTwoNumbers{TensorType(i32), TensorType(i32)};

/// while a < n: a += 2; n is handed on unchanged; behind it ii + 3 and nn + 4.
Tensors two_variables(const Tensors& in) {
  const auto [ii, nn] = while_loop([](Tensor a, Tensor n) { return a < n; },
                                   [](Tensor a, Tensor n) {
                                     return std::tuple{a + 2, n};
                                   },
                                   std::tuple{in[0], in[1]});
  return {ii + 3, nn + 4};
}

// The graph of the well-known description of TensorFlow's loops, node by node.
TEST(LoweredTest, TwoVariablesGoRound) {
  EXPECT_EQ(str(lowered(kTwoNumbers, two_variables)),
            R"(  input = input() : i32[]
  input_1 = input() : i32[]
  full = full() : i32[]
  add = add(while/Exit, full) : i32[]
  full_1 = full() : i32[]
  add_1 = add(while/Exit_1, full_1) : i32[]
frame while, 10 iterations at once:
  while/Enter = Enter(input) : i32[]
  while/Enter_1 = Enter(input_1) : i32[]
  while/Merge = Merge(while/Enter, while/NextIteration) : i32[]
  while/Merge_1 = Merge(while/Enter_1, while/NextIteration_1) : i32[]
  while/less = less(while/Merge, while/Merge_1) : boolean[]
  while/LoopCond = LoopCond(while/less) : boolean[]
  while/Switch = Switch(while/Merge, while/LoopCond) : i32[], i32[]
  while/Switch_1 = Switch(while/Merge_1, while/LoopCond) : i32[], i32[]
  while/Identity = identity(while/Switch:1) : i32[]
  while/Identity_1 = identity(while/Switch_1:1) : i32[]
  while/full = full(^while/Identity) : i32[]
  while/add = add(while/Identity, while/full) : i32[]
  while/NextIteration = NextIteration(while/add) : i32[]
  while/NextIteration_1 = NextIteration(while/Identity_1) : i32[]
  while/Exit = Exit(while/Switch:0) : i32[]
  while/Exit_1 = Exit(while/Switch_1:0) : i32[]
  return add, add_1
)");
}

}  // namespace
}  // namespace reel
