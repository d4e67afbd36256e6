#include "reel/autodiff/reversal_cut.h"

#include <algorithm>

#include "reel/core/ops/control/checkpointed.h"
#include "reel/core/ops/control/cond.h"
#include "reel/core/ops/control/effects.h"
#include "reel/core/ops/control/identity.h"
#include "reel/core/ops/loop/loop.h"

namespace reel {
namespace {

/// Returns true if the kernel decides the types. A checkpointed function is excluded: it may have
/// sizes of its own, but makes them with its results.
bool decides_types(const OpRecord& record) {
  return record.op->kernel_decides_types && record.op != &checkpointed_op;
}

bool runs_loops_or_branches(const OpRecord& record) {
  if (record.op == &checkpointed_op)
    return has_loops(*get<CheckpointedAttrs>(record.attrs.get()).body.graph);
  return record.op == &loop_op || record.op == &cond_op;
}

}  // namespace

ReversalCut::ReversalCut(const Graph& forward, const ReversalSpec& spec,
                         const RecordedReversal& both)
    : spec_(spec), both_(both) {
  find_sources(forward);
  find_dims_made_inside();
  find_constants(forward);
  choose_residuals();
  take_used_records();
}

/// Finds the sources of values that are certain: inputs, stored outputs, reverse records. Forward
/// values stay unknown.
void ReversalCut::find_sources(const Graph& forward) {
  const Graph& graph = *both_.graph;
  maker_.assign(graph.types.size(), -1);
  for (std::size_t r = 0; r < graph.records.size(); ++r)
    for (const ValueId v : graph.outputs_of(graph.records[r])) maker_[v] = static_cast<int>(r);
  source_.assign(graph.types.size(), Source::made);
  takes_.assign(graph.records.size(), 0);
  for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
    const bool is_forward_input = i < forward.inputs.size();
    source_[graph.inputs[i]] =
        !is_forward_input || spec_.is_free[i] ? Source::input : Source::unknown;
  }
  for (const std::size_t i : spec_.kept_anyway)
    if (source_[both_.forward_outputs[i]] != Source::input)
      source_[both_.forward_outputs[i]] = Source::kept;
  for (std::size_t r = 0; r < both_.forward_records; ++r)
    for (const ValueId v : graph.outputs_of(graph.records[r]))
      if (source_[v] == Source::made) source_[v] = Source::unknown;
}

void ReversalCut::find_dims_made_inside() {
  const Graph& graph = *both_.graph;
  std::unordered_set<const DimNode*> from_inputs;
  for (const ValueId v : graph.inputs)
    for_each_bound(graph.types[v], [&](const Dim& dim) { from_inputs.insert(dim.node()); });
  for (std::size_t r = 0; r < graph.records.size(); ++r)
    for (const ValueId v : graph.outputs_of(graph.records[r]))
      for_each_bound(graph.types[v], [&](const Dim& dim) {
        if (!dim.has_size() && !from_inputs.count(dim.node()))
          dim_maker_.emplace(dim.node(), static_cast<int>(r));
      });
}

bool ReversalCut::mentions_dim_made_inside(const OpRecord& record) const {
  bool result = false;
  const auto look = [&](const Dim& dim) { result = result || dim_maker_.count(dim.node()); };
  if (record.attrs) record.attrs->each_symbol(look);
  for (const ValueId v : both_.graph->outputs_of(record))
    for_each_symbol(both_.graph->types[v], look);
  return result;
}

/// Finds values that are equal in every run: computed from constant inputs alone. Passes hoist
/// them from a loop; otherwise each iteration computes them again, which takes time instead of
/// memory.
void ReversalCut::find_constants(const Graph& forward) {
  const Graph& graph = *both_.graph;
  is_constant_.assign(graph.types.size(), 0);
  for (std::size_t i = 0; i < forward.inputs.size() && !spec_.is_constant.empty(); ++i)
    is_constant_[graph.inputs[i]] = spec_.is_constant[i];
  for (std::size_t r = 0; r < both_.forward_records; ++r) {
    const OpRecord& record = graph.records[r];
    if (has_effects(record) || decides_types(record) || runs_loops_or_branches(record) ||
        mentions_dim_made_inside(record))
      continue;
    const auto in = graph.inputs_of(record);
    if (!std::all_of(in.begin(), in.end(), [&](ValueId v) { return is_constant_[v]; })) continue;
    for (const ValueId v : graph.outputs_of(record)) is_constant_[v] = 1;
  }
}

/// Returns the rule's decision for the values that a forward record makes.
Saving ReversalCut::verdict(int record) const {
  if (!spec_.keeps || record < 0 || static_cast<std::size_t>(record) >= both_.forward_records)
    return Saving::by_default;
  const OpRecord& of = both_.graph->records[static_cast<std::size_t>(record)];
  if (of.op->has_effect || !of.output_count) return Saving::by_default;
  const ValueId v = both_.graph->outputs_of(of)[0];
  return (*spec_.keeps)({of.op->name, checkpoint_name_of(of), both_.graph->types[v]});
}

