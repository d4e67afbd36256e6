#include "reel/trace/passes/chunk_loops.h"

#include <algorithm>
#include <map>
#include <optional>

#include "reel/core/ops/loop.h"
#include "reel/trace/executors/chunks.h"
#include "reel/trace/passes/time_split.h"

namespace reel {
namespace {

/// Of a chunk along a plain dim: a divisor of `steps`, at least half as large as wanted.
std::optional<std::int64_t> equal_chunks(std::int64_t steps, std::int64_t wanted) {
  for (std::int64_t size = wanted; 2 * size > wanted; --size)
    if (steps % size == 0) return size;
  return std::nullopt;
}

/// A loop that is to run in chunks.
class Chunking {
 public:
  Chunking(const LoopAttrs& attrs, std::vector<TensorType> inputs, int steps,
           const DimRenames& renames)
      : attrs_(attrs), inputs_(std::move(inputs)), steps_(steps), renames_(renames) {}

  /// Finds the dim of a chunk's steps -> false if the loop stays as it is. is_handed_on: another
  /// loop could go on with what a chunk stacks, or this one with what another's chunk does.
  bool prepare(bool is_handed_on) {
    const std::optional<Dim> time = TimeSplit::divisible_time_of(attrs_, inputs_);
    if (!time) return false;
    if (!steps_ && !is_handed_on && !TimeSplit(attrs_, inputs_, *time, renames_).changes_anything())
      return false;
    if (time->is_named()) {
      Ref<DimNode> node(new DimNode);
      node->name = time->name();
      node->kind = DimKind::dynamic;
      node->is_symbol = true;
      chunk_ = Dim::of_node(node);
      return !time->has_size() || has_chunks(time->size(), wanted(time->size()));
    }
    const auto size = equal_chunks(time->size(), wanted(time->size()));
    if (!size || !has_chunks(time->size(), *size)) return false;
    chunk_ = Dim(*size);
    steps_ = static_cast<int>(*size);
    return true;
  }

  /// Its attributes in chunks; the op's inputs but for a bound are the same.
  LoopAttrs make() const {
    LoopAttrs next = attrs_;
    next.body = make_sub_graph(body());
    next.cond_captures.clear();
    next.body_captures.clear();
    for (std::size_t i = attrs_.first_capture(); i < inputs_.size(); ++i)
      next.body_captures.push_back(static_cast<int>(i - attrs_.first_capture()));
    next.has_bound = false;
    next.in_chunks = true;
    next.chunk_steps = steps_;
    next.origin = {};
    next.notes = {};
    return next;
  }

 private:
  /// Less than two chunks are not worth it, unless they are asked for.
  bool has_chunks(std::int64_t steps, std::int64_t size) const {
    return steps_ ? size < steps : 2 * size <= steps;
  }
  std::int64_t wanted(std::int64_t all) const {
    LoopAttrs in_steps = attrs_;
    in_steps.chunk_steps = steps_;
    return std::min(all, chunks_of(in_steps, inputs_).size);
  }

  /// The loop over the steps of a chunk.
  Ref<Graph> body() const {
    Ref<Graph> graph(new Graph);
    graph->name = attrs_.name;
    const auto add_input = [&](const TensorType& type) {
      graph->inputs.push_back(graph->add_value(type));
    };
    add_input(TensorType(i64, {2}));
    for (std::size_t i = attrs_.first_carry(); i < inputs_.size(); ++i) {
      const bool is_slices = i >= attrs_.first_slice() && i < attrs_.first_capture();
      add_input(is_slices ? chunk_type(inputs_[i], chunk_) : inputs_[i]);
      if (i < attrs_.first_capture()) graph->formal_count = graph->inputs.size();
    }
    LoopAttrs steps = attrs_;
    steps.has_bound = false;
    steps.has_chunk = true;
    std::fill(steps.stack_dims.begin(), steps.stack_dims.end(), chunk_);
    const AttrsRef attrs = make_attrs(std::move(steps));
    TypeList types;
    const std::vector<TensorType> in = graph->types_of(graph->inputs);
    TypeArgs rule{loop_op, attrs.get(), in, types};
    loop_op.type(rule);
    std::vector<ValueId> made;
    for (const TensorType& type : types.span()) made.push_back(graph->add_value(type));
    graph->append(loop_op, attrs, graph->inputs, made);
    graph->outputs.assign(made.begin(), made.begin() + attrs_.trips_output());
    graph->seal();
    return graph;
  }

  const LoopAttrs& attrs_;
  std::vector<TensorType> inputs_;  ///< of the op
  int steps_;                       ///< of a chunk; 0: not known
  const DimRenames& renames_;
  Dim chunk_;
};

/// By record: loops of which one takes, as its slices, what another that could run in chunks stacks
/// in the same direction.
std::vector<std::uint8_t> find_handed_on(const Graph& graph) {
  std::vector<std::uint8_t> result(graph.records.size());
  std::map<ValueId, std::size_t> stacked_by;
  for (std::size_t r = 0; r < graph.records.size(); ++r) {
    const OpRecord& record = graph.records[r];
    if (record.op != &loop_op) continue;
    const auto& attrs = get<LoopAttrs>(record.attrs.get());
    const auto in = graph.inputs_of(record), out = graph.outputs_of(record);
    if (!TimeSplit::divisible_time_of(attrs, graph.types_of(in))) continue;
    for (std::size_t i = attrs.first_slice(); i < attrs.first_capture(); ++i) {
      const auto found = stacked_by.find(in[i]);
      if (found == stacked_by.end()) continue;
      const auto& before = get<LoopAttrs>(graph.records[found->second].attrs.get());
      if (before.is_reverse == attrs.is_reverse) result[r] = result[found->second] = 1;
    }
    for (std::size_t k = attrs.first_stack(); k < attrs.first_sum(); ++k) stacked_by[out[k]] = r;
  }
  return result;
}

Ref<Graph> in_chunks(const Graph& graph, int steps, const DimRenames& renames) {
  const std::vector<std::uint8_t> is_handed_on = find_handed_on(graph);
  Ref<Graph> result(new Graph(graph));
  result->records.clear();
  result->operands.clear();
  const auto in_branch = [&](SubGraph& branch) {
    DimEnv names = branch.env();
    branch = make_sub_graph(in_chunks(*branch.graph, steps, renames), names);
  };
  for (const OpRecord& record : graph.records) {
    const auto given = graph.inputs_of(record);
    std::vector<ValueId> in(given.begin(), given.end());
    AttrsRef attrs = record.attrs;
    if (record.op == &cond_op) {
      CondAttrs cond = get<CondAttrs>(attrs.get());
      in_branch(cond.on_true);
      in_branch(cond.on_false);
      attrs = make_attrs(std::move(cond));
    } else if (record.op == &loop_op) {
      const auto& loop = get<LoopAttrs>(attrs.get());
      Chunking chunking(loop, graph.types_of(in), steps, renames);
      if (chunking.prepare(
              is_handed_on[static_cast<std::size_t>(&record - graph.records.data())])) {
        in.erase(in.begin(), in.begin() + loop.has_bound);
        attrs = make_attrs(chunking.make());
      }
    }
    result->append(*record.op, attrs, in, graph.outputs_of(record));
  }
  result->seal();
  return result;
}

}  // namespace

Ref<Graph> chunk_loops(const Graph& graph, int steps) {
  return in_chunks(graph, steps, graph.renames);
}

}  // namespace reel
