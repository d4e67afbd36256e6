#include "reel/trace/passes/residuals/sink_updates.h"

#include <algorithm>
#include <numeric>
#include <unordered_set>
#include <vector>

#include "reel/core/dims/dim_env.h"
#include "reel/core/graph/graph_rewriter.h"
#include "reel/core/op/facts.h"
#include "reel/core/ops/control/effects.h"
#include "reel/core/ops/control/fused.h"

namespace reel {
namespace {

/// Divides records into late ones, which are updates or wait for updates, and all others.
class LateRecords {
 public:
  explicit LateRecords(const Graph& graph)
      : graph_(graph),
        is_argument_(graph.types.size()),
        is_result_(graph.types.size()),
        is_late_value_(graph.types.size()),
        is_updated_(graph.types.size()) {
    for (std::size_t i = 0; i < graph.formal_count; ++i) is_argument_[graph.inputs[i]] = 1;
    for (const ValueId v : graph.outputs) is_result_[v] = 1;
    for (const ValueId v : graph.inputs)
      for_each_bound(graph.types[v], [&](const Dim& dim) { bound_.insert(dim.node()); });
    for (const OpRecord& record : graph.records) add(record);
  }

  /// By record.
  const std::vector<std::uint8_t>& are_late() const { return is_late_; }
  /// True if a record that is not late stands behind an update and keeps it from being in place.
  bool are_in_the_way() const { return are_in_the_way_; }
  /// True if late records can neither fail nor have effects.
  bool are_silent() const { return are_silent_; }

 private:
  void add(const OpRecord& record) {
    const bool waits = waits_for_late(record), updates = is_update(record);
    is_late_.push_back(waits || updates);
    if (is_late_.back()) {
      for (const ValueId v : graph_.outputs_of(record)) is_late_value_[v] = 1;
      are_silent_ = are_silent_ && !fails_for_values(*record.op, record.attrs.get());
      any_update_ = any_update_ || updates;
    } else if (any_update_) {
      const auto in = graph_.inputs_of(record);
      const Failures failures = failures_of(*record.op, record.attrs.get());
      are_in_the_way_ =
          are_in_the_way_ || failures.values || failures.memory ||
          std::any_of(in.begin(), in.end(), [&](ValueId v) { return is_updated_[v]; });
    }
    for (const ValueId v : graph_.outputs_of(record))
      for_each_bound(graph_.types[v], [&](const Dim& dim) {
        if (bound_.insert(dim.node()).second && is_late_.back()) bound_late_.insert(dim.node());
      });
  }

  /// Notes which arguments it updates.
  bool is_update(const OpRecord& record) {
    if (!record.op->pointwise && record.op != &fused_op) return false;
    bool result = false;
    for (const ValueId out : graph_.outputs_of(record))
      for (const ValueId in : graph_.inputs_of(record)) {
        if (!is_result_[out] || !is_argument_[in] || is_result_[in] ||
            graph_.types[in] != graph_.types[out])
          continue;
        is_updated_[in] = 1;
        result = true;
      }
    return result;
  }

  bool waits_for_late(const OpRecord& record) const {
    const auto in = graph_.inputs_of(record);
    if (std::any_of(in.begin(), in.end(), [&](ValueId v) { return is_late_value_[v]; }))
      return true;
    if (bound_late_.empty()) return false;
    bool result = false;
    const auto look = [&](const Dim& dim) { result = result || bound_late_.contains(dim.node()); };
    if (record.attrs) record.attrs->each_symbol(look);
    for (const ValueId v : in) for_each_symbol(graph_.types[v], look);
    for (const ValueId v : graph_.outputs_of(record)) for_each_symbol(graph_.types[v], look);
    return result;
  }

