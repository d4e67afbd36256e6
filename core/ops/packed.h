// core/ops/packed.h — products with a matrix that was put into another order for them.
#pragma once

#include "reel/core/op.h"
#include "reel/core/ops/products.h"

namespace reel {

/// Which axis of a matrix will be contracted: its first or its last.
struct PackAttrs {
  int contract = 0;
  template <class F>
  static void fields(F&& f) {
    f("contract", &PackAttrs::contract);
  }
};

/// A tensor of floats for packed_dot: the elements of its columns, some columns at a time, in the
/// order in which a product reads them. Its type is still that of the tensor, which is not to be
/// read by anything else. Worth it where many products follow.
extern const Op pack_op;
/// Whether pack puts a matrix of this type into another order: a small one stays as it is.
bool is_worth_packing(const TensorType& type, int contract);
/// dot (DotAttrs, a single pair of axes and no batch) of a tensor and a packed one.
extern const Op packed_dot_op;

/// dot_rows_are_alike() of such a product.
bool packed_rows_are_alike(const Op& packed_dot, const DotAttrs& attrs, const TensorType& a,
                           const TensorType& b, std::int64_t rows);

/// For tests: both for every matrix, however small, and so narrow panels that it has several.
extern const Op pack_small_op;
extern const Op packed_small_dot_op;

inline bool is_packed_dot(const Op& op) {
  return &op == &packed_dot_op || &op == &packed_small_dot_op;
}

}  // namespace reel
