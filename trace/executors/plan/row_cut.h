// trace/executors/plan/row_cut.h — RowCut, whether a loop's iterations treat the rows of its values
// each for itself.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "reel/core/ops/loop.h"
#include "reel/core/passes.h"

namespace reel {

/// Rows that run together.
struct BlockOfRows {
  std::vector<std::int64_t> rows;     ///< their numbers, rising
  std::vector<std::int64_t> lengths;  ///< iterations of each; none: all run to the end
};

/// A loop that can be run on some rows at a time: the first dim of its carries is one that no op of
/// its body mixes. Where entries end one by one, they are the rows, and those of similar lengths
/// run together.
struct RowCut {
  Dim dim;                             ///< what is cut
  std::vector<std::uint8_t> has_rows;  ///< by input of the op: the dim is its first one
                                       ///< (of slices: behind the dim of the steps)
  std::vector<std::uint8_t> carry_has_rows;
  /// By sum: where its rows are, or whether it is the same for all blocks, or adds up theirs.
  enum class Sum : std::uint8_t { has_rows, same, over_rows };
  std::vector<Sum> sums;
  /// Rows of each block. They depend on sizes only, so that results do not depend on threads.
  std::vector<std::int64_t> blocks;
  /// All rows can be run as if they were one block, and have the bits of blocks none the less
  /// (joined_blocks.h; shrinking_block.h where they end one by one): where one thread runs all of
  /// them, products of more rows are faster.
  bool can_join = false;
  /// Where each value of the body has its rows (trace/passes/row_axes.h).
  std::vector<int> axes = {};

  /// Which rows are in each block, in a run with these inputs; the first block is the one that runs
  /// longest.
  std::vector<BlockOfRows> rows_of_blocks(const LoopAttrs& attrs, OpInputs in) const;
};

/// inputs: the types of the op's. None where rows cannot be told apart, or are too few, or have too
/// little work, to be worth it, or it is not to be done; `why` says so in words.
std::optional<RowCut> find_row_cut(const LoopAttrs& attrs, std::span<const TensorType> inputs,
                                   const Passes& passes = {}, std::string* why = nullptr);

/// The record that gives sum i of a loop by adding up rows of what has no part in anything else of
/// the sum's; null where there is none.
const OpRecord* summing_record(const LoopAttrs& attrs, int i);

/// The loop for a block of rows: `part` stands for the dim that is cut.
LoopAttrs on_rows(const LoopAttrs& attrs, const Dim& whole, const Dim& part);

}  // namespace reel
