// core/ops/products/packed.h — products with a matrix that was reordered for them.
#pragma once

#include "reel/core/op/op.h"
#include "reel/core/ops/products/products.h"

namespace reel {

/// The axis of a matrix that will be contracted: its first or its last.
struct PackAttrs {
  int contract = 0;
  template <class F>
  static void fields(F&& f) {
    f("contract", &PackAttrs::contract);
  }
};

/// Reorders a tensor of floats for packed_dot: elements in the order in which a product reads them,
/// some columns at a time. The result keeps the tensor's type, but its axes have no strides: only
/// packed_dot may read it, and no rows can be sliced from it. Worth its cost if many products
/// follow.
extern const Op pack_op;
/// dot (DotAttrs, a single pair of axes and no batch) of a tensor and a packed one.
extern const Op packed_dot_op;
/// Versions for matrices of any size, used if several rows read the matrix along its last axis.
extern const Op pack_turned_op;
extern const Op packed_turned_dot_op;

/// True if packed_dot supports the product: b is a matrix, contracted with the first or last axis
/// of a.
bool can_be_packed(const DotAttrs& dot, const TensorType& a, const TensorType& b);
struct PackedOps {
  const Op &pack, &dot;
};
/// Returns the ops to use for a product in a loop.
PackedOps packed_ops_of(const DotAttrs& dot, const TensorType& a, const TensorType& b);
/// True if packing reorders the matrix. A small one may stay unchanged.
bool has_panels(const Op& packed_dot, const DotAttrs& dot, const TensorType& b);

/// Returns true if a pack op puts the elements of x into another order.
bool makes_panels(const Op& pack, const Attrs* attrs, const TensorType& x);

/// Returns dot_order() for the packed product.
SumOrder packed_order(const Op& packed_dot, const DotAttrs& dot, const TensorType& a,
                      const TensorType& b);
/// Returns dot_rows_are_alike() for the packed product.
bool packed_rows_are_alike(const Op& packed_dot, const DotAttrs& attrs, const TensorType& a,
                           const TensorType& b, std::int64_t rows);

/// Returns dot_takes_memory() for the packed product.
bool packed_takes_memory(const Op& packed_dot, const DotAttrs& dot, const TensorType& a,
                         const TensorType& b);

inline bool is_pack(const Op& op) { return &op == &pack_op || &op == &pack_turned_op; }
inline bool is_packed_dot(const Op& op) {
  return &op == &packed_dot_op || &op == &packed_turned_dot_op;
}

}  // namespace reel