/// Makes values that the rule saves residuals, so that all other values can be computed from them.
/// Adds the operands of values that the rule recomputes to `reads`.
void ReversalCut::follow_rule(std::vector<ValueId>& reads) {
  const Graph& graph = *both_.graph;
  for (std::size_t r = 0; r < both_.forward_records; ++r) {
    const Saving saving = verdict(static_cast<int>(r));
    if (saving != Saving::keep && saving != Saving::spill) continue;
    for (const ValueId v : graph.outputs_of(graph.records[r]))
      if (source_[v] == Source::unknown && !is_constant_[v]) source_[v] = Source::residual;
  }
  for (std::size_t i = 0; i < reads.size(); ++i) {
    const ValueId v = reads[i];
    if (source_[v] != Source::unknown || maker_[v] < 0 || recomputed_by_rule_.count(maker_[v]))
      continue;
    if (verdict(maker_[v]) != Saving::recompute) continue;
    recomputed_by_rule_.insert(maker_[v]);
    for (const ValueId in : graph.inputs_of(graph.records[static_cast<std::size_t>(maker_[v])]))
      reads.push_back(in);
  }
}

bool ReversalCut::is_cheap(const OpRecord& record) const {
  if (record.op->has_effect) return false;
  if (recomputed_by_rule_.count(static_cast<int>(&record - both_.graph->records.data())))
    return true;
  return record.op->pointwise || record.input_count == 0 ||
         is_constant_[both_.graph->outputs_of(record)[0]];
}

/// Returns true if v can be recomputed from available values. (Depth-first over cheap records;
/// the result is cached.)
bool ReversalCut::can_recompute(ValueId v) {
  if (source_[v] != Source::unknown) return true;
  if (const auto found = recomputable_.find(v); found != recomputable_.end()) return found->second;
  bool result = false;
  if (maker_[v] >= 0) {
    const OpRecord& record = both_.graph->records[maker_[v]];
    result = is_cheap(record);
    const auto in = both_.graph->inputs_of(record);
    for (std::size_t i = 0; result && i < in.size(); ++i) result = can_recompute(in[i]);
  }
  return recomputable_[v] = result;
}

/// Returns the outputs, and the operands of reverse records that outputs depend on.
std::vector<ValueId> ReversalCut::values_read_in_reverse() const {
  const Graph& graph = *both_.graph;
  std::vector<ValueId> reads;
  std::vector<std::uint8_t> is_read(graph.types.size(), 0);
  const auto add = [&](ValueId v) {
    is_read[v] = 1;
    reads.push_back(v);
  };
  for (const ValueId v : graph.outputs) add(v);
  for (std::size_t r = graph.records.size(); r-- > both_.forward_records;) {
    const auto out = graph.outputs_of(graph.records[r]);
    if (!std::any_of(out.begin(), out.end(), [&](ValueId v) { return is_read[v]; })) continue;
    for (const ValueId v : graph.inputs_of(graph.records[r])) add(v);
  }
  return reads;
}

/// Saves costly values that reverse records read: values that are element-wise in these then need
/// not be saved.
void ReversalCut::choose_residuals() {
  std::vector<ValueId> reads = values_read_in_reverse();
  if (spec_.keeps) follow_rule(reads);
  if (spec_.recomputes_all) return;
  const auto save_if = [&](const auto& must_save) {
    for (const ValueId v : reads)
      if (source_[v] == Source::unknown && must_save(v)) source_[v] = Source::residual;
  };
  save_if([&](ValueId v) { return maker_[v] < 0 || !is_cheap(both_.graph->records[maker_[v]]); });
  // Then save values that are not element-wise in available ones, in the order of their records,
  // since a saved value is available to later ones.
  std::sort(reads.begin(), reads.end());
  save_if([&](ValueId v) { return !can_recompute(v); });
}

/// Takes the records that outputs depend on, back to values of another source.
void ReversalCut::take_used_records() {
  for (const ValueId v : both_.graph->outputs) pending_.push_back(v);
  while (!pending_.empty()) {
    const ValueId v = pending_.back();
    pending_.pop_back();
    use(v);
  }
}

void ReversalCut::use(ValueId v) {
  if (!used_.insert(v).second) return;
  if (source_[v] == Source::unknown) {
    const bool is_made = spec_.recomputes_all ? maker_[v] >= 0 : can_recompute(v);
    source_[v] = is_made ? Source::made : Source::residual;
  }
  if (source_[v] == Source::made) take(maker_[v]);
}

void ReversalCut::take(int r) {
  if (takes_[r]) return;
  takes_[r] = 1;
  const OpRecord& record = both_.graph->records[r];
  for (const ValueId v : both_.graph->outputs_of(record))
    if (source_[v] == Source::unknown) source_[v] = Source::made;
  for (const ValueId v : both_.graph->inputs_of(record)) pending_.push_back(v);
  if (!record.attrs) return;
  // The reversed graph must make the dims that the attributes mention. Only a dim that the forward
  // graph makes can be saved instead.
  record.attrs->each_symbol([&](const Dim& dim) {
    const auto maker = dim_maker_.find(dim.node());
    if (maker == dim_maker_.end()) return;
    const bool is_forward = static_cast<std::size_t>(maker->second) < both_.forward_records;
    if (!is_forward || spec_.recomputes_all) take(maker->second);
  });
}

}  // namespace reel
