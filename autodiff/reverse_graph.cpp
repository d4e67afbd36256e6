#include "reel/autodiff/reverse_graph.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "reel/autodiff/recorded_reversal.h"
#include "reel/core/ops/control/checkpointed.h"
#include "reel/core/ops/control/cond.h"
#include "reel/core/ops/control/effects.h"
#include "reel/core/ops/control/identity.h"
#include "reel/core/ops/loop/loop.h"
#include "reel/core/ops/shape/dims.h"
#include "reel/core/ops/shape/shape.h"

namespace reel {
namespace {

/// Decides which values and records of RecordedReversal the reversed graph takes.
class Cut {
 public:
  Cut(const Graph& forward, const ReversalSpec& spec, const RecordedReversal& both)
      : spec_(spec), both_(both) {
    const Graph& graph = *both.graph;
    maker_.assign(graph.types.size(), -1);
    for (std::size_t r = 0; r < graph.records.size(); ++r)
      for (const ValueId v : graph.outputs_of(graph.records[r])) maker_[v] = static_cast<int>(r);
    source_.assign(graph.types.size(), Source::made);
    takes_.assign(graph.records.size(), 0);
    for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
      const bool is_forward_input = i < forward.inputs.size();
      source_[graph.inputs[i]] =
          !is_forward_input || spec.is_free[i] ? Source::input : Source::unknown;
    }
    for (const std::size_t i : spec.kept_anyway)
      if (source_[both.forward_outputs[i]] != Source::input)
        source_[both.forward_outputs[i]] = Source::kept;
    for (std::size_t r = 0; r < both.forward_records; ++r)
      for (const ValueId v : graph.outputs_of(graph.records[r]))
        if (source_[v] == Source::made) source_[v] = Source::unknown;
    std::unordered_set<const DimNode*> from_inputs;
    for (const ValueId v : graph.inputs)
      for_each_bound(graph.types[v], [&](const Dim& d) { from_inputs.insert(d.node()); });
    for (std::size_t r = 0; r < graph.records.size(); ++r)
      for (const ValueId v : graph.outputs_of(graph.records[r]))
        for_each_bound(graph.types[v], [&](const Dim& d) {
          if (!d.has_size() && !from_inputs.count(d.node()))
            born_.emplace(d.node(), static_cast<int>(r));
        });
    find_constants(forward);
    choose();
  }

  enum class Source : std::uint8_t { made, input, kept, residual, unknown };
  Source source(ValueId v) const { return source_[v]; }
  bool takes(std::size_t record) const { return takes_[record]; }
  bool is_used(ValueId v) const { return used_.count(v) != 0; }
  bool spills(ValueId v) const { return verdict(maker_[v]) == Saving::spill; }

