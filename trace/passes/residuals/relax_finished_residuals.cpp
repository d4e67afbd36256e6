#include "reel/trace/passes/residuals/relax_finished_residuals.h"

#include <map>

#include "reel/core/graph/graph_rewriter.h"
#include "reel/core/ops/control/recompute.h"
#include "reel/trace/passes/analysis/finished_values.h"
#include "reel/trace/passes/support/sub_graphs.h"

namespace reel {
namespace {

/// Residuals, saved or recomputed, with the fills that give their values for finished entries.
using Known = std::map<ValueId, FinishedFill>;

void fill_slices(LoopAttrs& loop, std::span<const ValueId> in, const Known& known) {
  const auto slices = operands_of(loop, in).slices;
  for (std::size_t i = 0; i < slices.size(); ++i) {
    const auto found = known.find(slices[i]);
    if (found != known.end() && loop.slices[i].fill == FinishedFill::as_is)
      loop.slices[i].fill = found->second;
  }
}

/// Returns, by value, whether it is read only as slices of loops.
std::vector<std::uint8_t> find_slices_only(const Graph& graph) {
  std::vector<std::uint8_t> result(graph.types.size(), 1);
  for (const OpRecord& record : graph.records) {
    const auto in = graph.inputs_of(record);
    const auto* const loop = record.op == &loop_op ? &get<LoopAttrs>(record.attrs.get()) : nullptr;
    for (std::size_t i = 0; i < in.size(); ++i)
      if (!loop || !operand_at(*loop, i).is(LeafKind::slice)) result[in[i]] = 0;
  }
  for (const ValueId v : graph.outputs) result[v] = 0;
  return result;
}

/// saved: the values that the stacks from `first` on become.
void mark_stacks(LoopAttrs& loop, const FinishedValues& finished,
                 std::span<const ValueId> residuals, std::size_t first,
                 const std::vector<std::uint8_t>& is_slices_only, Known& known) {
  const auto terms = body_outputs(loop).stacks.subspan(first);
  for (std::size_t i = 0; i < residuals.size(); ++i) {
    LoopStack& stack = loop.stacks[first + i];
    if (!stack.is_raw() || stack.is_list) continue;
    const std::optional<FinishedFill> fill = finished.fill_of_residual(terms[i]);
    if (!fill) continue;
    if (is_slices_only[residuals[i]]) stack.finished_unread = true;
    known[residuals[i]] = *fill;
  }
}

void mark_outputs(LoopAttrs& loop, const Graph& graph, const OpRecord& record,
                  const std::vector<std::uint8_t>& is_slices_only, Known& known) {
  const FinishedValues finished(loop, graph.types_of(graph.inputs_of(record)));
  const auto results = results_of(loop, graph.outputs_of(record));
  const auto inside = body_outputs(loop);
  const auto relax = [&](auto& leaves, std::span<const ValueId> out,
                         std::span<const ValueId> terms) {
    for (std::size_t i = 0; i < leaves.size(); ++i)
      if (leaves[i].adds_finished && (!finished.has_entries(graph.types[out[i]]) ||
                                      finished.fill(terms[i]) == FinishedFill::zero))
        leaves[i].adds_finished = false;
  };
  relax(loop.carries, results.carries, inside.carries);
  relax(loop.stacks, results.stacks, inside.stacks);
  relax(loop.sums, results.sums, inside.sums);
  mark_stacks(loop, finished, results.stacks, 0, is_slices_only, known);
}

/// Marks the stacks of recompute ops, which recompute residuals.
Ref<Graph> mark_recomputed(const Graph& graph, const std::vector<std::uint8_t>& is_slices_only,
                           Known& known) {
  GraphRewriter to(graph);
  for (const OpRecord& record : graph.records) {
    AttrsRef attrs = record.attrs;
    if (record.op == &recompute_op) {
      RecomputeAttrs recomputation = get<RecomputeAttrs>(attrs.get());
      LoopAttrs loop = recomputation.saving();
      if (loop.entries.dims.size() == 1) {
        const auto in = graph.inputs_of(record);
        const FinishedValues finished(
            loop, graph.types_of(in.first(recomputation.loop_inputs(in.size()))));
        mark_stacks(loop, finished, graph.outputs_of(record), recomputation.first_residual,
                    is_slices_only, known);
        recomputation.loop = make_attrs(std::move(loop));
        attrs = make_attrs(std::move(recomputation));
      }
    }
    to.keep(record, attrs);
  }
  return to.finish();
}

}  // namespace

Ref<Graph> relax_finished_residuals(const Graph& graph) {
  Known known;
  const std::vector<std::uint8_t> is_slices_only = find_slices_only(graph);
  const Ref<Graph> marked = mark_recomputed(graph, is_slices_only, known);
  return with_loops(*marked, relax_finished_residuals,
                    [&](const OpRecord& record, LoopAttrs& loop, std::vector<ValueId>& inputs) {
                      if (loop.entries.dims.size() != 1) return;
                      fill_slices(loop, inputs, known);
                      mark_outputs(loop, *marked, record, is_slices_only, known);
                    });
}

}  // namespace reel
