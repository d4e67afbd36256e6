#include "reel/autodiff/reverse_graph.h"

#include <algorithm>
#include <utility>

#include "reel/autodiff/dim_sources.h"
#include "reel/autodiff/recorded_reversal.h"
#include "reel/autodiff/reversal_cut.h"
#include "reel/core/graph/graph_rewriter.h"
#include "reel/core/ops/control/checkpointed.h"
#include "reel/core/ops/control/effects.h"
#include "reel/core/ops/shape/dims.h"
#include "reel/core/ops/shape/shape.h"

namespace reel {
namespace {

/// Returns, by record, whether it recomputes a forward record. If so, tells whether it depends on a
/// carried value of the previous iteration that in turn depends on it.
std::vector<Recompute> find_recomputed(const Graph& forward, const ReversalSpec& spec,
                                       const RecordedReversal& both) {
  const Graph& graph = *both.graph;
  std::vector<std::uint8_t> waits(graph.types.size()), is_needed(graph.types.size());
  std::size_t carries = 0;
  for (std::size_t i = 0; i < forward.inputs.size(); ++i) {
    waits[graph.inputs[i]] = !spec.is_free[i];
    carries += !spec.is_free[i];
  }
  for (std::size_t k = 0; k < carries; ++k) is_needed[both.forward_outputs[k]] = 1;
  for (std::size_t r = both.forward_records; r-- > 0;) {
    const auto in = graph.inputs_of(graph.records[r]), out = graph.outputs_of(graph.records[r]);
    if (std::any_of(out.begin(), out.end(), [&](ValueId v) { return is_needed[v]; }))
      for (const ValueId v : in) is_needed[v] = 1;
  }
  std::vector<Recompute> result;
  for (std::size_t r = 0; r < graph.records.size(); ++r) {
    const OpRecord& record = graph.records[r];
    const bool is_forward = r < both.forward_records;
    const bool is_afresh = record.op == &afresh_op;  // the same value, ordered after another one
    const auto in = graph.inputs_of(record).first(is_afresh ? 1 : record.input_count);
    const auto out = graph.outputs_of(record);
    const bool is_recomputed = is_forward || is_afresh || record.recompute != Recompute::no;
    const bool waiting =
        is_recomputed && std::any_of(in.begin(), in.end(), [&](ValueId v) { return waits[v]; });
    for (const ValueId v : out) waits[v] = waiting;
    // In a function that is recomputed as a whole, everything waits for the previous iteration.
    const bool in_steps =
        waiting && (!is_forward ||
                    std::any_of(out.begin(), out.end(), [&](ValueId v) { return is_needed[v]; }));
    result.push_back(!is_recomputed ? Recompute::no
                     : in_steps     ? Recompute::in_steps
                                    : Recompute::yes);
  }
  return result;
}

/// Returns the forward records as a graph of their own, with the value numbers of `both`.
Ref<Graph> forward_part(const RecordedReversal& both, const Graph& forward) {
  Ref<Graph> graph(new Graph);
  const Graph& from = *both.graph;
  graph->name = forward.name;
  graph->types = from.types;
  graph->inputs.assign(from.inputs.begin(), from.inputs.begin() + forward.inputs.size());
  graph->formal_count = forward.formal_count;
  for (std::size_t r = 0; r < both.forward_records; ++r) {
    const OpRecord& record = from.records[r];
    graph->append(record, record.attrs, from.inputs_of(record), from.outputs_of(record));
  }
  graph->outputs = both.forward_outputs;
  return graph;
}

/// Builds the reversed graph from the records that ReversalCut takes.
class ReversalBuilder {
 public:
  ReversalBuilder(const Graph& forward, const ReversalSpec& spec)
      : forward_(forward),
        spec_(spec),
        both_(record_reversal(forward, spec)),
        from_(*both_.graph),
        cut_(forward, spec, both_),
        dims_(forward, spec, both_),
        value_(from_.types.size(), kNoValue) {
    result_.graph = Ref<Graph>(new Graph);
    result_.graph->name = from_.name;
    result_.forward = forward_part(both_, forward);
    result_.cotangents = both_.cotangents;
    result_.wanted = both_.wanted;
    result_.presences = both_.presences;
    result_.row_numbers = both_.row_numbers;
  }

  ReversedGraph build() && {
    bind_inputs();
    find_tokens();
    add_inputs();
    copy_records();
    Graph& to = *result_.graph;
    for (const ValueId v : from_.outputs) to.outputs.push_back(value_[v]);
    to.seal();
    result_.forward->seal();
    result_.forward->renames = to.renames = forward_.renames;
    return std::move(result_);
  }

 private:
  using Source = ReversalCut::Source;

  std::size_t cotangents_begin() const { return forward_.inputs.size(); }
  std::size_t captures_begin() const { return cotangents_begin() + both_.cotangents.size(); }

  void bind_inputs();
  void find_tokens();
  void add_inputs();
  void add_residuals();
  void copy_records();
  void copy(const OpRecord& record, Recompute recompute);

