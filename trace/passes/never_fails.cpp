#include "reel/trace/passes/never_fails.h"

#include <algorithm>

#include "reel/core/ops/fused.h"
#include "reel/core/ops/registry.h"

namespace reel {

bool never_fails(const Op& op) {
  if (op.kernel_decides_types || op.has_effect) return false;
  if (op.pointwise || &op == &fused_op) return true;
  const auto families = {reduction_ops(), product_ops(), packed_ops(),
                         shape_ops(),     join_ops(),    row_ops()};
  return std::any_of(families.begin(), families.end(), [&](std::span<const Op* const> family) {
    return std::find(family.begin(), family.end(), &op) != family.end();
  });
}

}  // namespace reel
