#include "reel/trace/passes/loop_structure/group_pipelined_loops.h"

#include <algorithm>
#include <optional>
#include <unordered_set>
#include <vector>

#include "reel/core/graph/graph_rewriter.h"
#include "reel/core/ops/control/effects.h"
#include "reel/core/ops/loop/loop.h"
#include "reel/trace/passes/support/sub_graphs.h"

namespace reel {
namespace {

const LoopAttrs* loop_in_chunks(const Graph& graph, std::size_t record) {
  if (graph.records[record].op != &loop_op) return nullptr;
  const auto& attrs = get<LoopAttrs>(graph.records[record].attrs.get());
  return attrs.chunking.over_chunks ? &attrs : nullptr;
}

using Order = std::vector<std::size_t>;

/// Returns true if the record's attributes mention a dim that another record of the graph makes. It
/// then depends on the other record, although it reads none of its values.
bool mentions_born_dims(const Graph& graph, const OpRecord& record) {
  if (!record.attrs) return false;
  Dims known = graph.schedule().free_symbols;
  for (const ValueId v : graph.inputs)
    for_each_bound(graph.types[v], [&](const Dim& dim) { known.push_back(dim); });
  bool result = false;
  record.attrs->each_symbol(
      [&](const Dim& dim) { result = result || (!dim.has_size() && !contains(known, dim)); });
  return result;
}

/// Moves the records between the loops at places [begin, end) of the order and the loop at `next`.
/// This loop then directly follows the others.
///
/// Returns the number of places by which the loops moved on. Returns nothing, and leaves the order
/// unchanged, if the loop depends on a record that depends on the other loops.
std::optional<std::size_t> close_up(const Graph& graph, Order& order, std::size_t begin,
                                    std::size_t end, std::size_t next) {
  if (mentions_born_dims(graph, graph.records[order[next]])) return std::nullopt;
  std::unordered_set<ValueId> late;
  const auto add = [&](std::size_t r) {
    for (const ValueId v : graph.outputs_of(graph.records[r])) late.insert(v);
  };
  for (std::size_t place = begin; place < end; ++place) add(order[place]);
  Order before, behind;
  for (std::size_t place = end; place < next; ++place) {
    const OpRecord& record = graph.records[order[place]];
    if (mentions_born_dims(graph, record)) return std::nullopt;
    const auto in = graph.inputs_of(record);
    const bool waits =
        std::any_of(in.begin(), in.end(), [&](ValueId v) { return late.count(v) != 0; });
    if (waits) add(order[place]);
    (waits ? behind : before).push_back(order[place]);
  }
  const auto read = graph.inputs_of(graph.records[order[next]]);
  for (const std::size_t r : behind)
    for (const ValueId v : graph.outputs_of(graph.records[r]))
      if (std::find(read.begin(), read.end(), v) != read.end()) return std::nullopt;
  const std::size_t moved_on = before.size();
  before.insert(before.end(), order.begin() + static_cast<std::ptrdiff_t>(begin),
                order.begin() + static_cast<std::ptrdiff_t>(end));
  before.push_back(order[next]);
  before.insert(before.end(), behind.begin(), behind.end());
  std::copy(before.begin(), before.end(), order.begin() + static_cast<std::ptrdiff_t>(begin));
  return moved_on;
}

}  // namespace

bool can_run_beside(const Graph& graph, std::span<const std::size_t> loops, std::size_t next) {
  const LoopAttrs* attrs = loop_in_chunks(graph, next);
  if (!attrs || has_effects(graph.records[next])) return false;
  const auto in = graph.inputs_of(graph.records[next]);
  const auto slices = operands_of(*attrs, in).slices;
  bool reads_any = false;
  for (const std::size_t loop : loops) {
    const LoopAttrs* other = loop_in_chunks(graph, loop);
    if (!other || other->trips.is_reverse != attrs->trips.is_reverse ||
        has_effects(graph.records[loop]))
      return false;
    // Recomputed residuals are locked by one loop at a time.
    const auto read = graph.inputs_of(graph.records[loop]);
    for (std::size_t i = 0; i < slices.size(); ++i)
      if (!attrs->slices[i].is_in_memory() &&
          std::find(read.begin(), read.end(), slices[i]) != read.end())
        return false;
    const auto out = graph.outputs_of(graph.records[loop]);
    for (std::size_t i = 0; i < in.size(); ++i)
      for (std::size_t k = 0; k < out.size(); ++k) {
        if (in[i] != out[k]) continue;
        if (!operand_at(*attrs, i).is(LeafKind::slice) || !result_at(*other, k).is(LeafKind::stack))
          return false;
        if (is_spilled_output(graph.records[loop], k)) return false;  // read once all is written
        reads_any = true;
      }
  }
  return reads_any;
}

Ref<Graph> group_pipelined_loops(const Graph& graph) {
  // The first loop that throws decides which error a caller sees; a reordering could change it.
  const bool may_move = !has_effects(graph);
  Order order(graph.records.size());
  for (std::size_t r = 0; r < order.size(); ++r) order[r] = r;
  for (std::size_t begin = 0; may_move && begin < order.size(); ++begin) {
    if (!loop_in_chunks(graph, order[begin])) continue;
    std::size_t end = begin + 1;
    for (std::size_t next = end; next < order.size(); ++next) {
      if (!can_run_beside(graph, {order.data() + begin, end - begin}, order[next])) continue;
      const auto moved_on = close_up(graph, order, begin, end, next);
      if (!moved_on) break;
      begin += *moved_on;
      end += *moved_on + 1;
      next = end - 1;
    }
    begin = end - 1;
  }
  GraphRewriter to(graph);
  for (const std::size_t r : order)
    to.keep(graph.records[r], with_sub_graphs(graph.records[r], group_pipelined_loops));
  return to.finish();
}

}  // namespace reel
