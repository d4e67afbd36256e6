// core/ops/products/batched_dot.h — products of the entries of a batch, with and without padding.
#pragma once

#include "reel/core/op/op.h"
#include "reel/core/ops/products/products.h"

namespace reel {

/// Computes a dot as a product of matrices for each entry of the batch; entries are the first
/// operand's. Leaves out padding of dims with a length for each entry.
///
/// lengths: if given, by group of axes (DotLengths), an input of the op: the lengths of the group's
/// first axis, one for each element of the first axis of the batch; -1: none.
struct DotLengths {
  int terms = -1;    ///< contracted axes
  int rows = -1;     ///< axes of the first operand alone
  int columns = -1;  ///< axes of the second operand alone
  bool operator==(const DotLengths&) const = default;
};
void batched_dot(KernelArgs& args, const DotAttrs& attrs, const DotLengths& lengths = {});

/// True if the kernel of dot reads no padding of contracted axes for operands of these types, in
/// which they have padding: one axis is contracted, with lengths over the batch.
bool reads_no_padding(const DotAttrs& attrs, const TensorType& a, const TensorType& b);

/// Attributes of unpadded_dot_op.
struct UnpaddedDotAttrs : DotAttrs {
  int terms = -1, rows = -1, columns = -1;  ///< DotLengths
  template <class F>
  static void fields(F&& f) {
    DotAttrs::fields(f);
    f("terms", &UnpaddedDotAttrs::terms);
    f("rows", &UnpaddedDotAttrs::rows);
    f("columns", &UnpaddedDotAttrs::columns);
  }
};
/// dot with lengths as inputs, for bodies that run on some rows of a batch: their dims have the
/// extent of all rows, and no lengths. Padding counts as zero, and is zero in the result.
extern const Op unpadded_dot_op;

}  // namespace reel
