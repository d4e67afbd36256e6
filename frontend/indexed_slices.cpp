#include "reel/frontend/indexed_slices.h"

#include "reel/core/ops.h"
#include "reel/core/ops/rows.h"
#include "reel/core/ops/sparse.h"
#include "reel/core/str.h"

namespace reel {
namespace {

Tensor as_i64(const Tensor& indices, const char* what) {
  if (!is_integer(indices.dtype()))
    throw DTypeError(str("IndexedSlices: ", what, " is i32 or i64, got ", indices.type()));
  return indices.dtype() == i64 ? indices : cast(indices, i64);
}

Tensor checked_indices(const IndexedSlices& slices) {
  const Tensor indices = as_i64(slices.indices, "indices");
  if (indices.rank() != 1 || indices.type().is_named())
    throw ShapeError(
        str("IndexedSlices: indices are a vector of a plain size, got ", indices.type()));
  return indices;
}

}  // namespace

Tensor to_dense(const IndexedSlices& slices) {
  const Tensor places = reshape(checked_indices(slices), {-1, 1});
  return scatter_places("IndexedSlices", places, slices.values,
                        as_i64(slices.dense_shape, "dense_shape"));
}

Tensor to_dense(const IndexedSlices& slices, const Dims& dims) {
  const Tensor whole = zeros(dims, slices.values.dtype());
  if (dims.empty() || !dims[0].has_size())
    throw ShapeError(
        str("IndexedSlices: a tensor made of rows has a first axis of known size, "
            "got the dims ",
            dims));
  return add_rows(whole, checked_row_numbers(slices.indices, dims[0].size()), slices.values);
}

IndexedSlices coalesced(const IndexedSlices& slices) {
  Coalesced once = coalesce_rows(slices.values, checked_indices(slices), -1);
  return {std::move(once.values), std::move(once.numbers), slices.dense_shape};
}

}  // namespace reel
