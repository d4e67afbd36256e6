// Lowered graphs built by hand from Enter, Merge, Switch, LoopCond, NextIteration and Exit, as in
// TensorFlow's tests of these nodes.
#include "reel/core/graph/graph_builder.h"
#include "reel/reel.h"
#include "reel/tests/check.h"
#include "reel/trace/executors/dataflow/run_dataflow.h"

namespace reel {
namespace {

using Port = LoweredPort;

/// A graph under construction. Frame 1 is inside frame 0.
class Builder {
 public:
  Builder() {
    graph_.frames.resize(2);
    graph_.frames[1].name = "loop";
    graph_.frames[1].parent = 0;
    graph_.frames[1].parallel_iterations = 10;
    graph_.scopes.resize(1);
  }

  Port input() {
    const Port made = add(LoweredKind::op, 0, {});
    node(made).role = LoweredRole::input;
    graph_.inputs.push_back(made);
    return made;
  }
  Port enter(Port x, int frame = 1, bool is_constant = false) {
    const Port made = add(LoweredKind::enter, 0, {x});
    node(made).enters = frame;
    node(made).is_constant = is_constant;
    return made;
  }
  Port add(LoweredKind kind, int frame, std::vector<Port> inputs) {
    LoweredNode made;
    made.kind = kind;
    made.role = LoweredRole::identity;
    made.name = str(name_of(kind), ' ', graph_.nodes.size());
    made.frame = frame;
    made.inputs = std::move(inputs);
    made.outputs.resize(kind == LoweredKind::switch_ ? 2 : 1);
    graph_.nodes.push_back(std::move(made));
    return {static_cast<int>(graph_.nodes.size()) - 1, 0};
  }
  /// Adds the op that f applies to these inputs.
  template <class F>
  Port apply(int frame, std::vector<Port> inputs, std::vector<TensorType> types, F&& f) {
    const RecordedGraph recorded =
        record_graph("op", types, [&](const Tensors& in) { return Tensors{f(in)}; });
    const OpRecord& record = recorded.graph->records.back();
    const Port made = add(LoweredKind::op, frame, std::move(inputs));
    node(made).role = LoweredRole::record;
    node(made).op = record.op;
    node(made).attrs = record.attrs;
    return made;
  }
  LoweredNode& node(Port port) { return graph_.nodes[static_cast<std::size_t>(port.node)]; }
  LoweredGraph& graph() { return graph_; }

  Tensor run(Port output, const Tensors& inputs, int parallel_iterations = 10) {
    graph_.outputs = {output};
    return run_lowered(graph_, inputs, parallel_iterations)[0];
  }

