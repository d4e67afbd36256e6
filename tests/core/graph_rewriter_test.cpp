// GraphRewriter: records kept, moved, replaced and added, and the values that stand for others.
#include "reel/core/graph/graph_rewriter.h"

#include <gtest/gtest.h>

#include "reel/core/base/str.h"
#include "reel/core/graph/graph_builder.h"
#include "reel/core/ops.h"
#include "reel/core/ops/elementwise/elementwise.h"

namespace reel {
namespace {

/// Returns a graph of x and y with the records sin(x), cos(y), sin(x) + cos(y), and that sum and
/// sin(x) as its outputs.
Ref<Graph> recorded() {
  GraphBuilder builder("f");
  const ModeScope scope(builder.scope());
  const Tensor x = builder.add_input(TensorType(f32, {2})),
               y = builder.add_input(TensorType(f32, {2}));
  const Tensor a = sin(x), b = cos(y);
  return builder.finish({a + b, a});
}

std::string text_of(const Graph& graph) {
  std::string result;
  for (const OpRecord& record : graph.records) {
    result += str(result.empty() ? "" : ", ", record.op->name, '(');
    for (const ValueId v : graph.inputs_of(record)) result += str(v, ' ');
    result.back() = ')';
    result += str("=", graph.outputs_of(record)[0]);
  }
  for (const ValueId v : graph.outputs) result += str(" ->", v);
  return result;
}

TEST(GraphRewriterTest, KeptRecordsAreTheGraph) {
  const Ref<Graph> graph = recorded();
  GraphRewriter to(*graph);
  for (const OpRecord& record : graph->records) to.keep(record);
  EXPECT_EQ(text_of(*to.finish()), "sin(0)=2, cos(1)=3, add(2 3)=4 ->4 ->2");
  EXPECT_EQ(text_of(*graph), "sin(0)=2, cos(1)=3, add(2 3)=4 ->4 ->2");
}

TEST(GraphRewriterTest, RecordsMayChangeTheirOrder) {
  const Ref<Graph> graph = recorded();
  GraphRewriter to(*graph);
  for (const std::size_t r : {1, 0, 2}) to.keep(graph->records[r]);
  EXPECT_EQ(text_of(*to.finish()), "cos(1)=3, sin(0)=2, add(2 3)=4 ->4 ->2");
}

TEST(GraphRewriterTest, AValueStandsForAnotherInRecordsAndOutputs) {
  const Ref<Graph> graph = recorded();
  GraphRewriter to(*graph);
  to.replace(2, 0);
  EXPECT_EQ(to[2], 0u);
  EXPECT_EQ(to[3], 3u);
  EXPECT_EQ(to.inputs_of(graph->records[2]), (std::vector<ValueId>{0, 3}));
  to.keep(graph->records[1]);
  to.keep(graph->records[2]);
  EXPECT_EQ(text_of(*to.finish()), "cos(1)=3, add(0 3)=4 ->4 ->0");
}

TEST(GraphRewriterTest, NewValuesStandForThemselves) {
  const Ref<Graph> graph = recorded();
  GraphRewriter to(*graph);
  to.keep(graph->records[0]);
  const ValueId made = to.to().add_value(TensorType(f32, {2}));
  to.to().append(tanh_op, {}, {{2}}, {{made}});
  to.replace(3, made);
  EXPECT_EQ(to[made], made);
  to.keep(graph->records[2]);
  EXPECT_EQ(text_of(*to.finish()),
            str("sin(0)=2, tanh(2)=", made, ", add(2 ", made, ")=4 ->4 ->2"));
}

TEST(GraphRewriterTest, RecordsMayMakeOtherValues) {
  const Ref<Graph> graph = recorded();
  GraphRewriter to(*graph);
  const ValueId made = to.to().add_value(TensorType(f32, {2}));
  to.keep(graph->records[0], {}, std::vector<ValueId>{1}, std::vector<ValueId>{made});
  to.keep(graph->records[1]);
  to.keep(graph->records[2], {}, std::vector<ValueId>{made, 3});
  to.replace(2, made);
  EXPECT_EQ(text_of(*to.finish()),
            str("sin(1)=", made, ", cos(1)=3, add(", made, " 3)=4 ->4 ->", made));
}

TEST(GraphRewriterTest, InlinedRecordsMakeNewValues) {
  const Ref<Graph> graph = recorded();
  GraphRewriter to(*graph);
  const std::vector<ValueId> made = to.inline_graph(*graph, std::vector<ValueId>{1, 0});
  EXPECT_EQ(made, (std::vector<ValueId>{7, 5}));
  to.replace(4, made[0]);
  EXPECT_EQ(text_of(*to.finish()), "sin(1)=5, cos(0)=6, add(5 6)=7 ->7 ->2");
}

TEST(GraphRewriterTest, InlinedValuesMayHaveAPlace) {
  const Ref<Graph> graph = recorded();
  Graph to(*graph);
  std::vector<ValueId> place{0, 1, 2, kNoValue, kNoValue};
  inline_graph(to, *graph, place);
  EXPECT_EQ(place, (std::vector<ValueId>{0, 1, 2, 5, 6}));
  EXPECT_EQ(text_of(to), "sin(0)=2, cos(1)=3, add(2 3)=4, sin(0)=2, cos(1)=5, add(2 5)=6 ->4 ->2");
}

TEST(PartOfGraphTest, UnmadeOperandsAreInputs) {
  const Ref<Graph> graph = recorded();
  const std::size_t records[] = {0, 2};
  const PartOfGraph part = part_of_graph(*graph, records, [](ValueId v) { return v == 4; });
  EXPECT_EQ(text_of(*part.graph), "sin(0)=2, add(2 1)=3 ->3");
  EXPECT_EQ(part.graph->inputs, (std::vector<ValueId>{0, 1}));
  EXPECT_EQ(part.graph->capture_count(), 0u);
  EXPECT_EQ(part.outside, (std::vector<ValueId>{0, 3, 2, 4}));
}

}  // namespace
}  // namespace reel
