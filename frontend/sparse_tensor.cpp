#include "reel/frontend/sparse_tensor.h"

#include "reel/core/ops.h"
#include "reel/core/ops/sparse.h"
#include "reel/core/str.h"

namespace reel {
namespace {

Tensor as_i64(const Tensor& x, const char* what) {
  if (!is_integer(x.dtype()))
    throw DTypeError(str("SparseTensor: ", what, " are i32 or i64, got ", x.type()));
  return x.dtype() == i64 ? x : cast(x, i64);
}

/// The first index of each element, or the second, as places along one axis.
Tensor column(const Tensor& indices, std::int64_t axis) {
  return slice(indices, 1, axis, axis + 1);
}

}  // namespace

Tensor to_dense(const SparseTensor& sparse) {
  return scatter_places("SparseTensor", as_i64(sparse.indices, "indices"), sparse.values,
                        as_i64(sparse.dense_shape, "sizes"));
}

SparseTensor from_dense(const Tensor& x) {
  for (const Dim& dim : x.dims())
    if (dim.is_named() || !dim.has_size())
      throw ShapeError(
          str("SparseTensor: from_dense takes plain sizes that are known, got ", x.type()));
  const std::vector<std::int64_t>& sizes = x.type().sizes();
  const Tensor flat = reshape(x, {x.type().numel()});
  const Tensor numbers = pack(range(x.type().numel(), i64), not_equal(flat, 0));
  Tensors indices;
  std::int64_t step = x.type().numel();
  for (const std::int64_t size : sizes) {
    step = size ? step / size : 0;
    indices.push_back(reshape(mod(floor_divide(numbers, step), size), {-1, 1}));
  }
  return {indices.empty() ? zeros({1, 0}, i64) : concat(indices, 1), gather(flat, numbers, 0),
          shape_of(x)};
}

Tensor matmul(const SparseTensor& a, const Tensor& b) {
  const Tensor indices = as_i64(a.indices, "indices"), shape = as_i64(a.dense_shape, "sizes");
  const Dim two(2);
  if (indices.rank() != 2 || !(indices.dims()[1] == two) || a.values.rank() != 1 || b.rank() != 2 ||
      b.type().is_named())
    throw ShapeError(str("matmul: takes a sparse matrix and a matrix with plain sizes, got values ",
                         a.values.type(), " at indices ", indices.type(), ", and ", b.type()));
  if (a.values.dtype() != b.dtype())
    throw DTypeError(str("matmul: dtypes differ: values ", a.values.type(), " and ", b.type(),
                         "; cast one of them"));
  const Tensor rows = gather_places("matmul", b, column(indices, 1));
  const Tensor terms = rows * reshape(a.values, {-1, 1});
  const Tensor sizes = concat({slice(shape, 0, 0, 1), slice(shape_of(b), 0, 1, 2)}, 0);
  return scatter_places("matmul", column(indices, 0), terms, sizes);
}

}  // namespace reel
