// core/ops/indexing/saved_rows.h — SavedRows, the rows of a table before an op changes them.
#pragma once

#include <cstdint>

#include "reel/core/op/op.h"
#include "reel/core/types/tensor.h"

namespace reel {

/// Returns true for ops that return table 0 with some rows changed: operand 1 has their numbers,
/// operand 2 has their sizes.
bool changes_rows(const Op& op);

/// Copies of some rows of a table, with which a change of the table is undone.
class SavedRows {
 public:
  /// Copies the rows that a call of an op with changes_rows() will change. Throws MemoryError.
  SavedRows(const Attrs* attrs, OpInputs in);
  /// Writes the rows back. Requires a table of the same sizes. Allocates nothing, never fails.
  void restore(const Tensor& table) const noexcept;

 private:
  Tensor numbers_, rows_;
  int axes_;  ///< the number of first axes of the table that index rows
};

}  // namespace reel
