// matmul: finds the contracted axes of its operands, by name or by NumPy's rules.
#include <algorithm>
#include <array>
#include <vector>

#include "reel/core/base/str.h"
#include "reel/core/dims/same_name.h"
#include "reel/core/op/bind.h"
#include "reel/core/op/op_errors.h"
#include "reel/core/ops.h"
#include "reel/core/ops/products/products.h"
#include "reel/core/ops/reductions/reduce.h"
#include "reel/core/ops/shape/sliced_dims.h"

namespace reel {
namespace {

int contracted_axis(const char* role, const TensorType& type, const Dim& dim,
                    const char* other_role, const TensorType& other) {
  if (!dim.is_named())
    throw ArgumentError(str("matmul: a plain size, ", dim,
                            ", names no dim to contract; give a named Dim, or no dim for ",
                            "NumPy's rules"));
  const int axis = find_axis(type.dims(), dim);
  if (axis >= 0) return axis;
  throw ShapeError(str("matmul: ", role, ' ', type, " has no dim ", dim, " to contract with ",
                       other_role, ' ', other, one_dim_hint({dim}, type.dims())));
}

/// The axes of plain operands by NumPy's rules: axes in front of the matrix are batch axes, aligned
/// from the right.
struct PlainAxes {
  DotAttrs attrs;
  std::vector<int> a_ones, b_ones;  ///< axes of size 1 that meet a longer one: dropped
  std::vector<int> order;  ///< positions of NumPy's axes in the result; empty if they are in place
};

PlainAxes plain_axes(const TensorType& a, const TensorType& b) {
  PlainAxes result;
  DotAttrs& attrs = result.attrs;
  const int a_batch = std::max(a.rank() - 2, 0), b_batch = std::max(b.rank() - 2, 0);
  const int batch = std::max(a_batch, b_batch);
  enum class From { both, a, b };
  std::vector<From> from;
  for (int i = 0; i < batch; ++i) {
    const int in_a = i - (batch - a_batch), in_b = i - (batch - b_batch);
    if (in_a < 0 || in_b < 0) {
      from.push_back(in_a < 0 ? From::b : From::a);
      continue;
    }
    const bool a_is_one = a.sizes()[static_cast<std::size_t>(in_a)] == 1,
               b_is_one = b.sizes()[static_cast<std::size_t>(in_b)] == 1;
    if (a_is_one != b_is_one) {
      (a_is_one ? result.a_ones : result.b_ones).push_back(a_is_one ? in_a : in_b);
      from.push_back(a_is_one ? From::b : From::a);
      continue;
    }
    attrs.a_batch.push_back(in_a);
    attrs.b_batch.push_back(in_b);
    from.push_back(From::both);
  }
  attrs.a_contract = {a.rank() - 1};
  attrs.b_contract = {std::max(b.rank() - 2, 0)};
  // The result has the batch axes of both, then a's with its rows, then b's with its columns. NumPy
  // has all batch axes in front.
  const auto count = [&](From which) {
    return static_cast<int>(std::count(from.begin(), from.end(), which));
  };
  int next_both = 0, next_a = count(From::both), next_b = next_a + count(From::a) + (a.rank() > 1);
  for (From which : from)
    result.order.push_back(which == From::both ? next_both++
                           : which == From::a  ? next_a++
                                               : next_b++);
  if (a.rank() > 1) result.order.push_back(next_a);
  if (b.rank() > 1) result.order.push_back(next_b);
  if (std::is_sorted(result.order.begin(), result.order.end())) result.order.clear();
  return result;
}

/// Drops these axes of size 1; the others keep their order.
Tensor drop_ones(const Tensor& x, const std::vector<int>& ones, std::vector<int>& contract,
                 std::vector<int>& batch) {
  if (ones.empty()) return x;
  for (std::vector<int>* axes : {&contract, &batch})
    for (int& axis : *axes)
      axis -= static_cast<int>(
          std::count_if(ones.begin(), ones.end(), [&](int one) { return one < axis; }));
  return sum(
      x, Axes(std::vector<Axis>(ones.begin(), ones.end())));  // one element each: shares storage
}

}  // namespace

Tensor matmul(const Tensor& lhs, const Tensor& rhs, const Dims& contracted) {
  check_defined("matmul", lhs);
  check_defined("matmul", rhs);
  Tensor a = lhs, b = rhs;
  if (has_slices()) meet_slices(std::array{&a, &b});
  DotAttrs attrs;
  attrs.a_contract.reserve(contracted.size());
  attrs.b_contract.reserve(contracted.size());
  for (const Dim& dim : contracted) {
    const int in_a = contracted_axis("lhs", a.type(), dim, "rhs", b.type());
    const int in_b = contracted_axis("rhs", b.type(), dim, "lhs", a.type());
    if (has(attrs.a_contract, in_a))
      throw ArgumentError(str("matmul: dim ", dim, " is to be contracted twice"));
    attrs.a_contract.push_back(in_a);
    attrs.b_contract.push_back(in_b);
  }
  if (a.type().is_named() && b.type().is_named())
    for (int axis = 0; axis < a.rank(); ++axis) {
      const int in_b = has(attrs.a_contract, axis)
                           ? -1
                           : find(b.dims(), a.dims()[static_cast<std::size_t>(axis)]);
      if (in_b < 0) continue;
      attrs.a_batch.push_back(axis);
      attrs.b_batch.push_back(in_b);
    }
  return masked_dot(a, b, dot_attrs(std::move(attrs)));
}

Tensor matmul(const Tensor& a, const Tensor& b) {
  check_defined("matmul", a);
  check_defined("matmul", b);
  check_ranked(a);
  check_ranked(b);
  const TensorType &lhs = a.type(), &rhs = b.type();
  if (lhs.is_named() != rhs.is_named() && lhs.rank() && rhs.rank())
    throw ShapeError(str("matmul: named and plain dims meet: lhs ", lhs, ", rhs ", rhs,
                         "; name the dims of both, as in reshape(x, {dim, ...}), and say which to "
                         "contract: matmul(a, b, dim)"));
  if (lhs.is_named() || rhs.is_named())
    throw ArgumentError(str("matmul: lhs ", lhs, ", rhs ", rhs,
                            ": with named dims, say which to contract, as in ",
                            "matmul(a, b, dim)"));
  if (lhs.rank() == 0 || rhs.rank() == 0)
    throw ShapeError(
        str("matmul: lhs ", lhs, ", rhs ", rhs, ": a scalar has no axis to contract; use *"));
  if (rhs.rank() <= 2) return bind(dot_op, {a, b}, single_pair(lhs.rank() - 1, 0));
  PlainAxes axes = plain_axes(lhs, rhs);
  const Tensor left = drop_ones(a, axes.a_ones, axes.attrs.a_contract, axes.attrs.a_batch);
  const Tensor right = drop_ones(b, axes.b_ones, axes.attrs.b_contract, axes.attrs.b_batch);
  Tensor result = bind(dot_op, {left, right}, dot_attrs(std::move(axes.attrs)));
  return axes.order.empty()
             ? result
             : transpose(result, Axes(std::vector<Axis>(axes.order.begin(), axes.order.end())));
}

}  // namespace reel