 private:
  LoweredGraph graph_;
};

const TensorType kInt(i32), kBool(boolean), kVector(i32, {6});

/// Builds `while pred(x, limit): x += step`.
Port count(Builder& b, Port from, Port limit, Port step) {
  const Port x = b.enter(from), bound = b.enter(limit, 1, true), by = b.enter(step, 1, true);
  const Port merge = b.add(LoweredKind::merge, 1, {x});
  const Port pred =
      b.apply(1, {merge, bound}, {kInt, kInt}, [](const Tensors& in) { return in[0] < in[1]; });
  const Port cond = b.add(LoweredKind::loop_cond, 1, {pred});
  const Port sides = b.add(LoweredKind::switch_, 1, {merge, cond});
  const Port sum = b.apply(1, {{sides.node, 1}, by}, {kInt, kInt},
                           [](const Tensors& in) { return in[0] + in[1]; });
  const Port next = b.add(LoweredKind::next_iteration, 1, {sum});
  b.node(merge).inputs.push_back(next);
  return b.add(LoweredKind::exit, 1, {{sides.node, 0}});
}

TEST(LoweredPrimitives, Q09_ALoopOfTheSixNodes) {
  Builder b;
  const Port from = b.input(), limit = b.input(), step = b.input();
  const Port last = count(b, from, limit, step);
  for (const int bound : {1, 2, 10, 32}) {
    expect_values(b.run(last, {scalar(0), scalar(10), scalar(1)}, bound), {10});
    expect_values(b.run(last, {scalar(0), scalar(10), scalar(3)}, bound), {12});
    expect_values(b.run(last, {scalar(10), scalar(10), scalar(1)}, bound), {10});  // ends at once
  }
}

TEST(LoweredPrimitives, Q10_EnterMultiplyExit) {
  Builder b;
  const Port x = b.enter(b.input()), y = b.enter(b.input());
  const Port product =
      b.apply(1, {x, y}, {kVector, kInt}, [](const Tensors& in) { return in[0] * in[1]; });
  const Port last = b.add(LoweredKind::exit, 1, {product});
  expect_values(b.run(last, {range(6) + 1, scalar(5)}), {5, 10, 15, 20, 25, 30});
}

TEST(LoweredPrimitives, Q11_SwitchAndMerge) {
  Builder b;
  const Port x = b.input(), pred = b.input(), number = b.input();
  const Port sides = b.add(LoweredKind::switch_, 0, {x, pred});
  const Port less = b.apply(0, {{sides.node, 0}, number}, {kVector, kInt},
                            [](const Tensors& in) { return in[0] + in[1]; });
  const Port more = b.apply(0, {{sides.node, 1}, number}, {kVector, kInt},
                            [](const Tensors& in) { return in[0] * in[1]; });
  const Port merged = b.add(LoweredKind::merge, 0, {less, more});
  expect_values(b.run(merged, {range(6) + 1, scalar(true), scalar(5)}), {5, 10, 15, 20, 25, 30});
  expect_values(b.run(merged, {range(6) + 1, scalar(false), scalar(1)}), {2, 3, 4, 5, 6, 7});
}

TEST(LoweredPrimitives, E11_ADeadOutputIsAnError) {
  Builder b;
  const Port x = b.input(), pred = b.input();
  const Port sides = b.add(LoweredKind::switch_, 0, {x, pred});
  expect_values(b.run({sides.node, 1}, {scalar(3), scalar(true)}), {3});
  EXPECT_EQ(message_of<ArgumentError>([&] {
              b.run({sides.node, 0}, {scalar(3), scalar(true)});
            }),
            "output 0 of the graph, Switch 2, is dead: it is in a branch that was not taken");
}

TEST(LoweredPrimitives, APredicateIsABooleanScalar) {
  Builder b;
  const Port x = b.input(), pred = b.input();
  const Port sides = b.add(LoweredKind::switch_, 0, {x, pred});
  EXPECT_EQ(message_of<ArgumentError>([&] {
              b.run({sides.node, 0}, {scalar(3), scalar(1)});
            }),
            "Switch 2: the predicate of a Switch must be a boolean scalar, got i32[]");
}

TEST(LoweredPrimitives, E10_InputsFromDifferentFrames) {
  Builder b;
  b.graph().frames.push_back(b.graph().frames[1]);
  b.graph().frames[2].name = "other";
  const Port x = b.enter(b.input(), 1), y = b.enter(b.input(), 2);
  const Port sum =
      b.apply(1, {x, y}, {kInt, kInt}, [](const Tensors& in) { return in[0] + in[1]; });
  EXPECT_EQ(message_of<ArgumentError>([&] {
              b.run(b.add(LoweredKind::exit, 1, {sum}), {scalar(1), scalar(2)});
            }),
            "op 4: has inputs from different frames; it runs in frame 'loop', its input Enter 3 is "
            "in frame 'other'");
}

TEST(LoweredPrimitives, OneLoopCondInAFrame) {
  Builder b;
  const Port x = b.enter(b.input());
  b.add(LoweredKind::loop_cond, 1, {x});
  b.add(LoweredKind::loop_cond, 1, {x});
  EXPECT_EQ(message_of<ArgumentError>([&] { verify(b.graph()); }),
            "frame 'loop' has 2 LoopCond nodes; there may be one");
}

TEST(LoweredPrimitives, KindsHaveTheirNumbersOfInputs) {
  Builder b;
  const Port x = b.input();
  b.add(LoweredKind::switch_, 0, {x});
  EXPECT_EQ(message_of<ArgumentError>([&] { verify(b.graph()); }),
            "Switch 1: a Switch with 1 inputs and 2 outputs");
}

}  // namespace
}  // namespace reel
