// DimMeetings: dims that are together in the type of a value, also inside of bodies.
#include "reel/core/graph/passes/dim_meetings.h"

#include <gtest/gtest.h>

#include "reel/core/ops/loop/loop.h"
#include "reel/core/types/dim_symbol.h"

namespace reel {
namespace {

class DimMeetingsTest : public ::testing::Test {
 protected:
  const Dim a = dim_symbol("a"), b = dim_symbol("b"), c = dim_symbol("c"), x = dim_symbol("x");

  static Ref<Graph> graph_of(const std::vector<Dims>& types) {
    Ref<Graph> graph(new Graph);
    for (const Dims& dims : types) graph->add_value(TensorType(f32, dims));
    return graph;
  }
  /// Returns a graph of the values, with a loop; its body has the values `inside`.
  static Ref<Graph> with_body(const std::vector<Dims>& types, const std::vector<Dims>& inside,
                              const std::vector<std::pair<Dim, Dim>>& bindings) {
    Ref<Graph> graph = graph_of(types);
    LoopAttrs attrs;
    attrs.body.graph = graph_of(inside);
    attrs.body.bindings = bindings;
    graph->append(loop_op, make_attrs(std::move(attrs)), {}, {});
    return graph;
  }
};

TEST_F(DimMeetingsTest, DimsMeetInATypeThatHasBoth) {
  const Ref<Graph> graph = graph_of({{a, b}, {c}, {2, 3}});
  DimMeetings meetings(*graph);
  EXPECT_TRUE(meetings.meet(a, b));
  EXPECT_TRUE(meetings.meet(b, a));
  EXPECT_TRUE(meetings.meet(Dim(2), Dim(3)));
  EXPECT_TRUE(meetings.meet(c, c));
  EXPECT_FALSE(meetings.meet(a, c));
  EXPECT_FALSE(meetings.meet(a, Dim(3)));
  EXPECT_FALSE(meetings.meet(Dim(2), Dim(4)));
  EXPECT_FALSE(meetings.meet(x, a));
}

TEST_F(DimMeetingsTest, DimsOfABodyHaveTheNamesOutside) {
  const Ref<Graph> graph = with_body({{a}, {b}, {c}}, {{x, b}}, {{x, a}});
  DimMeetings meetings(*graph);
  EXPECT_TRUE(meetings.meet(a, b));   // x is a
  EXPECT_FALSE(meetings.meet(x, b));  // outside of the body, x is another dim
  EXPECT_FALSE(meetings.meet(a, c));
}

TEST_F(DimMeetingsTest, ANameOfABodyHidesTheDimOutside) {
  // Inside, a stands for b; the outer a has no name there.
  const Ref<Graph> graph = with_body({{a}, {b}, {c}}, {{a, c}}, {{a, b}});
  DimMeetings meetings(*graph);
  EXPECT_TRUE(meetings.meet(b, c));
  EXPECT_FALSE(meetings.meet(a, c));
}

TEST_F(DimMeetingsTest, TwoNamesOfOneDimBothCount) {
  const Dim y = dim_symbol("y");
  const Ref<Graph> graph = with_body({{a}, {b}, {c}}, {{x, b}, {y, c}}, {{x, a}, {y, a}});
  DimMeetings meetings(*graph);
  EXPECT_TRUE(meetings.meet(a, b));
  EXPECT_TRUE(meetings.meet(a, c));
  EXPECT_FALSE(meetings.meet(b, c));
}

}  // namespace
}  // namespace reel
