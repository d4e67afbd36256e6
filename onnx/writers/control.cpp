// The writer of cond.
#include "reel/core/ops/control/cond.h"
#include "reel/onnx/borders.h"
#include "reel/onnx/writer_registry.h"
#include "reel/onnx/writers/loop_writer.h"
#include "reel/onnx/writers/recurrent_writer.h"
#include "reel/onnx/writers/uneven_lists.h"

namespace reel::exported {
namespace {

/// A branch of a cond, and the captures of the op that it takes.
struct Branch {
  const SubGraph& sub;
  const std::vector<int>& captures;

  ValueId capture(const WriteCall& call, std::size_t i) const {
    return call.value_in(1 + static_cast<std::size_t>(captures[i]));
  }
  /// Returns the dims around the cond for the branch's symbols.
  DimEnv env(const WriteCall& call) const {
    DimEnv env = sub.env();
    for (std::size_t i = 0; i < captures.size(); ++i)
      env.bind(sub.graph->types[sub.graph->inputs[i]], call.to.type(capture(call, i)));
    return env;
  }
  /// Writes the records.
  void write(const WriteCall& call, GraphWriter& writer) const {
    for (std::size_t i = 0; i < captures.size(); ++i)
      writer.set(sub.graph->inputs[i], call.to.name_or_none(capture(call, i)));
    writer.write_records();
  }
};

/// A branch as a graph of an If.
class WrittenBranch {
 public:
  WrittenBranch(const WriteCall& call, const Branch& branch, const char* name)
      : call_(call),
        inner_(call.to.model(), name),
        writer_(call.to.model(), inner_.nodes(), *branch.sub.graph, &call.to, branch.env(call)) {
    branch.write(call, writer_);
    for (const ValueId output : branch.sub.graph->outputs)
      outputs_.push_back(leaving(writer_, output));
  }

  /// Returns true if result i is a list whose elements may differ in size.
  bool is_uneven(std::size_t i) const {
    return call_.type_out(i).is_list() && call_.to.model().element_sizes.count(outputs_[i]);
  }
  /// Returns the graph. Its outputs are the results, and the sizes of elements of uneven ones.
  std::shared_ptr<const imported::Graph> graph(const std::vector<std::size_t>& uneven) {
    for (std::size_t i = 0; i < outputs_.size(); ++i)
      inner_.add_output(writer_, outputs_[i], leaving_type(call_.type_out(i)));
    for (const std::size_t i : uneven) {
      const TensorType& type = call_.type_out(i);
      inner_.add_output(writer_, uneven_list(writer_, outputs_[i], type).sizes,
                        TensorType(i64, {Dim::unknown(), Dim(type.rank())}));
    }
    return inner_.graph();
  }

 private:
  const WriteCall& call_;
  InnerGraph inner_;
  GraphWriter writer_;
  Names outputs_;
};

/// Returns the results of an If.
Names branched(const WriteCall& call, const Branch& on_true, const Branch& on_false) {
  WrittenBranch then(call, on_true, "then"), otherwise(call, on_false, "else");
  std::vector<std::size_t> uneven;
  for (std::size_t i = 0; i < call.count_out(); ++i)
    if (then.is_uneven(i) || otherwise.is_uneven(i)) uneven.push_back(i);
  const Names made = call.to.add("If", {call.in(0)}, call.count_out() + uneven.size(),
                                 {{"then_branch", graph(then.graph(uneven))},
                                  {"else_branch", graph(otherwise.graph(uneven))}});
  for (std::size_t k = 0; k < uneven.size(); ++k)
    recorded(call.to, {made[uneven[k]], made[call.count_out() + k]});
  return made;
}

/// Returns the results of the only branch that runs. Adds its nodes to the graph around.
Names inlined(const WriteCall& call, const Branch& branch) {
  GraphWriter& to = call.to;
  const Graph& graph = *branch.sub.graph;
  GraphWriter writer(to.model(), to.nodes(), graph, &to, branch.env(call));
  branch.write(call, writer);
  Names names;
  for (const ValueId output : graph.outputs) names.push_back(leaving(writer, output));
  return names;
}

Names write_cond(const WriteCall& call) {
  if (!call.count_out()) return {};  // an If has an output
  const CondAttrs& attrs = call.attr<CondAttrs>();
  const Branch on_true{attrs.on_true, attrs.true_captures},
      on_false{attrs.on_false, attrs.false_captures};
  // onnxruntime loses values of branches in branches if it inlines an If itself.
  const std::optional<bool> known = call.to.model().known_boolean(call.in(0));
  const Names names =
      known ? inlined(call, *known ? on_true : on_false) : branched(call, on_true, on_false);
  Names results;
  for (std::size_t i = 0; i < call.count_out(); ++i) {
    const TensorType& type = call.type_out(i);
    if (is_token(type) && !type.is_list()) {
      call.to.set_lengths(type.dims()[1], names[i]);
      results.emplace_back();
    } else {
      results.push_back(names[i]);
    }
  }
  return results;
}

Names write_any_loop(const WriteCall& call) {
  if (const auto names = write_recurrent(call)) return *names;
  return write_loop(call);
}

const Writer kWriters[] = {{"cond", write_cond}, {"loop", write_any_loop}};

}  // namespace

std::span<const Writer> control_writers() { return kWriters; }

}  // namespace reel::exported
