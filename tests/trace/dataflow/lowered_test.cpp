// Loops and conds lowered to nodes that pass tokens: the nodes and their connections.
#include "reel/trace/executors/dataflow/lowered.h"

#include "reel/core/graph/graph_builder.h"
#include "reel/reel.h"
#include "reel/tests/check.h"

namespace reel {
namespace {

template <class F>
LoweredGraph lowered(const std::vector<TensorType>& types, F&& f) {
  return lower(record_graph("f", types, f).graph);
}

const std::vector<TensorType> kTwoNumbers{TensorType(i32), TensorType(i32)};

/// Builds `while a < n: a += 2`, with n unchanged, and behind it ii + 3 and nn + 4.
Tensors two_variables(const Tensors& in) {
  const auto [ii, nn] = while_loop([](Tensor a, Tensor n) { return a < n; },
                                   [](Tensor a, Tensor n) {
                                     return std::tuple{a + 2, n};
                                   },
                                   std::tuple{in[0], in[1]});
  return {ii + 3, nn + 4};
}

// The graph in the well-known description of TensorFlow's loops, node by node.
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

// Both branches read x, which leaves its Switch by one port. Values that only one branch needs, and
// its constants, wait for the branch.
TEST(LoweredTest, ACondIsSwitchesAndAMerge) {
  const auto branches = [](const Tensors& in) {
    return Tensors{cond(
        in[1] < 3, [&] { return in[0] * in[2]; }, [&] { return in[0] + 1.5f; })};
  };
  EXPECT_EQ(str(lowered({TensorType(f32), TensorType(i32), TensorType(f32)}, branches)),
            R"(  input = input() : f32[]
  input_1 = input() : i32[]
  input_2 = input() : f32[]
  full = full() : i32[]
  less = less(input_1, full) : boolean[]
  Switch = Switch(input, less) : f32[], f32[]
  Switch_1 = Switch(input_2, less) : f32[], f32[]
  Switch_2 = Switch(less, less) : boolean[], boolean[]
  mul = mul(Switch:1, Switch_1:1) : f32[]
  Identity_1 = identity(Switch_2:0) : boolean[]
  full_1 = full(^Identity_1) : f32[]
  add = add(Switch:0, full_1) : f32[]
  Merge = Merge(add, mul) : f32[]
  return Merge
)");
}

// A scan with entries that finish one by one.
TEST(LoweredTest, ARaggedScanHasLengthsSlicesAndStacks) {
  const Dim batch("batch", 2), time("time", tensor({3, 1}, {batch}));
  const auto sums = jit([](const Tensor& x, const Tensor& weight) {
    return scan(Scan{.spatial_dim = x.dim("time"),
                     .initial = zeros({x.dim("batch")}),
                     .xs = x,
                     .body =
                         [&](const Tensor& x, const Tensor& s) {
                           const Tensor next = s + x * weight;
                           return std::pair{next, next};
                         }})
        .ys;
  });
  sums(ones({batch, time}), scalar(2.f));
  EXPECT_EQ(str(lower(GraphRef(new Graph(sums.graph())))),
            R"(  input_2 = input() : f32[batch=2,time[batch=2]]
  input_3 = input() : f32[]
  full = full() : f32[batch=2]
  transpose = transpose(input_2) : f32[time[batch=2],batch=2]
  dim_lengths = dim_lengths() : i32[batch=2]
  cast = cast(dim_lengths) : i64[batch=2]
  max = max(cast) : i64[]
  full_1 = full() : i64[]
  maximum = maximum(max, full_1) : i64[]
  begin = begin(maximum, dim_lengths, full, transpose, input_3) : handle, i64[], handle
  types = types(maximum, dim_lengths, full, transpose, input_3) : handle
  stack = stack(begin:0, types, scan/Exit_1, scan/Exit_3) : f32[time[batch=2],batch=2]
frame scan, 10 iterations at once:
  scan/Enter = Enter(full) : f32[batch=2]
  scan/Enter_1 = Enter(begin:1) : i64[]
  scan/Enter_2 = Enter(begin:2) : handle
  scan/Enter_3 = Enter(begin:2) : handle
  scan/Merge = Merge(scan/Enter, scan/NextIteration) : f32[batch=2]
  scan/Merge_1 = Merge(scan/Enter_1, scan/NextIteration_1) : i64[]
  scan/Merge_2 = Merge(scan/Enter_2, scan/NextIteration_2) : handle
  scan/Merge_3 = Merge(scan/Enter_3, scan/NextIteration_3) : handle
  scan/Enter_4 = constant Enter(begin:0) : handle
  scan/running = running(scan/Enter_4, scan/Merge_1) : boolean[batch=2]
  scan/any_running = any_running(scan/Enter_4, scan/Merge_1, scan/running) : boolean[]
  scan/LoopCond = LoopCond(scan/any_running) : boolean[]
  scan/Switch = Switch(scan/Merge, scan/LoopCond) : f32[batch=2], f32[batch=2]
  scan/Switch_1 = Switch(scan/Merge_1, scan/LoopCond) : i64[], i64[]
  scan/Switch_2 = Switch(scan/Merge_2, scan/LoopCond) : handle, handle
  scan/Switch_3 = Switch(scan/Merge_3, scan/LoopCond) : handle, handle
  scan/Identity = identity(scan/Switch:1) : f32[batch=2]
  scan/Switch_4 = Switch(scan/running, scan/LoopCond) : boolean[batch=2], boolean[batch=2]
  scan/finished = finished(scan/Enter_4, scan/Switch_2:1, scan/Switch_4:1) : handle
  scan/slice = slice(scan/Enter_4, scan/Switch_1:1) : f32[batch=2]
  scan/Enter_5 = constant Enter(input_3) : f32[]
  scan/seen = seen(scan/Identity, scan/finished) : f32[batch=2]
  scan/seen_1 = seen(scan/slice, scan/finished) : f32[batch=2]
  scan/mul = mul(scan/seen_1, scan/Enter_5) : f32[batch=2]
  scan/add = add(scan/seen, scan/mul) : f32[batch=2]
  scan/next = next(scan/add, scan/Identity, scan/finished) : f32[batch=2]
  scan/term = term(scan/add, scan/finished) : f32[batch=2]
  scan/increment = increment(scan/Switch_1:1) : i64[]
  scan/put = put(scan/Enter_4, scan/Switch_1:1, scan/Switch_3:1, scan/term) : handle
  scan/NextIteration = NextIteration(scan/next) : f32[batch=2]
  scan/NextIteration_1 = NextIteration(scan/increment) : i64[]
  scan/NextIteration_2 = NextIteration(scan/finished) : handle
  scan/NextIteration_3 = NextIteration(scan/put) : handle
  scan/Exit_1 = Exit(scan/Switch_1:0) : i64[]
  scan/Exit_3 = Exit(scan/Switch_3:0) : handle
  return stack
)");
}

}  // namespace
}  // namespace reel
