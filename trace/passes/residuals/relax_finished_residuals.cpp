#include "reel/trace/passes/residuals/relax_finished_residuals.h"

#include <map>

#include "reel/core/ops/control/recompute.h"
#include "reel/trace/passes/analysis/ended_values.h"
#include "reel/trace/passes/support/sub_graphs.h"

namespace reel {
namespace {

/// Residuals, saved or recomputed, with the fills that give their values for finished entries.
using Known = std::map<ValueId, Fill>;

void fill_slices(LoopAttrs& loop, std::span<const ValueId> in, const Known& known) {
  for (std::size_t i = 0; i < static_cast<std::size_t>(loop.slices); ++i) {
    Fill& fill = loop.fills[static_cast<std::size_t>(loop.carries) + i];
    const auto found = known.find(in[loop.first_slice() + i]);
    if (found == known.end()) continue;
    if (fill == Fill::as_is) fill = found->second;
    if (fill == Fill::recomputed)
      fill = found->second == Fill::zero ? Fill::recomputed_zero : Fill::recomputed_live;
  }
}

/// Returns, by value, whether it is read only as slices of loops.
std::vector<std::uint8_t> find_slices_only(const Graph& graph) {
  std::vector<std::uint8_t> result(graph.types.size(), 1);
  for (const OpRecord& record : graph.records) {
    const auto in = graph.inputs_of(record);
    std::size_t first = in.size(), last = in.size();
    if (record.op == &loop_op) {
      const auto& loop = get<LoopAttrs>(record.attrs.get());
      first = loop.first_slice(), last = loop.first_capture();
    }
    for (std::size_t i = 0; i < in.size(); ++i)
      if (i < first || i >= last) result[in[i]] = 0;
  }
  for (const ValueId v : graph.outputs) result[v] = 0;
  return result;
}

/// saved: the values that the stacks from `first` on become.
void mark_stacks(LoopAttrs& loop, const EndedValues& ended, std::span<const ValueId> saved,
                 std::size_t first, const std::vector<std::uint8_t>& is_slices_only, Known& known) {
  for (std::size_t i = 0; i < saved.size(); ++i) {
    const std::size_t j = first + i;
    if (!loop.is_raw(j) || loop.is_list(j)) continue;
    const std::optional<Fill> fill =
        ended.fill_of_saved(loop.body.graph->outputs[loop.first_stack() + j]);
    if (!fill) continue;
    if (is_slices_only[saved[i]]) loop.stack_kinds[j] |= LoopAttrs::kUnread;
    known[saved[i]] = *fill;
  }
}

void mark_outputs(LoopAttrs& loop, const Graph& graph, const OpRecord& record,
                  const std::vector<std::uint8_t>& is_slices_only, Known& known) {
  const EndedValues ended(loop, graph.types_of(graph.inputs_of(record)));
  const auto out = graph.outputs_of(record);
  for (std::size_t k = 0; k < loop.adds_finished_to_running.size(); ++k) {
    const ValueId v = loop.body.graph->outputs[k];
    if (!ended.has_entries(graph.types[out[k]]) || ended.fill(v) == Fill::zero)
      loop.adds_finished_to_running[k] = 0;
  }
  mark_stacks(loop, ended, out.subspan(loop.first_stack(), static_cast<std::size_t>(loop.stacks)),
              0, is_slices_only, known);
}

/// Marks the stacks of recompute ops, which recompute residuals.
Ref<Graph> mark_recomputed(const Graph& graph, const std::vector<std::uint8_t>& is_slices_only,
                           Known& known) {
  Ref<Graph> result(new Graph(graph));
  result->records.clear();
  result->operands.clear();
  for (const OpRecord& record : graph.records) {
    AttrsRef attrs = record.attrs;
    if (record.op == &recompute_op) {
      RecomputeAttrs recomputation = get<RecomputeAttrs>(attrs.get());
      LoopAttrs loop = recomputation.saving();
      if (loop.entry_dims.size() == 1) {
        const auto in = graph.inputs_of(record);
        const EndedValues ended(loop,
                                graph.types_of(in.first(recomputation.loop_inputs(in.size()))));
        mark_stacks(loop, ended, graph.outputs_of(record),
                    static_cast<std::size_t>(recomputation.first_saved), is_slices_only, known);
        recomputation.loop = make_attrs(std::move(loop));
        attrs = make_attrs(std::move(recomputation));
      }
    }
    result->append(record, attrs, graph.inputs_of(record), graph.outputs_of(record));
  }
  result->seal();
  return result;
}

}  // namespace

Ref<Graph> relax_finished_residuals(const Graph& graph) {
  Known known;
  const std::vector<std::uint8_t> is_slices_only = find_slices_only(graph);
  const Ref<Graph> marked = mark_recomputed(graph, is_slices_only, known);
  return with_loops(*marked, relax_finished_residuals,
                    [&](const OpRecord& record, LoopAttrs& loop, std::vector<ValueId>& inputs) {
                      if (loop.entry_dims.size() != 1) return;
                      fill_slices(loop, inputs, known);
                      mark_outputs(loop, *marked, record, is_slices_only, known);
                    });
}

}  // namespace reel
