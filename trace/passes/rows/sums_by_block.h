// trace/passes/rows/sums_by_block.h — with_sums_by_block, which keeps the sums of row blocks apart.
#pragma once

#include <cstddef>
#include <span>

#include "reel/core/graph/graph.h"
#include "reel/core/ops/loop/loop.h"

namespace reel {

/// Returns the record that makes the term of sum i as a sum over leading axes, if nothing else
/// reads that term; otherwise null.
const OpRecord* summing_record(const LoopAttrs& attrs, std::size_t i);

/// Returns the loop with terms of sums over rows that have one element for each row block, in
/// front.
///
///   Before: sum += sum(x, axis 0)         After: sum += sum_blocks(x, axis 0)[blocks]
///
/// sums: their numbers. Requires a summing_record() for each. blocks: the dim of the row blocks.
LoopAttrs with_sums_by_block(const LoopAttrs& attrs, std::span<const std::size_t> sums,
                             const Dim& blocks);

}  // namespace reel
