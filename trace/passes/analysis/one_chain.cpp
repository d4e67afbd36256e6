#include "reel/trace/passes/analysis/one_chain.h"

#include <algorithm>

#include "reel/core/ops/elementwise/element_loop.h"
#include "reel/core/ops/elementwise/pointwise_code.h"

namespace reel {

bool is_one_chain(const LoopAttrs& attrs) {
  const Graph& body = *attrs.body.graph;
  if (attrs.carries.empty() || attrs.cond || attrs.has_entries()) return false;
  const TensorType& state = body.types[body_inputs(attrs).carries[0]];
  // Each op has at most two operands and one result in registers, and each sum adds a total.
  const std::size_t places = body.inputs.size() + body.outputs.size() + 2 * attrs.sums.size();
  if (state.is_list() || !is_float(state.dtype()) || 3 * body.records.size() > kChainRegisters ||
      places > kMostChainPlaces)
    return false;
  return std::all_of(body.records.begin(), body.records.end(), [&](const OpRecord& record) {
    const auto loop = element_loop(*record.op);
    return loop && has_code(*loop) && body.types[body.outputs_of(record)[0]] == state;
  });
}

}  // namespace reel