 private:
  /// Returns the rule's decision for the values that a forward record makes.
  Saving verdict(int record) const {
    if (!spec_.keeps || record < 0 || static_cast<std::size_t>(record) >= both_.forward_records)
      return Saving::by_default;
    const OpRecord& of = both_.graph->records[static_cast<std::size_t>(record)];
    if (of.op->has_effect || !of.output_count) return Saving::by_default;
    const ValueId v = both_.graph->outputs_of(of)[0];
    return (*spec_.keeps)({of.op->name, checkpoint_name_of(of), both_.graph->types[v]});
  }
  /// Finds values that are equal in every run: computed from constant inputs alone. Passes hoist
  /// them from a loop; otherwise each iteration computes them again, which takes time instead of
  /// memory.
  void find_constants(const Graph& forward) {
    const Graph& graph = *both_.graph;
    is_constant_.assign(graph.types.size(), 0);
    for (std::size_t i = 0; i < forward.inputs.size() && !spec_.is_constant.empty(); ++i)
      is_constant_[graph.inputs[i]] = spec_.is_constant[i];
    const auto mentions_made = [&](const OpRecord& record) {
      bool result = false;
      const auto look = [&](const Dim& dim) { result = result || born_.count(dim.node()); };
      if (record.attrs) record.attrs->each_symbol(look);
      for (const ValueId v : graph.outputs_of(record)) for_each_symbol(graph.types[v], look);
      return result;
    };
    for (std::size_t r = 0; r < both_.forward_records; ++r) {
      const OpRecord& record = graph.records[r];
      const auto in = graph.inputs_of(record);
      if (has_effects(record) || decides_types(record) || has_parts(record) ||
          mentions_made(record) ||
          !std::all_of(in.begin(), in.end(), [&](ValueId v) { return is_constant_[v]; }))
        continue;
      for (const ValueId v : graph.outputs_of(record)) is_constant_[v] = 1;
    }
  }
  /// Returns true if the kernel decides the types. A checkpointed function is excluded: it may have
  /// sizes of its own, but makes them with its results.
  static bool decides_types(const OpRecord& record) {
    return record.op->kernel_decides_types && record.op != &checkpointed_op;
  }
  static bool has_parts(const OpRecord& record) {
    if (record.op == &checkpointed_op)
      return has_loops(*get<CheckpointedAttrs>(record.attrs.get()).body.graph);
    return record.op == &loop_op || record.op == &cond_op;
  }
  /// Values that the rule keeps are available to all others. The operands of values that it
  /// recomputes are needed.
  void follow_rule(std::vector<ValueId>& reads) {
    const Graph& graph = *both_.graph;
    for (std::size_t r = 0; r < both_.forward_records; ++r) {
      const Saving keep = verdict(static_cast<int>(r));
      if (keep != Saving::keep && keep != Saving::spill) continue;
      for (const ValueId v : graph.outputs_of(graph.records[r]))
        if (source_[v] == Source::unknown && !is_constant_[v]) source_[v] = Source::residual;
    }
    for (std::size_t i = 0; i < reads.size(); ++i) {
      const ValueId v = reads[i];
      if (source_[v] != Source::unknown || maker_[v] < 0 || again_.count(maker_[v])) continue;
      if (verdict(maker_[v]) != Saving::recompute) continue;
      again_.insert(maker_[v]);
      for (const ValueId in : graph.inputs_of(graph.records[static_cast<std::size_t>(maker_[v])]))
        reads.push_back(in);
    }
  }
  bool is_cheap(const OpRecord& record) const {
    if (record.op->has_effect) return false;
    if (again_.count(static_cast<int>(&record - both_.graph->records.data()))) return true;
    return record.op->pointwise || record.input_count == 0 ||
           is_constant_[both_.graph->outputs_of(record)[0]];
  }
  /// Returns true if v can be recomputed from available values. (Depth-first over cheap records;
  /// the result is cached.)
  bool can_recompute(ValueId v) {
    if (source_[v] != Source::unknown) return true;
    if (const auto found = cheap_.find(v); found != cheap_.end()) return found->second;
    bool result = false;
    if (maker_[v] >= 0) {
      const OpRecord& record = both_.graph->records[maker_[v]];
      result = is_cheap(record);
      const auto in = both_.graph->inputs_of(record);
      for (std::size_t i = 0; result && i < in.size(); ++i) result = can_recompute(in[i]);
    }
    return cheap_[v] = result;
  }
  void use(ValueId v) {
    if (!used_.insert(v).second) return;
    if (source_[v] == Source::unknown) {
      if (spec_.recomputes_all ? maker_[v] >= 0 : can_recompute(v))
        source_[v] = Source::made;
      else
        source_[v] = Source::residual;
    }
    if (source_[v] == Source::made) take(maker_[v]);
  }
  void take(int r) {
    if (takes_[r]) return;
    takes_[r] = 1;
    const OpRecord& record = both_.graph->records[r];
    for (const ValueId v : both_.graph->outputs_of(record))
      if (source_[v] == Source::unknown) source_[v] = Source::made;
    for (const ValueId v : both_.graph->inputs_of(record)) pending_.push_back(v);
    if (!record.attrs) return;
    // A mentioned dim must be made here as well; a dim that the forward graph makes can be saved.
    record.attrs->each_symbol([&](const Dim& dim) {
      const auto born = born_.find(dim.node());
      if (born == born_.end()) return;
      const bool is_forward = static_cast<std::size_t>(born->second) < both_.forward_records;
      if (!is_forward || spec_.recomputes_all) take(born->second);
    });
  }
  void choose() {
    // First save costly values that reverse records read. Values that are element-wise in these
    // then need not be saved.
    std::vector<ValueId> reads;
    const Graph& graph = *both_.graph;
    std::vector<std::uint8_t> live(graph.types.size(), 0);
    for (const ValueId v : graph.outputs) live[v] = 1, reads.push_back(v);
    for (std::size_t r = graph.records.size(); r-- > both_.forward_records;) {
      const auto out = graph.outputs_of(graph.records[r]);
      if (!std::any_of(out.begin(), out.end(), [&](ValueId v) { return live[v]; })) continue;
      for (const ValueId v : graph.inputs_of(graph.records[r])) live[v] = 1, reads.push_back(v);
    }
    if (spec_.keeps) follow_rule(reads);
    if (!spec_.recomputes_all) {
      const auto save_if = [&](const auto& has_to) {
        for (const ValueId v : reads)
          if (source_[v] == Source::unknown && has_to(v)) source_[v] = Source::residual;
      };
      save_if([&](ValueId v) { return maker_[v] < 0 || !is_cheap(graph.records[maker_[v]]); });
      // Then save values that are not element-wise in available ones, in the order of their
      // records, since a saved value is available to later ones.
      std::sort(reads.begin(), reads.end());
      save_if([&](ValueId v) { return !can_recompute(v); });
    }
    for (const ValueId v : graph.outputs) pending_.push_back(v);
    while (!pending_.empty()) {
      const ValueId v = pending_.back();
      pending_.pop_back();
      use(v);
    }
  }

