#include "reel/frontend/transforms/jacobian.h"

#include "reel/core/base/str.h"
#include "reel/core/ops.h"
#include "reel/core/ops/shape/dims.h"
#include "reel/core/ops/shape/new_dims.h"
#include "reel/core/ops/shape/shape.h"

namespace reel::detail {
namespace {

/// Returns a new dim with one size: the size of `dim`, or of its longest entry.
Dim another(const Dim& dim) {
  return dim.has_size() && !dim.is_ragged() ? dim_like({&dim, 1}, dim.name(), dim.size())
                                            : dim_like({&dim, 1}, dim.name(), extent_of(dim));
}

/// Returns ones where the positions along both dims agree.
Tensor same_position(const Dim& front, const Dim& dim, const Dims& all, DType dtype) {
  const Tensor row = expand(range(front, i32), all), column = expand(range(dim, i32), all);
  return cast(equal(row, column), dtype);
}

}  // namespace

void check_columns(const char* function, const TreeLeaves& x) {
  for (const TreeLeaf& leaf : x)
    if (leaf.kind == TreeLeaf::Kind::tensor && leaf.tensor.is_defined() &&
        leaf.tensor.type().is_array())
      throw StructureError(str(function, ": an argument is a TensorArray (", leaf.tensor.type(),
                               "); pass its stack()"));
}

void check_rows(const char* function, const Tensor& y) {
  if (!y.is_defined()) throw ArgumentError(str(function, ": f returned an empty Tensor"));
  if (!is_float(y.dtype()))
    throw DTypeError(str(function, ": f must return a floating tensor, got ", y.type()));
}

UnitTensors unit_tensors(const char* function, const Tensor& like) {
  UnitTensors result;
  const Dims dims = like.dims();
  if (!like.type().is_named()) {
    std::vector<std::int64_t> twice;
    for (int turn = 0; turn < 2; ++turn)
      for (const Dim& dim : dims) {
        if (!dim.has_size())
          throw ShapeError(str(function, ": ", like.type(),
                               " has a plain size that only a run knows; give its dims names"));
        twice.push_back(dim.size());
      }
    result.front = dims;
    const Dim count(like.type().numel());
    result.all = reshape(one_hot(range(count, i32), count, like.dtype()), twice);
    return result;
  }
  for (const Dim& dim : dims) result.front.push_back(another(dim));
  Dims all = result.front;
  all.insert(all.end(), dims.begin(), dims.end());
  result.all = ones(all, like.dtype());
  for (std::size_t i = 0; i < dims.size(); ++i)
    result.all = result.all * same_position(result.front[i], dims[i], all, like.dtype());
  result.all = mask_padding(result.all);
  return result;
}

Tensor named_jacobian(Tensor jacobian, const Dims& front, const Dims& rows, const Dims& columns) {
  for (std::size_t i = 0; i < front.size(); ++i)
    if (rows[i].is_named() && !rows[i].is_ragged() && !contains(columns, rows[i]) &&
        !contains(jacobian.dims(), rows[i]))
      jacobian = rename(jacobian, front[i], rows[i]);
  return jacobian;
}

Tensor with_rows_first(const Tensor& jacobian, int columns) {
  std::vector<int> order;
  for (int i = columns; i < jacobian.rank(); ++i) order.push_back(i);
  for (int i = 0; i < columns; ++i) order.push_back(i);
  return transposed(jacobian, order);
}

Tensor apart_from_dims(Tensor y, const Dims& x) {
  const Dims dims = y.dims();
  for (const Dim& dim : dims)
    if (dim.is_named() && contains(x, dim)) y = rename(y, dim, another(dim));
  return y;
}

Tensor no_derivatives(const Tensor& y, const Tensor& x) {
  Dims dims = apart_from_dims(y, x.dims()).dims();
  dims.insert(dims.end(), x.dims().begin(), x.dims().end());
  return zeros(dims, x.dtype());
}

}  // namespace reel::detail
