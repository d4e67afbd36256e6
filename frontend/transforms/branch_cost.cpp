#include "reel/frontend/transforms/branch_cost.h"

#include <algorithm>
#include <utility>

#include "reel/core/ops/control/checkpointed.h"
#include "reel/core/ops/control/cond.h"
#include "reel/core/ops/control/effects.h"
#include "reel/core/ops/indexing/sort.h"
#include "reel/core/ops/loop/loop.h"
#include "reel/core/ops/products/products.h"
#include "reel/core/ops/shape/iteration_batching.h"

namespace reel {
namespace {

// Measured with a branch of two products of 256x256, or of 4 to 16 functions of 256 elements (AMD
// EPYC with AVX2, two cores): packing takes 10 to 20 µs for 64 rows or less, and is as fast as the
// whole branch if this takes 30 µs. A function of an element takes 0.1 to 0.5 ns.
// To sort an element takes 11 to 25 ns, 40 to 80 times as long (Intel Xeon with AVX-512).
constexpr double kProduct = 1. / 16, kSorted = 64, kRowByRow = 4096, kIterations = 16,
                 kUnknownSize = 64, kUnknownRows = 1024, kPerMoved = 4, kMinCost = 1 << 18;

double size_of(const Dim& dim, double unknown = kUnknownSize) {
  return dim.has_size() ? static_cast<double>(dim.size()) : unknown;
}
double numel_of(const TensorType& type) { return estimated_numel(type, kUnknownSize); }

double cost_of(const Graph& graph);

double cost_of_loop(const LoopAttrs& attrs, const Graph& graph, const OpRecord& record) {
  const auto in = graph.inputs_of(record);
  double iterations = 0;
  for (const ValueId v : operands_of(attrs, in).slices)
    if (!graph.types[v].is_list())
      iterations = std::max(iterations, size_of(graph.types[v].dims()[0]));
  if (attrs.slices.empty()) iterations = kIterations;
  return iterations * (cost_of(*attrs.body.graph) + (attrs.cond ? cost_of(*attrs.cond.graph) : 0));
}

double cost_of(const Graph& graph, const OpRecord& record) {
  const auto in = graph.inputs_of(record), out = graph.outputs_of(record);
  if (record.op == &loop_op) return cost_of_loop(get<LoopAttrs>(record.attrs.get()), graph, record);
  if (record.op == &cond_op) {
    const auto& attrs = get<CondAttrs>(record.attrs.get());
    return std::max(cost_of(*attrs.on_true.graph), cost_of(*attrs.on_false.graph));
  }
  if (record.op == &checkpointed_op)
    return cost_of(*get<CheckpointedAttrs>(record.attrs.get()).body.graph);
  if (in.empty() || out.empty() || record.op->storage == OpStorage::input) return 0;
  const double made = numel_of(graph.types[out[0]]);
  if (record.op == &dot_op) {
    double inner = 1;
    for (const int axis : get<DotAttrs>(record.attrs.get()).a_contract)
      inner *= size_of(graph.types[in[0]].dims()[static_cast<std::size_t>(axis)]);
    return kProduct * inner * made;
  }
  const double elements = std::max(made, numel_of(graph.types[in[0]]));
  if (record.op == &argsort_op) return kSorted * elements;
  const bool is_row_by_row =
      !iteration_batching_rule(*record.op) && graph.types[out[0]].rank() && made > 0;
  return elements + (is_row_by_row ? kRowByRow : 0);
}

double cost_of(const Graph& graph) {
  double result = 0;
  for (const OpRecord& record : graph.records) result += cost_of(graph, record);
  return result;
}

constinit thread_local TakenRowsRule open_rule = TakenRowsRule::by_cost;

}  // namespace

double estimated_numel(const TensorType& type, double unknown_size) {
  if (type.is_list()) return 0;
  double result = 1;
  for (const Dim& dim : type.dims()) result *= size_of(dim, unknown_size);
  return result;
}

TakenRowsScope::TakenRowsScope(TakenRowsRule rule) : before_(std::exchange(open_rule, rule)) {}
TakenRowsScope::~TakenRowsScope() { open_rule = before_; }

bool computes_taken_rows(const SubGraph& branch, const RowValues& captures, const Rows& rows) {
  const Graph& graph = *branch.graph;
  if (open_rule == TakenRowsRule::never || has_collectives(graph)) return false;
  if (open_rule == TakenRowsRule::always || has_effects(graph)) return true;
  double moved = 0;
  for (const RowValue& value : captures)
    if (value.is_many) moved += numel_of(type_of_row(value));
  for (const ValueId v : graph.outputs) moved += 2 * numel_of(graph.types[v]);
  const double cost = cost_of(graph),
               count = rows.named.has_size() ? size_of(rows.named) : kUnknownRows;
  return cost >= kPerMoved * moved && cost * count >= kMinCost;
}

}  // namespace reel
