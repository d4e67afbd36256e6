#include "reel/frontend/sparse/indexed_slices.h"

#include "reel/core/base/str.h"
#include "reel/core/ops.h"
#include "reel/core/ops/indexing/rows.h"
#include "reel/core/ops/indexing/sparse.h"

namespace reel {
namespace {

Tensor integers_of_slices(const Tensor& indices, const char* what) {
  if (!is_integer(indices.dtype()))
    throw DTypeError(str("IndexedSlices: ", what, " is i32 or i64, got ", indices.type()));
  return indices.dtype() == i64 ? indices : cast(indices, i64);
}

void check_given(const Tensor& values, const Tensor& indices) {
  if (!values.is_defined() || !indices.is_defined())
    throw ArgumentError(
        "IndexedSlices: an empty IndexedSlices was used; give it values and indices");
}

Tensor checked_indices(const IndexedSlices& slices) {
  check_given(slices.values, slices.indices);
  const Tensor indices = integers_of_slices(slices.indices, "indices");
  check_row_indices(indices.type());
  return indices;
}

/// Throws ShapeError unless there is one row per index, and rows have the shape of a row of
/// `whole`.
void check_rows(const IndexedSlices& slices, const TensorType& whole) {
  const auto fits = [](const Dim& a, const Dim& b) {
    return !a.has_size() || !b.has_size() || a.raw_size() == b.raw_size();
  };
  const Dims &rows = slices.values.dims(), &of = whole.dims();
  bool fit = rows.size() == of.size() && fits(rows[0], slices.indices.dims()[0]);
  for (std::size_t axis = 1; fit && axis < of.size(); ++axis) fit = fits(rows[axis], of[axis]);
  if (!fit)
    throw ShapeError(
        str("IndexedSlices: values ", slices.values.type(), " at indices ", slices.indices.type(),
            " do not fit ", whole,
            ": values have one row for each index, with the sizes of all axes but the first"));
}

}  // namespace

Tensor to_dense(const IndexedSlices& slices) {
  const Tensor indices = checked_indices(slices);
  if (!slices.dense_shape.is_defined())
    throw ArgumentError("IndexedSlices: dense_shape is empty; give the sizes of the whole tensor");
  return scatter_places("IndexedSlices", indices, slices.values,
                        integers_of_slices(slices.dense_shape, "dense_shape"));
}

Tensor to_dense(const IndexedSlices& slices, const Dims& dims) {
  checked_indices(slices);
  if (dims.empty() || !dims[0].has_size())
    throw ShapeError(
        str("IndexedSlices: a tensor made of rows has a first axis of known size, "
            "got the dims ",
            dims));
  const Tensor whole = zeros(dims, slices.values.dtype());
  check_rows(slices, whole.type());
  return add_rows(whole, checked_row_numbers(slices.indices, dims[0].size()), slices.values);
}

IndexedSlices coalesced(const IndexedSlices& slices) {
  Coalesced once = coalesce_rows(slices.values, checked_indices(slices), -1);
  const DType dtype = slices.indices.dtype();
  return {std::move(once.values),
          dtype == i64 ? std::move(once.numbers) : cast(once.numbers, dtype), slices.dense_shape};
}

}  // namespace reel
