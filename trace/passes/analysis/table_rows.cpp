#include "reel/trace/passes/analysis/table_rows.h"

#include <algorithm>
#include <numeric>

#include "reel/core/op/facts.h"
#include "reel/core/ops/control/effects.h"
#include "reel/core/ops/creation/creation.h"
#include "reel/core/ops/shape/shape.h"

namespace reel {
namespace {

bool takes_whole_rows(const GatherAttrs& attrs, const TensorType& table) {
  return attrs.axis == 0 && attrs.count == 1 && attrs.rule != IndexRule::optional &&
         table.rank() == 2 && table.is_known() && !table.is_ragged() && is_float(table.dtype()) &&
         std::all_of(attrs.matched.begin(), attrs.matched.end(), [](int i) { return i < 0; });
}

}  // namespace

FindTableRows::FindTableRows(const Graph& graph)
    : graph_(graph), maker_(graph.types.size(), kNone), readers_(graph.types.size()) {
  for (std::size_t r = 0; r < graph.records.size(); ++r) {
    for (const ValueId v : graph.outputs_of(graph.records[r])) maker_[v] = r;
    for (const ValueId v : graph.inputs_of(graph.records[r])) readers_[v].push_back(r);
  }
  for (const ValueId v : graph.outputs) readers_[v].push_back(kNone);
}

const OpRecord* FindTableRows::made_by(ValueId v) const {
  return maker_[v] == kNone ? nullptr : &graph_.records[maker_[v]];
}

bool FindTableRows::is_made_before(ValueId v, std::size_t record) const {
  return maker_[v] == kNone || maker_[v] < record;
}

/// Follows transpositions that leave the last axis in place back to their origin, and returns that
/// value. order: the axes of v, in axes of the origin.
ValueId FindTableRows::through_transpositions(ValueId v, std::vector<int>& order) const {
  order.resize(static_cast<std::size_t>(graph_.types[v].rank()));
  std::iota(order.begin(), order.end(), 0);
  for (;;) {
    const OpRecord* record = made_by(v);
    if (!record || record->op != &transpose_op) return v;
    const auto& axes = get<TransposeAttrs>(record->attrs.get()).order;
    if (axes.back() != static_cast<int>(axes.size()) - 1) return v;
    for (int& axis : order) axis = axes[static_cast<std::size_t>(axis)];
    v = graph_.inputs_of(*record)[0];
  }
}

std::optional<TableRowAccess> FindTableRows::rows_of(const OpRecord& record,
                                                     std::vector<int> order) const {
  const auto in = graph_.inputs_of(record);
  const auto& attrs = get<GatherAttrs>(record.attrs.get());
  if (!takes_whole_rows(attrs, graph_.types[in[0]]) || order.size() < 2) return std::nullopt;
  order.pop_back();  // the columns
  return TableRowAccess{in[0], in[1], std::move(order), &attrs};
}

bool FindTableRows::prints_between(std::size_t first, std::size_t last) const {
  for (std::size_t r = first + 1; r < last; ++r) {
    const OpRecord& record = graph_.records[r];
    if (record.op->has_effect || has_effects(record)) return true;
  }
  return false;
}

std::optional<TableRowAccess> FindTableRows::gathered(ValueId slices, std::size_t loop) const {
  if (graph_.types[slices].is_list()) return std::nullopt;
  std::vector<int> order;
  const ValueId v = through_transpositions(slices, order);
  const OpRecord* record = made_by(v);
  if (!record || record->op != &gather_op || prints_between(maker_[v], loop)) return std::nullopt;
  return rows_of(*record, std::move(order));
}

std::optional<FindTableRows::Scattered> FindTableRows::scattered(ValueId stack,
                                                                 std::size_t loop) const {
  ValueId v = stack;
  std::size_t scatter = 0;
  for (;;) {
    if (readers_[v].size() != 1 || readers_[v][0] == kNone) return std::nullopt;
    scatter = readers_[v][0];
    if (graph_.records[scatter].op != &transpose_op) break;
    v = graph_.outputs_of(graph_.records[scatter])[0];
  }
  const OpRecord& record = graph_.records[scatter];
  if (record.op != &scatter_add_op) return std::nullopt;
  const auto in = graph_.inputs_of(record);
  const OpRecord* table = made_by(in[0]);
  std::vector<int> axes;
  if (in[2] != v || !table || !makes_zeros(*table->op, table->attrs.get()) ||
      through_transpositions(v, axes) != stack || !is_made_before(in[1], loop) ||
      prints_between(loop, scatter))
    return std::nullopt;
  std::vector<int> order(axes.size());  // by axis of the stack, the axis of the updates
  for (std::size_t i = 0; i < axes.size(); ++i)
    order[static_cast<std::size_t>(axes[i])] = static_cast<int>(i);
  auto rows = rows_of(record, std::move(order));
  if (!rows) return std::nullopt;
  return Scattered{*std::move(rows), scatter};
}

}  // namespace reel
