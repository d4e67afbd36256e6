#include "reel/trace/executors/plan/base/costs.h"

#include <algorithm>
#include <vector>

#include "reel/core/op/facts.h"
#include "reel/core/ops/control/fused.h"
#include "reel/core/ops/elementwise/element_loop.h"
#include "reel/trace/executors/plan/base/infer_types.h"

namespace reel {
namespace {

double known_bytes(std::span<const TensorType> types) {
  double bytes = 0;
  for (const TensorType& type : types)
    if (type.is_known() && !type.is_list()) bytes += static_cast<double>(type.bytes());
  return bytes;
}

double numel_of(const TensorType& type) {
  return type.is_known() && !type.is_list() ? static_cast<double>(type.numel()) : 0;
}

double fused_elements(const Graph& body, std::span<const TensorType> in, const DimEnv& env) {
  const PlannedTypes types = plan_types(body, in, env);
  double elements = 0;
  for (const OpRecord& record : body.records)
    if (element_loop(*record.op))
      elements += numel_of(types.types[body.outputs_of(record)[0]]);
    else if (combines_elements(*record.op))
      elements += numel_of(types.types[body.inputs_of(record)[0]]);
  return elements;
}

}  // namespace

bool combines_elements(const Op& op) { return op.neutral != Neutral::none; }

double predicted_seconds(const Op& op, const Attrs* attrs, std::span<const TensorType> in,
                         std::span<const TensorType> out, const Rates& rates) {
  double elements = 0, bytes = known_bytes(in) + known_bytes(out);
  if (op.storage == OpStorage::input) bytes = 0;  // usually a view
  if (op.pointwise) elements = numel_of(out[0]);
  const double flops = attrs ? 2 * static_cast<double>(multiplications({op, attrs, in, out})) : 0;
  if (attrs && &op == &fused_op) {
    const SubGraph& body = get<FusedAttrs>(attrs).body;
    elements = fused_elements(*body.graph, in, body.env());
  }
  return rates.call +
         std::max({flops / rates.flops, bytes / rates.bytes, elements / rates.elements});
}

}  // namespace reel
