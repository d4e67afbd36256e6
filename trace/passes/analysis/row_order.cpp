#include "reel/trace/passes/analysis/row_order.h"

#include <algorithm>

#include "reel/core/ops/control/effects.h"
#include "reel/core/ops/loop/loop.h"
#include "reel/core/ops/shape/lengths_read.h"
#include "reel/trace/passes/analysis/row_axes.h"

namespace reel {
namespace {

/// Returns the dim along which a loop runs until each row ends: a ragged dim with a length for each
/// row. Returns nothing for other loops.
std::optional<Dim> ragged_dim_of(const Graph& graph, const OpRecord& record) {
  const auto& attrs = get<LoopAttrs>(record.attrs.get());
  if (attrs.entries.dims.size() != 1 || !attrs.trips.has_lengths) return std::nullopt;
  const auto in = graph.inputs_of(record);
  Dims found;
  for (const ValueId v : operands_of(attrs, in).slices)
    if (graph.types[v].rank() > 0) found.push_back(graph.types[v].dims()[0]);  // no list
  for (const LoopStack& stack : attrs.stacks) found.push_back(stack.dim);
  for (const Dim& dim : found)
    if (dim.is_symbol() && dim.is_ragged() && dim.length_dims().size() == 1) return dim;
  return std::nullopt;
}

/// Counts the values with rows that an iteration reads from outside and writes.
int leaves_with_rows(const Graph& graph, const OpRecord& record, const RowAxes& axes) {
  const auto& attrs = get<LoopAttrs>(record.attrs.get());
  const auto has_rows = [&](ValueId v) { return axes[v] >= 0; };
  return static_cast<int>(
      std::ranges::count_if(operands_of(attrs, graph.inputs_of(record)).slices, has_rows) +
      std::ranges::count_if(operands_of(attrs, graph.inputs_of(record)).captures, has_rows) +
      std::ranges::count_if(results_of(attrs, graph.outputs_of(record)).stacks, has_rows));
}

/// Returns true if the graph names a dim that depends on the rows and that no argument has: its
/// lengths would stay in their places.
bool names_other_lengths(const Graph& graph, const Dim& rows) {
  const auto is_other = [&](const Dim& dim) {
    return dim.is_ragged() && !dim.is_symbol() && depends_on_rows(dim, rows);
  };
  for (const TensorType& type : graph.types)
    if (std::ranges::any_of(type.dims(), is_other)) return true;
  return std::ranges::any_of(graph.records, [&](const OpRecord& record) {
    const std::optional<Dim> read = dim_read_by(*record.op, record.attrs.get());
    return read && is_other(*read);
  });
}

/// Returns true for a list with elements that have the rows, or a dim that depends on them.
bool is_list_with_rows(const TensorType& type, const Dim& rows) {
  return type.is_list() && std::ranges::any_of(type.dims(), [&](const Dim& dim) {
           return depends_on_rows(dim, rows);
         });
}

/// Follows, in any order, the rows of loops with entries that finish one by one. Returns nothing if
/// there are none, if the graph has effects, or if a list or a dim has lengths that cannot change
/// places.
std::optional<RowAxes> rows_in_any_order(const Graph& graph) {
  const std::optional<Dim> rows = rows_of_loops(graph);
  if (!rows || has_effects(graph) || names_other_lengths(graph, *rows)) return std::nullopt;
  RowAxes axes(graph, *rows, RowAxes::Joint::any_order);
  const Dim none = token_type(*rows).dims()[0];
  for (const ValueId v : graph.inputs) {
    const TensorType& type = graph.types[v];
    const bool is_token = type.rank() == 2 && type.dims()[0] == none;
    const int axis = is_token ? -1 : find(type.dims(), *rows);
    if (is_list_with_rows(type, *rows)) return std::nullopt;
    axes.seed(v, axis);
  }
  axes.follow();
  return axes;
}

/// Returns true if an output depends on the order of the rows.
bool depends_on_order(const Graph& graph, const RowAxes& axes) {
  return std::ranges::any_of(graph.outputs, [&](ValueId v) {
    return axes[v] == RowAxes::kMixed || is_list_with_rows(graph.types[v], axes.dim());
  });
}

}  // namespace

bool depends_on_rows(const Dim& dim, const Dim& rows) {
  return dim == rows || std::ranges::any_of(dim.length_dims(), [&](const Dim& of) {
           return depends_on_rows(of, rows);
         });
}

std::optional<Dim> rows_of_loops(const Graph& graph) {
  for (const OpRecord& record : graph.records)
    if (record.op == &loop_op)
      if (const auto dim = ragged_dim_of(graph, record)) return dim->length_dims()[0];
  return std::nullopt;
}

const Op* op_on_order_of_rows(const Graph& graph) {
  const std::optional<RowAxes> axes = rows_in_any_order(graph);
  return axes && depends_on_order(graph, *axes) ? axes->first_mixing() : nullptr;
}

std::optional<RowOrder> find_row_order(const Graph& graph, bool any) {
  const std::optional<RowAxes> found = rows_in_any_order(graph);
  if (!found || depends_on_order(graph, *found)) return std::nullopt;
  const RowAxes& axes = *found;
  const Dim& rows = axes.dim();
  RowOrder result{rows, {}, {}, {}};
  for (const ValueId v : graph.inputs) result.inputs.push_back(axes[v]);
  for (const ValueId v : graph.outputs) result.outputs.push_back(axes[v]);
  int in_loops = 0;
  for (const OpRecord& record : graph.records) {
    if (record.op != &loop_op) continue;
    const std::optional<Dim> dim = ragged_dim_of(graph, record);
    if (!dim || !(dim->length_dims()[0] == rows)) continue;
    const int leaves = leaves_with_rows(graph, record, axes);
    in_loops += leaves;
    const auto known = std::ranges::find(result.lengths, *dim, &RowOrder::Lengths::dim);
    if (known == result.lengths.end())
      result.lengths.push_back({*dim, leaves});
    else
      known->leaves += leaves;
  }
  // A value without a dim that a loop runs along is small.
  const auto is_large = [&](ValueId v) {
    return axes[v] >= 0 && std::ranges::any_of(graph.types[v].dims(), [&](const Dim& dim) {
             return contains(dim.length_dims(), rows);
           });
  };
  const auto outside = std::ranges::count_if(graph.inputs, is_large) +
                       std::ranges::count_if(graph.outputs, is_large);
  if (!any && in_loops < 2 * outside) return std::nullopt;
  return result;
}

}  // namespace reel
