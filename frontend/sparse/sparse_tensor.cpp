#include "reel/frontend/sparse/sparse_tensor.h"

#include "reel/core/base/str.h"
#include "reel/core/ops.h"
#include "reel/core/ops/indexing/sparse.h"

namespace reel {
namespace {

Tensor as_i64(const Tensor& x, const char* what) {
  if (!is_integer(x.dtype()))
    throw DTypeError(str("SparseTensor: ", what, " are i32 or i64, got ", x.type()));
  return x.dtype() == i64 ? x : cast(x, i64);
}

void check_given(const SparseTensor& sparse) {
  if (!sparse.indices.is_defined() || !sparse.values.is_defined() ||
      !sparse.dense_shape.is_defined())
    throw ArgumentError(
        "SparseTensor: an empty SparseTensor was used; give it indices, values and a dense_shape");
}

/// Returns one column of the indices: all indices along one axis.
Tensor column(const Tensor& places, std::int64_t axis) {
  return reshape(slice(places, 1, axis, axis + 1), {-1});
}

}  // namespace

Tensor to_dense(const SparseTensor& sparse) {
  check_given(sparse);
  const Tensor indices = as_i64(sparse.indices, "indices");
  if (indices.rank() != 2)
    throw ShapeError(str("SparseTensor: indices are [n, rank], got ", sparse.indices.type()));
  const bool is_mask = sparse.values.dtype() == boolean;
  const Tensor whole =
      scatter_places("SparseTensor", indices, is_mask ? cast(sparse.values, i32) : sparse.values,
                     as_i64(sparse.dense_shape, "sizes"));
  return is_mask ? cast(whole, boolean) : whole;
}

SparseTensor from_dense(const Tensor& x) {
  check_defined("from_dense", x);
  for (const Dim& dim : x.dims())
    if (dim.is_named() || !dim.has_size())
      throw ShapeError(
          str("SparseTensor: from_dense takes plain sizes that are known, got ", x.type()));
  const Tensor flat = reshape(x, {x.type().numel()});
  const Tensor is_there = x.dtype() == boolean ? flat : not_equal(flat, 0);
  const Tensor numbers = pack(range(x.type().numel(), i64), is_there);
  const Tensor each = reshape(numbers, {-1, 1});
  Tensors indices{slice(each, 1, 0, 0)};  // a scalar has no other column
  std::int64_t step = x.type().numel();
  for (const std::int64_t size : x.type().sizes()) {
    step = size ? step / size : 0;
    indices.push_back(mod(floor_divide(each, step), size));
  }
  return {concat(indices, 1), gather(flat, numbers, 0), shape_of(x)};
}

SparseTensor transpose(const SparseTensor& matrix) {
  check_given(matrix);
  const Tensor &indices = matrix.indices, &shape = matrix.dense_shape;
  const auto are_two = [](const Dim& dim) { return !dim.has_size() || dim.raw_size() == 2; };
  if (indices.rank() != 2 || shape.rank() != 1 || !are_two(indices.dims()[1]) ||
      !are_two(shape.dims()[0]))
    throw ShapeError(str("transpose: takes a sparse matrix, got indices ", indices.type(),
                         " and dense_shape ", shape.type()));
  const auto swapped = [](const Tensor& x, int axis) {
    return concat({slice(x, axis, 1, 2), slice(x, axis, 0, 1)}, axis);
  };
  return {swapped(indices, 1), matrix.values, swapped(shape, 0)};
}

Tensor matmul(const SparseTensor& a, const Tensor& b) {
  check_given(a);
  const Tensor shape = as_i64(a.dense_shape, "sizes");
  const Tensor places = matrix_places(as_i64(a.indices, "indices"), a.values, shape, b);
  const Tensor terms = gather_places("matmul", b, column(places, 1)) * reshape(a.values, {-1, 1});
  const Tensor sizes = concat({slice(shape, 0, 0, 1), slice(shape_of(b), 0, 1, 2)}, 0);
  return scatter_places("matmul", column(places, 0), terms, sizes);
}

}  // namespace reel
