// The ops of the control family, and the list of all ops.
#include <vector>

#include "reel/core/ops/control/cond.h"
#include "reel/core/ops/control/fused.h"
#include "reel/core/ops/control/recompute.h"
#include "reel/core/ops/loop/loop.h"
#include "reel/core/ops/registry.h"

namespace reel {
namespace {
const Op* const kControlOps[] = {&loop_op, &cond_op, &recompute_op, &fused_op};
}
std::span<const Op* const> control_ops() { return kControlOps; }

std::span<const Op* const> all_ops() {
  static const std::vector<const Op*>& ops = []() -> const std::vector<const Op*>& {
    auto* list = new std::vector<const Op*>;
    for (auto family :
         {elementwise_ops, select_ops,     reduction_ops,  product_ops,     creation_ops,
          shape_ops,       join_ops,       index_ops,      dim_ops,         random_ops,
          identity_ops,    list_ops,       entry_ops,      control_ops,     custom_ops,
          cumulative_ops,  scatter_ops,    sort_ops,       draw_ops,        pack_ops,
          label_ops,       list_part_ops,  whole_list_ops, packed_ops,      checkpointed_ops,
          row_ops,         row_number_ops, sparse_ops,     sum_blocks_ops,  zero_unless_ops,
          linear_scan_ops, check_ops,      unranked_ops,   convolution_ops, window_max_ops,
          transform_ops,   alignment_ops})
      for (const Op* op : family()) list->push_back(op);
    return *list;
  }();
  return ops;
}

}  // namespace reel
