// trace/executors/plan/block_rows.h — BlockRows, some rows of a loop among all of them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "reel/trace/executors/plan/planned_loop.h"
#include "reel/trace/executors/plan/row_cut.h"

namespace reel {

/// Where the rows of one block lie in the inputs and outputs of the whole loop. Rows that are
/// neighbours are read and written where they lie, others are gathered and scattered step by step.
///
/// Rows may end before others of their block do. They are computed on, from whatever there is, and
/// what comes of it is kept out of the outputs: the last carries of a row are taken when it ends
/// (in a reverse loop it begins with its first ones where it begins), and stacks get zeros, unless
/// they are raw.
class BlockRows {
 public:
  /// block: the loop for so many rows. rows: their numbers, rising. lengths: iterations of each;
  /// none: all run to the end. in, out: those of the whole loop. is_first: writes what is the same
  /// for all blocks, too.
  BlockRows(const PlannedLoop& block, const RowCut& cut, std::vector<std::int64_t> rows,
            std::vector<std::int64_t> lengths, OpInputs in, std::span<Tensor> out, bool is_first,
            const Tensors& partial_sums);

  /// How many iterations the longest of its rows has; none where all run to the end.
  std::optional<std::int64_t> iterations() const {
    return ends() ? std::optional(last_) : std::nullopt;
  }
  /// What a run of the block takes as inputs; slices are those of all rows.
  const Tensors& inputs() const { return inputs_; }
  /// Where it writes outputs. What is not defined there is made by the run, and is what carries are
  /// behind it: those of rows that end come through after() and finish().
  /// Sums over rows are those of the block's, in partial_sums but for the first block.
  Tensors& outputs() { return outputs_; }

  /// The rows of slice i at a position, and where those of stack j go.
  char* slice(int i, std::int64_t position);
  char* stack(int j, std::int64_t position);

  /// Around each iteration; carries: where their rows lie.
  void before(std::int64_t position, std::span<char* const> carries);
  void after(std::int64_t position, std::span<char* const> carries);
  /// After the last one.
  void finish();
  /// The same for one of its rows, which nobody ran from a position on.
  void finish_row(std::size_t r, std::int64_t position);

 private:
  /// A tensor of which some rows are meant.
  struct Part {
    char* all = nullptr;     ///< of the whole loop
    std::int64_t bytes = 0;  ///< of a row; 0: it has none
    std::int64_t pitch = 0;  ///< from step to step
    Tensor gathered;         ///< the block's rows, where they are not neighbours
  };
  char* row(const Part& part, std::size_t r, std::int64_t position = 0) const {
    return part.all + position * part.pitch + rows_[r] * part.bytes;
  }
  bool ends() const { return !lengths_.empty(); }
  Tensor rows_of(const Tensor& whole, const TensorType& type) const;
  void clear(const Part& stack, std::size_t r, std::int64_t position) const;

  const LoopAttrs& attrs_;
  std::vector<std::int64_t> rows_, lengths_;
  std::int64_t all_, last_ = 0;  // rows of the whole; iterations of the longest row
  bool are_neighbours_;
  Tensors inputs_, outputs_;
  std::vector<Part> initial_, slices_, stacks_;
  std::span<Tensor> out_;
  bool is_first_;
};

}  // namespace reel
