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
/// order in which a product reads them. Its type is still that of the tensor, but no axis has a
/// place of its own: nothing else may read it, and no rows can be taken out of it. Worth it where
/// many products follow.
extern const Op pack_op;
/// dot (DotAttrs, a single pair of axes and no batch) of a tensor and a packed one.
extern const Op packed_dot_op;
/// The same for every matrix, however small: for one that is read the other way by several rows.
extern const Op pack_turned_op;
extern const Op packed_turned_dot_op;

/// Whether there is a packed_dot for such a product: of a matrix, by the first or the last axis of
/// a.
bool can_be_packed(const DotAttrs& dot, const TensorType& a, const TensorType& b);
struct PackedOps {
  const Op &pack, &dot;
};
/// Which of the ops a product has in a loop.
PackedOps packed_ops_of(const DotAttrs& dot, const TensorType& a, const TensorType& b);
/// Whether the matrix is in another order: a small one may be as it was.
bool has_panels(const Op& packed_dot, const DotAttrs& dot, const TensorType& b);

/// Returns true if a pack op puts the elements of x into another order.
bool makes_panels(const Op& pack, const Attrs* attrs, const TensorType& x);

/// dot_order() of such a product.
SumOrder packed_order(const Op& packed_dot, const DotAttrs& dot, const TensorType& a,
                      const TensorType& b);
/// dot_rows_are_alike() of such a product.
bool packed_rows_are_alike(const Op& packed_dot, const DotAttrs& attrs, const TensorType& a,
                           const TensorType& b, std::int64_t rows);

/// For tests: both for every matrix, however small, and so narrow panels that it has several.
extern const Op pack_small_op;
extern const Op packed_small_dot_op;

inline bool is_pack(const Op& op) {
  return &op == &pack_op || &op == &pack_turned_op || &op == &pack_small_op;
}
inline bool is_packed_dot(const Op& op) {
  return &op == &packed_dot_op || &op == &packed_turned_dot_op || &op == &packed_small_dot_op;
}

}  // namespace reel
