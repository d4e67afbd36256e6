// Writers of matrix products.
#include <algorithm>

#include "reel/core/ops/products/products.h"
#include "reel/core/ops/shape/new_dims.h"
#include "reel/onnx/writer_registry.h"

namespace reel::exported {
namespace {

bool has(const std::vector<int>& axes, int axis) {
  return std::find(axes.begin(), axes.end(), axis) != axes.end();
}

/// The kernel of the op itself skips padding in some products; ONNX reads zeros there.
Name operand(const WriteCall& call, std::size_t i) {
  const DotAttrs& attrs = call.attr<DotAttrs>();
  const TensorType& type = call.type_in(i);
  if (!counts_no_padding(attrs, call.type_in(0), call.type_in(1))) return call.in(i);
  return call.to.mask_padding(call.in(i), type, call.to.model().number(0, type.dtype()));
}

/// Returns the product of a matrix and a vector. The vector stands on the side where the matrix
/// need not be transposed: onnxruntime 1.20 computes wrong products of transposed matrices and
/// vectors. It refuses a vector behind a matrix without rows, but not a matrix of one column.
Name with_vector(GraphWriter& to, const Name& matrix, const TensorType& type, int contracted,
                 const Name& vector) {
  if (contracted == 0) return to.add("MatMul", {vector, matrix});
  if (known_size(type.dims()[0]) > 0) return to.add("MatMul", {matrix, vector});
  return to.squeeze(to.add("MatMul", {matrix, to.unsqueeze(vector, {1})}), {1});
}

/// The axes of an operand of MatMul.
struct Axes {
  std::vector<int> batch, free, contract;
};
Axes axes_of(int rank, const std::vector<int>& batch, const std::vector<int>& contract) {
  Axes axes{batch, {}, contract};
  for (int axis = 0; axis < rank; ++axis)
    if (!has(batch, axis) && !has(contract, axis)) axes.free.push_back(axis);
  return axes;
}

/// Returns the number of elements along some axes: i64[1].
Name count_along(GraphWriter& to, const TensorType& type, const std::vector<int>& axes) {
  Name result;
  std::int64_t known = 1;
  for (const int axis : axes) {
    const Dim& dim = dim_at(type, axis);
    if (known_size(dim) >= 0)
      known *= known_size(dim);
    else
      result = result.empty() ? to.size(dim) : to.add("Mul", {result, to.size(dim)});
  }
  if (result.empty()) return to.model().integers({known});
  return known == 1 ? result : to.add("Mul", {result, to.model().integers({known})});
}

/// Returns an operand of MatMul with its axes in another order.
Name transposed(GraphWriter& to, const Name& x, const TensorType& type,
                const std::vector<int>& order) {
  const Name turned = to.transpose(x, order);
  // onnxruntime joins a Transpose with the MatMul behind it, and lacks a kernel for that in f64. It
  // keeps a Max of one operand, but not an Identity.
  return type.dtype() == f64 && turned != x ? to.add("Max", {turned}) : turned;
}

/// Returns an operand as matrices for MatMul, with the axes of the batch in front: the free and the
/// contracted axes are one axis each, in this order or the other one.
Name as_matrices(GraphWriter& to, const Name& x, const TensorType& type, const Axes& axes,
                 bool contracts_last) {
  const std::vector<int>& first = contracts_last ? axes.free : axes.contract;
  const std::vector<int>& second = contracts_last ? axes.contract : axes.free;
  std::vector<int> order = axes.batch;
  order.insert(order.end(), first.begin(), first.end());
  order.insert(order.end(), second.begin(), second.end());
  const Name turned = transposed(to, x, type, order);
  if (first.size() == 1 && second.size() == 1) return turned;
  Names sizes;
  for (const int axis : axes.batch) sizes.push_back(to.size(dim_at(type, axis)));
  sizes.push_back(count_along(to, type, first));
  sizes.push_back(count_along(to, type, second));
  return to.add("Reshape", {turned, to.concat(sizes, 0)}, {{"allowzero", integer(1)}});
}

/// Writes a MatMul rather than an Einsum, with which onnxruntime crashes if an operand is empty.
Names write_dot(const WriteCall& call) {
  GraphWriter& to = call.to;
  const DotAttrs& attrs = call.attr<DotAttrs>();
  const TensorType &type_a = call.type_in(0), &type_b = call.type_in(1);
  const int rank_a = type_a.rank(), rank_b = type_b.rank();
  const Name a = operand(call, 0), b = operand(call, 1);
  if (attrs.a_batch.empty() && attrs.a_contract.size() == 1) {
    if (rank_a == 2 && rank_b == 1) return {with_vector(to, a, type_a, attrs.a_contract[0], b)};
    if (rank_a == 1 && rank_b == 2) return {with_vector(to, b, type_b, attrs.b_contract[0], a)};
    if (rank_a == 1 && rank_b == 1) return {to.add("MatMul", {a, b})};
  }
  const Axes axes_a = axes_of(rank_a, attrs.a_batch, attrs.a_contract),
             axes_b = axes_of(rank_b, attrs.b_batch, attrs.b_contract);
  // The free axes of a are a batch of MatMul if b is a matrix.
  const bool is_wide =
      axes_a.batch.empty() && axes_a.contract.size() == 1 && rank_a > 2 && rank_b == 2;
  if (is_wide) {
    std::vector<int> order = axes_a.free;
    order.push_back(axes_a.contract[0]);
    return {to.add("MatMul",
                   {transposed(to, a, type_a, order), as_matrices(to, b, type_b, axes_b, false)})};
  }
  const Name result = to.add("MatMul", {as_matrices(to, a, type_a, axes_a, true),
                                        as_matrices(to, b, type_b, axes_b, false)});
  if (axes_a.free.size() == 1 && axes_b.free.size() == 1) return {result};
  return {to.reshape(result, call.type_out().dims())};
}

const Writer kWriters[] = {{"dot", write_dot}};

}  // namespace

std::span<const Writer> product_writers() { return kWriters; }

}  // namespace reel::exported
