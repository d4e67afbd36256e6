#include "reel/trace/passes/fusion/tile_ops.h"

#include "reel/core/ops/elementwise/element_loop.h"
#include "reel/core/ops/reductions/reduce.h"
#include "reel/core/ops/scans/linear_scan.h"
#include "reel/core/ops/shape/join.h"
#include "reel/core/ops/shape/shape.h"

namespace reel {

TileOp tile_op(const Op& op) {
  if (element_loop(op)) return TileOp::element;
  if (&op == &sum_op) return TileOp::sum;
  if (&op == &split_op) return TileOp::split;
  if (&op == &concat_op) return TileOp::concat;
  if (&op == &spread_op) return TileOp::spread;
  if (&op == &expand_op) return TileOp::expand;
  if (&op == &linear_scan_op) return TileOp::scan;
  if (&op == &linear_scan_grad_op) return TileOp::scan_gradient;
  return TileOp::none;
}

bool is_scan(TileOp op) { return op == TileOp::scan || op == TileOp::scan_gradient; }
bool repeats_elements(TileOp op) { return op == TileOp::spread || op == TileOp::expand; }

bool is_fusable(const OpRecord& record) {
  const TileOp op = tile_op(*record.op);
  return op == TileOp::element || is_scan(op) || repeats_elements(op);
}

std::optional<bool> walks_back(const OpRecord& record) {
  const TileOp op = tile_op(*record.op);
  if (!is_scan(op)) return std::nullopt;
  const bool is_reverse = get<LinearScanAttrs>(record.attrs.get()).reverse;
  return is_reverse != (op == TileOp::scan_gradient);
}

std::int64_t least_elements(const TensorType& type) {
  std::int64_t result = 1;
  for (const std::int64_t size : type.sizes()) result *= size < 0 ? 1 : size;
  return result;
}

}  // namespace reel
