#include "reel/trace/passes/fusion/fusable.h"

#include <algorithm>

#include "reel/core/ops/elementwise/element_loop.h"
#include "reel/core/ops/reductions/reduce.h"
#include "reel/core/ops/scans/linear_scan.h"
#include "reel/core/ops/shape/shape.h"

namespace reel {

bool is_fusable(const OpRecord& record) {
  return element_loop(*record.op) || is_linear_scan(record.op) || repeats_elements(record);
}

bool repeats_elements(const OpRecord& record) {
  return record.op == &expand_op || record.op == &spread_op;
}

std::optional<bool> walks_back(const OpRecord& record) {
  if (record.op != &linear_scan_op && record.op != &linear_scan_grad_op) return std::nullopt;
  const bool is_reverse = get<LinearScanAttrs>(record.attrs.get()).reverse;
  return is_reverse != (record.op == &linear_scan_grad_op);
}

std::int64_t least_elements(const TensorType& type) {
  std::int64_t result = 1;
  for (const std::int64_t size : type.sizes()) result *= size < 0 ? 1 : size;
  return result;
}

}  // namespace reel
