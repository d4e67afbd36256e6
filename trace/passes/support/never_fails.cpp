#include "reel/trace/passes/support/never_fails.h"

#include <algorithm>
#include <iterator>
#include <vector>

#include "reel/core/ops/control/fused.h"
#include "reel/core/ops/reductions/norm.h"
#include "reel/core/ops/reductions/reduce.h"
#include "reel/core/ops/registry.h"
#include "reel/core/ops/shape/shape.h"

namespace reel {

bool never_fails(const Op& op) {
  if (op.kernel_decides_types || op.has_effect) return false;
  if (op.pointwise || &op == &fused_op) return true;
  const auto families = {reduction_ops(), product_ops(), packed_ops(),     shape_ops(),
                         join_ops(),      row_ops(),     linear_scan_ops()};
  return std::any_of(families.begin(), families.end(), [&](std::span<const Op* const> family) {
    return std::find(family.begin(), family.end(), &op) != family.end();
  });
}

bool never_fails_once_placed(const Op& op, const Attrs* attrs) {
  if (!never_fails(op)) return false;
  if (op.pointwise) return op.storage == OpStorage::own;
  if (&op == &fused_op || &op == &spread_op || &op == &norm_op || op.kernel == same_elements)
    return true;
  for (const Op* reduction : {&sum_op, &prod_op, &max_op, &min_op, &any_op, &all_op}) {
    if (&op != reduction) continue;
    const std::vector<int>& axes = get<ReduceAttrs>(attrs).axes;  // ascending
    return !axes.empty() && axes.back() - axes.front() + 1 == std::ssize(axes);
  }
  // Ops that sort rows, or add them up in f64, need scratch memory.
  const auto rows = row_ops();
  return std::find(rows.begin(), rows.end(), &op) != rows.end() && op.name != "coalesce_rows" &&
         op.name != "add_rows";
}

}  // namespace reel
