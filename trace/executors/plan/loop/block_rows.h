// trace/executors/plan/loop/block_rows.h — BlockRows: some batch rows of a loop among all of them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "reel/trace/executors/plan/loop/planned_loop.h"
#include "reel/trace/executors/plan/loop/row_cut.h"

namespace reel {

/// Locates the batch rows of one row block in the inputs and outputs of the whole loop. Adjacent
/// rows are read and written in place; others are gathered and scattered in each iteration.
///
/// Rows may finish before others of their block. Their computation continues with arbitrary values,
/// which are kept out of the outputs. The last carries of a row are saved when it finishes; in a
/// reverse loop a row begins late, with its first carries. Stacks get zeros for finished rows,
/// unless they are residuals.
class BlockRows {
 public:
  /// block: the loop planned for these rows.
  /// rows: their numbers. Adjacent ones, in increasing order, are read in place.
  /// lengths: iterations of each row; empty if all run to the end.
  /// in, out: inputs and outputs of the whole loop.
  /// is_first: this block also writes the outputs that are equal for all blocks.
  /// partial_sums: where sums over rows go, unless is_first.
  /// gathered: by input, an empty Tensor or its rows, with these rows first; must outlive this
  /// object. Empty if nothing was gathered.
  BlockRows(const PlannedLoop& block, const RowCut& cut, std::vector<std::int64_t> rows,
            std::vector<std::int64_t> lengths, OpInputs in, std::span<Tensor> out, bool is_first,
            const Tensors& partial_sums, std::span<const Tensor> gathered = {});

  /// Returns the iterations of the longest row; nothing if all rows run to the end.
  std::optional<std::int64_t> iterations() const {
    return ends() ? std::optional(last_) : std::nullopt;
  }
  /// Returns the inputs for a run of the block. Slices hold all rows.
  const Tensors& inputs() const { return inputs_; }
  /// Returns where the run writes its outputs. The run makes undefined ones itself: the carries
  /// behind it. Carries of rows that finish early reach the outputs through after() and finish().
  /// Sums over rows are the block's own: in partial_sums, except for the first block.
  Tensors& outputs() { return outputs_; }

  /// Returns the rows of slice i at a position.
  char* slice(std::size_t i, std::int64_t position);
  /// Returns where the rows of stack j at a position are written.
  char* stack(std::size_t j, std::int64_t position);

  /// Copy rows that are not neighbours, and handle entries that finish early. Must be called before
  /// and after each iteration. carries: the data of the block's rows.
  void before(std::int64_t position, std::span<char* const> carries);
  void after(std::int64_t position, std::span<char* const> carries);
  /// Completes the outputs. Must be called after the last iteration.
  void finish();
  /// Completes the outputs of rows that did not run from their ends on.
  void finish_rows(std::span<const std::int64_t> ends);

 private:
  /// A tensor that the block uses some rows of.
  struct Part {
    char* all = nullptr;     ///< of the whole loop
    std::int64_t bytes = 0;  ///< of a row; 0: no rows
    std::int64_t pitch = 0;  ///< bytes from iteration to iteration
    Tensor gathered;         ///< the block's rows, if they are not adjacent
  };
  char* row(const Part& part, std::size_t r, std::int64_t position = 0) const {
    return part.all + position * part.pitch + rows_[r] * part.bytes;
  }
  void add_inputs(const PlannedLoop& block, const RowCut& cut, OpInputs in,
                  std::span<const Tensor> gathered);
  void add_slices(const Tensor& slices, const TensorType& of_block, bool has_rows);
  void add_carries(const PlannedLoop& block, const RowCut& cut, OpInputs in);
  void add_stacks(const PlannedLoop& block);
  void add_sums(const PlannedLoop& block, const RowCut& cut, const Tensors& partial_sums);
  std::int64_t row_bytes(std::int64_t bytes) const { return bytes / all_; }
  bool ends() const { return !lengths_.empty(); }
  Tensor rows_of(const Tensor& whole, const TensorType& type) const;
  void clear_behind(std::size_t j, std::span<const std::int64_t> ends) const;
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
