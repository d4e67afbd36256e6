#include "reel/trace/passes/rows/sums_by_block.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "reel/core/graph/graph_rewriter.h"
#include "reel/core/ops/reductions/reduce.h"
#include "reel/core/ops/reductions/sum_blocks.h"

namespace reel {
namespace {

/// Returns true if the sum is over leading axes.
bool adds_up_first_axes(const OpRecord& record) {
  if (record.op != &sum_op) return false;
  const std::vector<int>& axes = get<ReduceAttrs>(record.attrs.get()).axes;
  for (std::size_t i = 0; i < axes.size(); ++i)
    if (axes[i] != static_cast<int>(i)) return false;
  return !axes.empty();
}

}  // namespace

const OpRecord* summing_record(const LoopAttrs& attrs, std::size_t i) {
  const Graph& body = *attrs.body.graph;
  const ValueId sum = body_outputs(attrs).sums[i];
  if (std::count(body.outputs.begin(), body.outputs.end(), sum) > 1) return nullptr;
  const OpRecord* made = nullptr;
  for (const OpRecord& record : body.records) {
    const auto in = body.inputs_of(record);
    if (std::find(in.begin(), in.end(), sum) != in.end()) return nullptr;
    if (body.outputs_of(record)[0] == sum && adds_up_first_axes(record)) made = &record;
  }
  return made;
}

LoopAttrs with_sums_by_block(const LoopAttrs& attrs, std::span<const std::size_t> sums,
                             const Dim& blocks) {
  const Graph& body = *attrs.body.graph;
  std::vector<std::uint8_t> is_summing(body.records.size());
  for (const std::size_t i : sums)
    is_summing[static_cast<std::size_t>(summing_record(attrs, i) - body.records.data())] = 1;
  GraphRewriter joined(body);
  for (std::size_t r = 0; r < body.records.size(); ++r) {
    const OpRecord& record = body.records[r];
    const InheritProvenance scope(record);
    const auto in = body.inputs_of(record), out = body.outputs_of(record);
    if (!is_summing[r]) {
      joined.keep(record);
      continue;
    }
    const AttrsRef by_block =
        make_attrs(SumBlocksAttrs{get<ReduceAttrs>(record.attrs.get()).axes, blocks});
    TypeList types;
    const TensorType given[] = {body.types[in[0]]};
    TypeArgs rule{sum_blocks_op, by_block.get(), given, types};
    sum_blocks_op.type(rule);
    joined.to().types[out[0]] = types.span()[0];
    joined.to().append(sum_blocks_op, by_block, in, out);
  }
  LoopAttrs result = attrs;
  DimEnv names = attrs.body.env();
  result.body = make_sub_graph(joined.finish(), names);
  return result;
}

}  // namespace reel
