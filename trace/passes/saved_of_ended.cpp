#include "reel/trace/passes/saved_of_ended.h"

#include <map>

#include "reel/trace/passes/ended_values.h"
#include "reel/trace/passes/sub_graphs.h"

namespace reel {
namespace {

/// What fills can be told of: outputs of loops, raw in entries that have ended.
using Known = std::map<ValueId, Fill>;

void fill_slices(LoopAttrs& loop, std::span<const ValueId> in, const Known& known) {
  for (std::size_t i = 0; i < static_cast<std::size_t>(loop.slices); ++i) {
    Fill& fill = loop.fills[static_cast<std::size_t>(loop.carries) + i];
    const auto found = known.find(in[loop.first_slice() + i]);
    if (fill == Fill::as_is && found != known.end()) fill = found->second;
  }
}

/// By value: whether nothing but loops that run along it read it.
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

void mark_outputs(LoopAttrs& loop, const Graph& graph, const OpRecord& record,
                  const std::vector<std::uint8_t>& is_slices_only, Known& known) {
  const EndedValues ended(loop, graph.types_of(graph.inputs_of(record)));
  const auto out = graph.outputs_of(record);
  for (std::size_t k = 0; k < loop.collects.size(); ++k) {
    const ValueId v = loop.body.graph->outputs[k];
    if (!ended.has_entries(graph.types[out[k]]) || ended.fill(v) == Fill::zero)
      loop.collects[k] = 0;
  }
  for (std::size_t j = 0; j < static_cast<std::size_t>(loop.stacks); ++j) {
    if (!loop.is_raw(j) || loop.is_list(j)) continue;
    const std::size_t k = loop.first_stack() + j;
    const std::optional<Fill> fill = ended.fill(loop.body.graph->outputs[k]);
    if (!fill) continue;
    if (is_slices_only[out[k]]) loop.stack_kinds[j] |= LoopAttrs::kUnread;
    known[out[k]] = *fill;
  }
}

}  // namespace

Ref<Graph> saved_of_ended(const Graph& graph) {
  Known known;
  const std::vector<std::uint8_t> is_slices_only = find_slices_only(graph);
  return with_loops(graph, saved_of_ended,
                    [&](const OpRecord& record, LoopAttrs& loop, std::vector<ValueId>& inputs) {
                      if (loop.entry_dims.size() != 1) return;
                      fill_slices(loop, inputs, known);
                      mark_outputs(loop, graph, record, is_slices_only, known);
                    });
}

}  // namespace reel
