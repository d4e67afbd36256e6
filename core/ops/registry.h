// core/ops/registry.h — the list of ops of each family. all_ops() has them all.
#pragma once

#include <span>

#include "reel/core/op/op.h"

namespace reel {

std::span<const Op* const> elementwise_ops();
std::span<const Op* const> select_ops();
std::span<const Op* const> reduction_ops();
std::span<const Op* const> sum_blocks_ops();
std::span<const Op* const> cumulative_ops();
std::span<const Op* const> linear_scan_ops();
std::span<const Op* const> product_ops();
std::span<const Op* const> convolution_ops();
std::span<const Op* const> window_max_ops();
std::span<const Op* const> transform_ops();
std::span<const Op* const> alignment_ops();
std::span<const Op* const> creation_ops();
std::span<const Op* const> shape_ops();
std::span<const Op* const> join_ops();
std::span<const Op* const> index_ops();
std::span<const Op* const> pack_ops();
std::span<const Op* const> packed_ops();
std::span<const Op* const> label_ops();
std::span<const Op* const> scatter_ops();
std::span<const Op* const> row_ops();
std::span<const Op* const> row_number_ops();
std::span<const Op* const> sparse_ops();
std::span<const Op* const> sort_ops();
std::span<const Op* const> dim_ops();
std::span<const Op* const> random_ops();
std::span<const Op* const> draw_ops();
std::span<const Op* const> identity_ops();
std::span<const Op* const> list_ops();
std::span<const Op* const> list_part_ops();
std::span<const Op* const> whole_list_ops();
std::span<const Op* const> zero_unless_ops();
std::span<const Op* const> unranked_ops();
std::span<const Op* const> entry_ops();
std::span<const Op* const> control_ops();
std::span<const Op* const> checkpointed_ops();
std::span<const Op* const> custom_ops();
std::span<const Op* const> check_ops();

}  // namespace reel
