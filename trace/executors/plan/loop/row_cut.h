// trace/executors/plan/loop/row_cut.h — RowCut: cuts a loop into row blocks that run
// independently.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "reel/core/dims/dim_changes.h"
#include "reel/core/ops/loop/loop.h"
#include "reel/core/options/passes.h"

namespace reel {

/// Batch rows that run together.
struct BlockOfRows {
  std::vector<std::int64_t> rows;  ///< their numbers; in increasing order if nothing else is said
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
  std::int64_t work_of_row = 0;  ///< of an iteration of one row, as LoopWork counts it
  /// True if all rows can run as one block with the bits of separate blocks (joined_blocks.h), or,
  /// if rows finish one by one, in any batches (shrinking_block.h). This is faster, as products
  /// have more rows.
  bool can_join = false;
  /// By value of the body, the axis of its rows (trace/passes/analysis/row_axes.h).
  std::vector<int> axes = {};
  /// Dims with a length for each row. In a block they have their extent for all rows, and a body
  /// that reads lengths takes its rows' lengths as captures (passes/rows/body_on_rows.h).
  Dims ragged = {};
  /// By output of the body, its type with all rows.
  std::vector<TensorType> outputs = {};
  /// True if the types of stacks and sums are known before a run, and carries keep theirs.
  bool keeps_types = false;

  /// Returns the substitution of the cut dim by `block_dim`, and of each ragged dim by the static
  /// dim in `extents`.
  DimChanges changes_to(const Dim& block_dim, const Dims& extents) const;
  /// Returns the rows of each block in a run with these inputs. The first block has the longest
  /// row.
  std::vector<BlockOfRows> rows_of_blocks(const LoopAttrs& attrs, OpInputs in) const;
  /// Returns true if the lengths of rows, which finish one by one, fall or rise from row to row.
  bool is_in_order(const LoopAttrs& attrs, OpInputs in) const;
  /// Returns all rows in `count` batches, if entries finish one by one. The rows of a batch are in
  /// the order of their lengths; the first row of the first batch runs longest.
  ///
  /// is_dealt: batches have nearly as many iterations each; otherwise rows of similar lengths.
  std::vector<BlockOfRows> batches(const LoopAttrs& attrs, OpInputs in, std::int64_t count,
                                   bool is_dealt) const;
};

/// The largest number of batches, and of sizes of a batch that shrinks. Each size has plans of its
/// own.
inline constexpr std::int64_t kMaxBatches = 64, kMaxSizes = 8;
/// Returns the number of rows of each of `count` batches of `rows` rows.
std::vector<std::int64_t> rows_of_batches(std::int64_t rows, std::int64_t count);

/// Returns the numbers of rows with these lengths, longest first; rows of one length in their
/// order.
std::vector<std::int64_t> longest_first(const std::vector<std::int64_t>& lengths);
/// Returns true if the lengths fall or rise from row to row: a batch that shrinks has neighbours.
bool fall_or_rise(const std::vector<std::int64_t>& lengths);
/// Returns true if each number is one more than the number before.
bool are_adjacent(const std::vector<std::int64_t>& rows);
/// Returns rows first to first + count - 1 of a list, in increasing order of their numbers.
BlockOfRows rows_from(const BlockOfRows& rows, std::size_t first, std::size_t count);

/// Returns the numbers of rows, in increasing order, with which a batch runs while its rows finish,
/// if there are `batches` batches. rows: of this batch at first.
std::vector<std::int64_t> sizes_of_batch(std::int64_t rows, std::int64_t batches);

/// Returns how to cut the loop into row blocks. Returns nothing, and sets `why` to the reason, if
/// rows are not independent, too few, or have too little work, or if `passes` exclude it.
///
/// inputs: types of the op's inputs. Requires that all are known.
std::optional<RowCut> find_row_cut(const LoopAttrs& attrs, std::span<const TensorType> inputs,
                                   const Passes& passes = {}, std::string* why = nullptr);

/// Returns the loop for a row block. changes: RowCut::changes_to().
LoopAttrs restrict_to_rows(const LoopAttrs& attrs, const DimChanges& changes);

}  // namespace reel
