// The pass of docs/adding_a_pass.md, which shows this code.
#include <gtest/gtest.h>

#include <unordered_map>

#include "reel/core/graph/graph_builder.h"
#include "reel/core/graph/graph_rewriter.h"
#include "reel/core/ops/control/cond.h"
#include "reel/core/ops/elementwise/elementwise.h"
#include "reel/reel.h"
#include "reel/tests/check.h"
#include "reel/trace/executors/interpreter.h"
#include "reel/trace/passes/cleanup/drop_dead.h"
#include "reel/trace/passes/support/sub_graphs.h"

namespace reel {
namespace {

/// Replaces the negative of a negative by the value itself, in bodies of loops too.
///   Before: b = neg(a); c = neg(b); d = sin(c)     After: b = neg(a); d = sin(a)
/// Requires: nothing.   Preserves: bits.   Runs: before drop_dead(), which drops b.
Ref<Graph> cancel_negations(const Graph& graph) {
  GraphRewriter to(graph);
  std::unordered_map<ValueId, ValueId> operand_of;  // by result of a neg
  for (const OpRecord& record : graph.records) {
    if (record.op == &neg_op) {
      const ValueId x = to[graph.inputs_of(record)[0]], made = graph.outputs_of(record)[0];
      if (const auto found = operand_of.find(x); found != operand_of.end()) {
        to.replace(made, found->second);
        continue;
      }
      operand_of.emplace(made, x);
    }
    to.keep(record, with_all_sub_graphs(record, cancel_negations));
  }
  return to.finish();
}

TEST(ExamplePassTest, CancelsNegations) {
  const auto graph = record_graph("f", {TensorType(f32)}, [](const Tensors& x) {
                       return Tensors{sin(-(-x[0])), -(-(-x[0]))};
                     }).graph;
  EXPECT_EQ(str(*drop_dead(*cancel_negations(*graph))),
            "f(%0: f32[]) {\n  %1: f32[] = sin(%0)\n  %2: f32[] = neg(%0)\n  return %1, %2\n}\n");
}

TEST(ExamplePassTest, CancelsNegationsInBodies) {
  const auto graph =
      record_graph("f", {TensorType(f32, {3})}, [](const Tensors& x) {
        const auto body = [](Tensor x, Tensor s) {
          const Tensor next = s + -(-x);
          return std::pair{next, next};
        };
        return Tensors{scan(Scan{.initial = scalar(0.0f), .xs = x[0], .body = body}).ys};
      }).graph;
  const Ref<Graph> after = drop_dead(*cancel_negations(*graph));
  EXPECT_NE(str(*graph).find("neg("), std::string::npos);
  EXPECT_EQ(str(*after).find("neg("), std::string::npos) << str(*after);
  const Tensors inputs{tensor({1.0f, 2.0f, 4.0f})};
  expect_values(interpret(after, Tensors(inputs))[0], {1, 3, 7});
}

TEST(ExamplePassTest, CancelsNegationsInBranches) {
  const auto graph =
      record_graph("f", {TensorType(boolean), TensorType(f32)}, [](const Tensors& x) {
        return Tensors{cond(
            x[0], [&] { return -(-x[1]); }, [&] { return sin(-(-x[1])); })};
      }).graph;
  const auto in_branches = [](const Graph& graph) {
    const auto& attrs = get<CondAttrs>(graph.records[0].attrs.get());
    return str(*drop_dead(*attrs.on_true.graph)) + str(*drop_dead(*attrs.on_false.graph));
  };
  EXPECT_NE(in_branches(*graph).find("neg("), std::string::npos);
  const std::string after = in_branches(*cancel_negations(*graph));
  EXPECT_EQ(after.find("neg("), std::string::npos) << after;
}

}  // namespace
}  // namespace reel
