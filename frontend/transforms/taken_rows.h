// frontend/transforms/taken_rows.h — TakenRows, the rows that take a branch, packed along a dim.
#pragma once

#include "reel/core/graph/graph.h"
#include "reel/frontend/transforms/row_batch.h"

namespace reel {

/// Packs the rows for which a mask is true along a new dim, `taken`, and puts results back into
/// their rows. Only a run knows the size of the dim. Requires an active trace.
class TakenRows {
 public:
  /// mask: boolean[rows].
  TakenRows(Tensor mask, const Rows& all);

  /// Returns the dim of the packed rows.
  const Rows& rows() const { return taken_; }
  /// Returns the value with the taken rows only. A value that is the same in all rows gets dims of
  /// the taken rows in place of dims with lengths for each row. Throws RowsRefused for values that
  /// cannot be packed.
  RowValue pack(const RowValue& value) const;
  /// Returns the graph with dims of the taken rows bound in place of dims with lengths for each
  /// row.
  SubGraph pack(const SubGraph& graph) const;
  /// Returns a value of the taken rows in all rows, with zeros in the others.
  Tensor unpack(const RowValue& value) const;

 private:
  Dim pack(const Dim& dim) const;
  Tensor with_packed_dims(const Tensor& x) const;

  Tensor mask_;
  Rows all_, taken_;
};

}  // namespace reel
