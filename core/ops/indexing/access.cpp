// Tensor's access to elements by index.
#include "reel/core/base/str.h"
#include "reel/core/ops.h"
#include "reel/core/ops/indexing/index.h"

namespace reel {
namespace {

/// Returns the element at the index along an axis. Throws as gather, in the name of `function`.
Tensor take(const char* function, const Tensor& x, const Arg& index, const Axis& axis) {
  if (!index.is_number()) return gather_for(function, x, index.tensor(), axis);
  if (index.is_floating())
    throw DTypeError(
        str(function, ": an index is an integer, got ", index.number(), " for ", x.type()));
  return gather_for(function, x, scalar(index.integer(), i64), axis);
}

}  // namespace

const Tensor Tensor::operator[](const Arg& index) const {
  if (!rank()) throw ShapeError(str("operator[]: a tensor of type ", type(), " has no axis"));
  return take("operator[]", *this, index, 0);
}

const Tensor Tensor::at(const Dim& dim, const Arg& index) const {
  return take("at", *this, index, dim);
}

Tensor Tensor::at_all(std::span<const Arg> indices) const {
  const auto count = static_cast<int>(indices.size());
  if (count > rank())
    throw ShapeError(
        str("at: ", count, " indices are given, and ", type(), " has ", rank(), " axes"));
  Tensor result = *this;
  for (int axis = 0; axis < count; ++axis) {
    const Arg& index = indices[static_cast<std::size_t>(axis)];
    if (type().is_named()) {
      result = take("at", result, index, dim(axis));
      continue;
    }
    if (count > 1 && !index.is_number() && index.tensor().rank())
      throw ShapeError(str("at: index ", axis, " is ", index.tensor().type(),
                           ", but of several indices each is a number or a scalar; use gather"));
    result = take("at", result, index, 0);
  }
  return result;
}

}  // namespace reel