  const ReversalSpec& spec_;
  const RecordedReversal& both_;
  std::vector<int> maker_;
  std::vector<Source> source_;
  std::vector<std::uint8_t> takes_;
  std::vector<std::uint8_t> is_constant_;  ///< by value
  std::unordered_set<ValueId> used_;
  std::unordered_map<ValueId, bool> cheap_;
  std::unordered_map<const DimNode*, int> born_;  // the record that makes a dim
  std::unordered_set<int> again_;                 ///< forward records that the rule recomputes
  std::vector<ValueId> pending_;
};

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

/// Returns the dims that values of the forward graph determine. A list of residuals over hist + 1
/// does not determine hist.
std::unordered_set<const DimNode*> dims_known_in(const RecordedReversal& both) {
  std::unordered_set<const DimNode*> known;
  const Graph& graph = *both.graph;
  const auto add = [&](ValueId v) {
    for_each_bound(graph.types[v], [&](const Dim& dim) { known.insert(dim.node()); });
  };
  for (const ValueId v : graph.inputs) add(v);
  for (std::size_t r = 0; r < both.forward_records; ++r)
    for (const ValueId v : graph.outputs_of(graph.records[r])) add(v);
  return known;
}

bool is_computed_from(const Dim& computed, const Dim& dim) {
  bool result = false;
  if (expression_of(computed))
    for_each_symbol(computed, [&](const Dim& of) { result = result || of.node() == dim.node(); });
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

/// Returns the dims that forward records make in a run. A dim may have no other mention there: a
/// result that gets the name of a known dim is renamed at once, and only the vjp of that rename
/// mentions the dim of the result.
Dims dims_made_forward(const RecordedReversal& both) {
  const Graph& graph = *both.graph;
  std::unordered_set<const DimNode*> known;
  for (const Dim& dim : graph.schedule().free_symbols) known.insert(dim.node());
  for (const ValueId v : graph.inputs)
    for_each_bound(graph.types[v], [&](const Dim& dim) { known.insert(dim.node()); });
  Dims result;
  for (std::size_t r = 0; r < both.forward_records; ++r)
    for (const ValueId v : graph.outputs_of(graph.records[r]))
      if (!graph.types[v].is_list())  // a list may not know the dims of its elements
        for_each_bound(graph.types[v], [&](const Dim& dim) {
          if (!dim.has_size() && known.insert(dim.node()).second) result.push_back(dim);
        });
  return result;
}

}  // namespace

ReversedGraph reverse_graph(const Graph& forward, const ReversalSpec& spec) {
  const RecordedReversal both = record_reversal(forward, spec);
  const Graph& from = *both.graph;
  const Cut cut(forward, spec, both);
  ReversedGraph result;
  result.graph = Ref<Graph>(new Graph);
  result.cotangents = both.cotangents;
  result.wanted = both.wanted;
  result.presences = both.presences;
  result.row_numbers = both.row_numbers;
  Graph& to = *result.graph;
  to.name = from.name;
  std::vector<ValueId> value(from.types.size(), ~0u);
  const auto add_input = [&](ValueId v) {
    to.inputs.push_back(value[v] = to.add_value(from.types[v]));
  };

  std::unordered_set<const DimNode*> own;  // dims that its runs make or bring along
  for (const auto& [symbol, here] : both.dims) own.insert(here.node());
  std::unordered_set<const DimNode*>
      local;  // of these: made in the graph, or a size that may change
  for (std::size_t i = 0; i < both.dims.size(); ++i)
    if (both.dims[i].first.node() != both.dims[i].second.node() || !both.dims[i].first.is_named())
      local.insert(both.dims[i].second.node());
  for (const Dim& dim : dims_made_forward(both)) {
    own.insert(dim.node());
    local.insert(dim.node());
  }
  if (!spec.is_varying.empty()) {
    std::unordered_set<const DimNode*> fixed;
    for (const Dim& dim : forward.schedule().free_symbols) fixed.insert(dim.node());
    for (std::size_t i = 0; i < forward.inputs.size(); ++i)
      if (!spec.is_varying[i])
        for_each_symbol(forward.types[forward.inputs[i]],
                        [&](const Dim& dim) { fixed.insert(dim.node()); });
    for (std::size_t i = 0; i < forward.inputs.size(); ++i)
      if (spec.is_varying[i])
        for_each_symbol(forward.types[forward.inputs[i]], [&](const Dim& dim) {
          if (!fixed.count(dim.node())) local.insert(dim.node());
        });
  }
  const auto is_local = [&](const TensorType& type) {
    bool result = false;
    for_each_symbol(type, [&](const Dim& dim) { result = result || local.count(dim.node()); });
    return result;
  };

  const std::size_t forward_inputs = forward.inputs.size();
  std::unordered_set<const DimNode*> bound;  // dims that inputs of the reversed graph determine
  const auto brings = [&](const TensorType& type) {
    for_each_bound(type, [&](const Dim& dim) { bound.insert(dim.node()); });
    for (const Dim& dim : type.dims())
      if (expression_of(dim)) bound.insert(dim.node());
  };
  for (std::size_t i = 0; i < both.cotangents.size(); ++i) {
    add_input(from.inputs[forward_inputs + i]);
    brings(from.types[from.inputs[forward_inputs + i]]);
  }
  std::vector<std::uint8_t> takes_input(forward_inputs, 0);
  for (std::size_t i = 0; i < forward_inputs; ++i) {
    takes_input[i] =
        cut.source(from.inputs[i]) == Cut::Source::input && cut.is_used(from.inputs[i]);
    if (takes_input[i]) brings(from.types[from.inputs[i]]);
  }
  for (const std::size_t i : spec.kept_anyway) {
    const ValueId v = both.forward_outputs[i];
    if (cut.source(v) == Cut::Source::kept && cut.is_used(v)) brings(from.types[v]);
  }
  for (ValueId v = 0; v < from.types.size(); ++v)
    if (cut.source(v) == Cut::Source::residual && cut.is_used(v)) brings(from.types[v]);

  // If a taken record mentions a dim before an input determines it, a free input or a token must
  // provide it.
  Dims tokens;
  const std::unordered_set<const DimNode*> known = dims_known_in(both);
  // If forward inputs have dims that are computed from `dim` (hist + 1), provides these instead.
  const auto need_computed = [&](const Dim& dim) {
    for (std::size_t i = 0; i < forward_inputs; ++i)
      for (const Dim& computed : from.types[from.inputs[i]].dims()) {
        if (!is_computed_from(computed, dim)) continue;
        bound.insert(dim.node());
        if (!bound.insert(computed.node()).second) continue;
        if (spec.is_free[i])
          takes_input[i] = 1;
        else
          tokens.push_back(computed);
      }
  };
  const auto need = [&](const Dim& dim) {
    if (!(spec.is_enclosed ? local : own).count(dim.node()) || bound.count(dim.node())) return;
    for (std::size_t i = 0; i < forward_inputs && !bound.count(dim.node()); ++i) {
      bool has_it = false;
      for_each_bound(from.types[from.inputs[i]],
                     [&](const Dim& of) { has_it = has_it || of.node() == dim.node(); });
      if (!has_it || !spec.is_free[i]) continue;
      takes_input[i] = 1;
      brings(from.types[from.inputs[i]]);
    }
    if (!known.count(dim.node()) && !bound.count(dim.node())) need_computed(dim);
    // A static dim without a source was made inside, and can be made again.
    if (bound.insert(dim.node()).second && !dim.has_size()) tokens.push_back(dim);
  };
  for (std::size_t r = 0; r < from.records.size(); ++r) {
    if (!cut.takes(r)) continue;
    // A plain dim that rename makes has the operand's size.
    const bool is_rename = from.records[r].op == &rename_op;
    if (from.records[r].attrs)
      from.records[r].attrs->each_symbol([&](const Dim& dim) {
        if (!is_rename || dim.is_named()) need(dim);
      });
    for (const ValueId v : from.outputs_of(from.records[r])) brings(from.types[v]);
  }

  for (std::size_t i = 0; i < forward_inputs; ++i)
    if (takes_input[i]) {
      result.inputs.push_back(i);
      add_input(from.inputs[i]);
    }
  for (const std::size_t i : spec.kept_anyway) {
    const ValueId v = both.forward_outputs[i];
    if (cut.source(v) == Cut::Source::kept && cut.is_used(v) && value[v] == ~0u) {
      result.kept.push_back(i);
      add_input(v);
    }
  }
  result.forward = forward_part(both, forward);
  for (ValueId v = 0; v < from.types.size(); ++v)
    if (cut.source(v) == Cut::Source::residual && cut.is_used(v)) {
      result.residuals.push_back({v, from.types[v], cut.spills(v), is_local(from.types[v])});
      add_input(v);
    }
  for (const Dim& dim : tokens) {
    const TensorType type = token_type(dim);
    result.residuals.push_back({append_dim_token(*result.forward, dim), type, false, true});
    to.inputs.push_back(to.add_value(type));
  }
  to.formal_count = to.inputs.size();
  for (std::size_t i = forward_inputs + both.cotangents.size(); i < from.inputs.size(); ++i)
    if (cut.is_used(from.inputs[i])) {
      add_input(from.inputs[i]);
      result.captured.push_back(both.captured[i - forward_inputs - both.cotangents.size()]);
    }

  const std::vector<Recompute> recompute = find_recomputed(forward, spec, both);
  for (std::size_t r = 0; r < from.records.size(); ++r) {
    if (!cut.takes(r)) continue;
    const OpRecord& record = from.records[r];
    std::vector<ValueId> in, out;
    for (const ValueId v : from.inputs_of(record)) in.push_back(value[v]);
    if (record.op->has_effect && !is_collective(*record.op) && r < both.forward_records) {
      value[from.outputs_of(record)[0]] = in[0];  // it was printed when it was first computed
      continue;
    }
    for (const ValueId v : from.outputs_of(record)) {
      const ValueId copy = to.add_value(from.types[v]);
      if (value[v] == ~0u) value[v] = copy;
      out.push_back(copy);
    }
    to.append(*record.op, record.attrs, in, out, record.source, recompute[r]);
  }
  for (const ValueId v : from.outputs) to.outputs.push_back(value[v]);
  to.seal();
  result.forward->seal();
  result.forward->renames = to.renames = forward.renames;
  return result;
}

}  // namespace reel
