// trace/executors/plan/loop/row_cut.h — RowCut: cuts a loop into row blocks that run
// independently.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "reel/core/ops/loop/loop.h"
#include "reel/core/options/passes.h"

namespace reel {

/// Batch rows that run together.
struct BlockOfRows {
  std::vector<std::int64_t> rows;     ///< their numbers, in increasing order
  std::vector<std::int64_t> lengths;  ///< iterations of each; empty if all run to the end
};

/// A loop that can run on some batch rows at a time: no op of its body mixes entries of the first
/// dim of its carries. If entries finish one by one, they are the rows, and rows of similar lengths
/// run together.
struct RowCut {
  Dim dim;                             ///< the dim that is cut
  std::vector<std::uint8_t> has_rows;  ///< by input of the op: the dim is its first one (of slices:
                                       ///< behind the loop's dim)
  std::vector<std::uint8_t> carry_has_rows;
  /// By sum: it has the rows, is the same for all blocks, or adds up over rows.
  enum class Sum : std::uint8_t { has_rows, same, over_rows };
  std::vector<Sum> sums;
  /// Rows of each block. They depend on sizes only, so that results do not depend on threads.
  std::vector<std::int64_t> blocks;
  /// True if all rows can run as one block with the bits of separate blocks (joined_blocks.h;
  /// shrinking_block.h if rows finish one by one). On one thread this is faster, as products have
  /// more rows.
  bool can_join = false;
  /// By value of the body, the axis of its rows (trace/passes/analysis/row_axes.h).
  std::vector<int> axes = {};

  /// Returns the rows of each block in a run with these inputs. The first block has the longest
  /// row.
  std::vector<BlockOfRows> rows_of_blocks(const LoopAttrs& attrs, OpInputs in) const;
};

/// Returns how to cut the loop into row blocks. Returns nothing, and sets `why` to the reason, if
/// rows are not independent, too few, or have too little work, or if `passes` exclude it.
///
/// inputs: types of the op's inputs.
std::optional<RowCut> find_row_cut(const LoopAttrs& attrs, std::span<const TensorType> inputs,
                                   const Passes& passes = {}, std::string* why = nullptr);

/// Returns the record that makes the term of sum i as a sum over leading axes, if nothing else
/// reads that term; otherwise null.
const OpRecord* summing_record(const LoopAttrs& attrs, std::size_t i);

/// Returns the loop for a row block, with `part` in place of the cut dim `whole`.
LoopAttrs restrict_to_rows(const LoopAttrs& attrs, const Dim& whole, const Dim& part);

}  // namespace reel