  void add_input(ValueId v) {
    Graph& to = *result_.graph;
    to.inputs.push_back(value_[v] = to.add_value(from_.types[v]));
  }

  const Graph& forward_;
  const ReversalSpec& spec_;
  const RecordedReversal both_;
  const Graph& from_;  ///< of both_
  const ReversalCut cut_;
  DimSources dims_;
  std::vector<ValueId> value_;  ///< by value of from_: the value of the reversed graph, or kNoValue
  ReversedGraph result_;
};

/// Notes the dims that the values which the reversed graph reads determine.
void ReversalBuilder::bind_inputs() {
  for (std::size_t i = cotangents_begin(); i < captures_begin(); ++i)
    dims_.add_value(from_.types[from_.inputs[i]]);
  for (std::size_t i = 0; i < forward_.inputs.size(); ++i)
    if (cut_.uses(from_.inputs[i], Source::input)) dims_.take_input(i);
  for (const std::size_t i : spec_.kept_anyway)
    if (const ValueId v = both_.forward_outputs[i]; cut_.uses(v, Source::kept))
      dims_.add_value(from_.types[v]);
  for (ValueId v = 0; v < from_.types.size(); ++v)
    if (cut_.uses(v, Source::residual)) dims_.add_value(from_.types[v]);
}

/// If a taken record mentions a dim before a value determines it, a free input or a token must
/// provide it.
void ReversalBuilder::find_tokens() {
  for (std::size_t r = 0; r < from_.records.size(); ++r) {
    if (!cut_.takes(r)) continue;
    const OpRecord& record = from_.records[r];
    // A plain dim that rename makes has the operand's size.
    const bool is_rename = record.op == &rename_op;
    if (record.attrs)
      record.attrs->each_symbol([&](const Dim& dim) {
        if (!is_rename || dim.is_named()) dims_.require(dim);
      });
    for (const ValueId v : from_.outputs_of(record)) dims_.add_value(from_.types[v]);
  }
}

/// Adds the inputs in the order of ReversedGraph's lists.
void ReversalBuilder::add_inputs() {
  for (std::size_t i = cotangents_begin(); i < captures_begin(); ++i) add_input(from_.inputs[i]);
  for (std::size_t i = 0; i < forward_.inputs.size(); ++i)
    if (dims_.takes_input(i)) {
      result_.inputs.push_back(i);
      add_input(from_.inputs[i]);
    }
  for (const std::size_t i : spec_.kept_anyway)
    if (const ValueId v = both_.forward_outputs[i];
        cut_.uses(v, Source::kept) && value_[v] == kNoValue) {
      result_.kept.push_back(i);
      add_input(v);
    }
  add_residuals();
  result_.graph->formal_count = result_.graph->inputs.size();
  for (std::size_t i = captures_begin(); i < from_.inputs.size(); ++i)
    if (cut_.is_used(from_.inputs[i])) {
      add_input(from_.inputs[i]);
      result_.captured.push_back(both_.captured[i - captures_begin()]);
    }
}

void ReversalBuilder::add_residuals() {
  for (ValueId v = 0; v < from_.types.size(); ++v)
    if (cut_.uses(v, Source::residual)) {
      const TensorType& type = from_.types[v];
      result_.residuals.push_back({v, type, cut_.spills(v), dims_.is_local(type)});
      add_input(v);
    }
  Graph& to = *result_.graph;
  for (const Dim& dim : dims_.tokens()) {
    const TensorType type = token_type(dim);
    result_.residuals.push_back({append_dim_token(*result_.forward, dim), type, false, true});
    to.inputs.push_back(to.add_value(type));
  }
}

void ReversalBuilder::copy_records() {
  const std::vector<Recompute> recompute = find_recomputed(forward_, spec_, both_);
  for (std::size_t r = 0; r < from_.records.size(); ++r) {
    if (!cut_.takes(r)) continue;
    const OpRecord& record = from_.records[r];
    const bool is_forward = r < both_.forward_records;
    // The forward graph printed already.
    if (is_forward && record.op->has_effect && !is_collective(*record.op))
      value_[from_.outputs_of(record)[0]] = value_[from_.inputs_of(record)[0]];
    else
      copy(record, recompute[r]);
  }
}

void ReversalBuilder::copy(const OpRecord& record, Recompute recompute) {
  Graph& to = *result_.graph;
  std::vector<ValueId> in, out;
  for (const ValueId v : from_.inputs_of(record)) in.push_back(value_[v]);
  for (const ValueId v : from_.outputs_of(record)) {
    const ValueId copy = to.add_value(from_.types[v]);
    if (value_[v] == kNoValue) value_[v] = copy;  // otherwise an input stands for the result
    out.push_back(copy);
  }
  to.append(*record.op, record.attrs, in, out, record.source, recompute);
}

}  // namespace

ReversedGraph reverse_graph(const Graph& forward, const ReversalSpec& spec) {
  return ReversalBuilder(forward, spec).build();
}

}  // namespace reel