  const Graph& graph_;
  std::vector<std::uint8_t> is_argument_, is_result_, is_late_value_, is_updated_;  ///< by value
  std::unordered_set<const DimNode*> bound_, bound_late_;
  std::vector<std::uint8_t> is_late_;
  bool any_update_ = false, are_in_the_way_ = false, are_silent_ = true;
};

/// Returns the order of records with late ones behind all others.
std::vector<std::size_t> late_last(const std::vector<std::uint8_t>& are_late) {
  std::vector<std::size_t> order(are_late.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_partition(order.begin(), order.end(), [&](std::size_t r) { return !are_late[r]; });
  return order;
}

/// Sinks updates in the bodies of fused ops. Without machine code for chains, a plan runs these op
/// by op, tile by tile. An update overwrites an argument's tile, so ops behind must not read it.
class FusedUpdates {
 public:
  explicit FusedUpdates(const Graph& graph)
      : graph_(graph), is_argument_(graph.types.size()), is_result_(graph.types.size()) {
    for (std::size_t i = 0; i < graph.formal_count; ++i) is_argument_[graph.inputs[i]] = 1;
    for (const ValueId v : graph.outputs) is_result_[v] = 1;
  }

  /// Returns the attributes of a record, with the updates of its body behind reads of arguments.
  AttrsRef sunk(const OpRecord& record) const {
    if (record.op != &fused_op) return record.attrs;
    const SubGraph& sub = get<FusedAttrs>(record.attrs.get()).body;
    const Graph& body = *sub.graph;
    const std::vector<std::uint8_t> are_late = late_records(record, body);
    if (are_late.empty()) return record.attrs;
    GraphRewriter to(body);
    for (const std::size_t r : late_last(are_late)) to.keep(body.records[r]);
    const Ref<Graph> changed = to.finish();
    // A dim may have been bound by a late record only.
    if (changed->schedule().free_symbols.size() != body.schedule().free_symbols.size())
      return record.attrs;
    DimEnv env = sub.env();
    return make_attrs(FusedAttrs{make_sub_graph(changed, env)});
  }

 private:
  /// Returns, by record of the body, true if it makes a result that may replace an argument, or
  /// waits for one. Returns nothing if no other record reads such an argument behind the result.
  std::vector<std::uint8_t> late_records(const OpRecord& record, const Graph& body) const {
    const auto in = graph_.inputs_of(record), out = graph_.outputs_of(record);
    std::vector<std::uint8_t> is_late_value(body.types.size()), may_be_replaced(body.types.size()),
        replaces(body.types.size()), result;
    for (std::size_t i = 0; i < in.size(); ++i)
      for (std::size_t k = 0; k < out.size(); ++k)
        if (is_argument_[in[i]] && !is_result_[in[i]] && is_result_[out[k]] &&
            graph_.types[in[i]] == graph_.types[out[k]])
          may_be_replaced[body.inputs[i]] = replaces[body.outputs[k]] = 1;
    bool any_update = false, are_in_the_way = false;
    for (const OpRecord& of : body.records) {
      const auto reads = body.inputs_of(of), makes = body.outputs_of(of);
      const auto any = [](auto values, const std::vector<std::uint8_t>& flags) {
        return std::any_of(values.begin(), values.end(), [&](ValueId v) { return flags[v]; });
      };
      const bool updates = any(makes, replaces);
      result.push_back(updates || any(reads, is_late_value));
      if (result.back())
        for (const ValueId v : makes) is_late_value[v] = 1;
      else
        are_in_the_way = are_in_the_way || (any_update && any(reads, may_be_replaced));
      any_update = any_update || updates;
    }
    if (!are_in_the_way) result.clear();
    return result;
  }

  const Graph& graph_;
  std::vector<std::uint8_t> is_argument_, is_result_;  ///< by value
};

}  // namespace

Ref<Graph> sink_updates(const Graph& graph) {
  GraphRewriter to(graph);
  const FusedUpdates fused(graph);
  const LateRecords late(graph);
  const bool sinks = late.are_in_the_way() && (late.are_silent() || !has_effects(graph));
  const std::vector<std::uint8_t> none(graph.records.size());
  for (const std::size_t r : late_last(sinks ? late.are_late() : none))
    to.keep(graph.records[r], fused.sunk(graph.records[r]));
  return to.finish();
}

}  // namespace reel
