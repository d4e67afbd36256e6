// core/ops/products.h — dot, the op behind matmul: which axes of two tensors go together.
#pragma once

#include <vector>

#include "reel/core/op.h"
#include "reel/core/ops/product_table.h"
#include "reel/core/tensor.h"

namespace reel {

/// Axes by position, in pairs: a_contract[i] of a goes with b_contract[i] of b.
struct DotAttrs {
  std::vector<int> a_contract, b_contract, a_batch, b_batch;
  /// Of what a loop does for many steps at once, the order that a step has.
  SumOrder order = SumOrder::by_sizes;
  template <class F>
  static void fields(F&& f) {
    f("a_contract", &DotAttrs::a_contract);
    f("b_contract", &DotAttrs::b_contract);
    f("a_batch", &DotAttrs::a_batch);
    f("b_batch", &DotAttrs::b_batch);
    f("order", &DotAttrs::order);
  }
};
/// make_attrs(attrs); one object for each single pair of contracted axes.
AttrsRef dot_attrs(DotAttrs attrs);
/// dot_attrs for nearly every product there is: one pair of contracted axes, no batch, any order.
AttrsRef single_pair(int in_a, int in_b);

extern const Op dot_op;
/// Whether rows of a, which are its first axis and no operand's contracted one, have the same bits
/// in a product of `rows` of them as among all, for operands of these types.
bool dot_rows_are_alike(const DotAttrs& attrs, const TensorType& a, const TensorType& b,
                        std::int64_t rows);
/// The order in which its elements are added up, of operands of these types without padding.
SumOrder dot_order(const DotAttrs& attrs, const TensorType& a, const TensorType& b);
/// The same product of all steps of a loop, in front of whose axes those of the steps stand, added
/// up over them.
DotAttrs summed_over_time(const DotAttrs& step);
/// The product leaves out the padding of the contracted axes, whatever lies there: these are the
/// first ones of both operands (whose dims are equal), and nothing else has lengths or gives such.
bool counts_no_padding(const DotAttrs& attrs, const TensorType& a, const TensorType& b);
/// dot of operands without padding along the contracted axes.
Tensor masked_dot(const Tensor& a, const Tensor& b, AttrsRef attrs);

}  // namespace reel
