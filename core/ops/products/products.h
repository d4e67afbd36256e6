// core/ops/products/products.h — dot_op, the product behind matmul: contracts pairs of axes of two
// tensors.
#pragma once

#include <vector>

#include "reel/core/base/visibility.h"
#include "reel/core/op/axes.h"
#include "reel/core/op/op.h"
#include "reel/core/ops/kernels/product_table.h"
#include "reel/core/types/tensor.h"

namespace reel {

/// Axes by position, in pairs: a_contract[i] of a goes with b_contract[i] of b.
struct DotAttrs {
  std::vector<int> a_contract, b_contract, a_batch, b_batch;
  /// For products of many steps at once: the order of a single step's product.
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
/// Returns make_attrs(attrs); a shared object for each single pair of contracted axes.
AttrsRef dot_attrs(DotAttrs attrs);
/// Returns dot_attrs of the most common products: a pair of contracted axes, no batch, any order.
AttrsRef single_pair(int in_a, int in_b);

/// Implements `reads_lengths` of products: over axes with padding they add up its rows apart.
bool product_reads_lengths(const OpCall& call, std::size_t in, int axis);
/// Implements `multiplications` of products with these attributes.
template <class Attrs>
std::int64_t product_multiplications(const OpCall& call) {
  if (!call.in[0].is_known() || !call.out[0].is_known()) return 0;
  std::int64_t inner = 1;
  for (const int axis : call.attr<Attrs>().a_contract)
    inner *= call.in[0].sizes()[static_cast<std::size_t>(axis)];
  return call.out[0].numel() * inner;
}

extern const Op dot_op;
/// Sets factors: the result has the batch pairs, then a's free axes, then b's free axes; pairs of
/// contracted axes are summed.
void product_axes(const OpCall& call, AxisFactors& f);
/// True if rows of a have the same bits in a product of `rows` rows as among all, for operands of
/// these types. Rows are along a's first axis, which is not contracted.
bool dot_rows_are_alike(const DotAttrs& attrs, const TensorType& a, const TensorType& b,
                        std::int64_t rows);
/// Returns the order in which terms are added, for operands of these types without padding.
SumOrder dot_order(const DotAttrs& attrs, const TensorType& a, const TensorType& b);
/// Returns the attributes of the product of all steps of a loop, summed over the steps. Both
/// operands have the axis of the steps in front.
DotAttrs summed_across_iterations(const DotAttrs& step);
/// True if the kernel itself skips the padding of contracted axes, whatever it holds. These are the
/// first axes of both operands, with equal dims, and no other axis is ragged or has lengths over
/// others.
REEL_API bool counts_no_padding(const DotAttrs& attrs, const TensorType& a, const TensorType& b);
/// Returns the dot of both operands with zeros in the padding along contracted axes.
Tensor masked_dot(const Tensor& a, const Tensor& b, AttrsRef attrs);

}  // namespace reel
