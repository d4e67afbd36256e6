#include "reel/core/dims/axis.h"

#include <algorithm>

#include "reel/core/base/errors.h"
#include "reel/core/base/str.h"
#include "reel/core/dims/dim_slices.h"
#include "reel/core/dims/same_name.h"
#include "reel/core/types/tensor.h"

namespace reel {

int Axis::in(const TensorType& type, std::string_view op) const {
  if (const Dim* named = dim()) {
    const int position = find_axis(type.dims(), *named);
    if (position >= 0 && named->is_named()) return position;
    if (!named->is_named())
      throw ArgumentError(str(op, ": a plain size, ", *named, ", names no axis of ", type,
                              "; give a position or a named Dim"));
    throw ShapeError(str(op, ": ", type, " has no dim ", *named, missing_dim_hint(type, *named)));
  }
  const int position = std::get<int>(axis_), rank = type.rank();
  if (position < -rank || position >= rank)
    throw IndexError(str(op, ": axis ", position, " is out of range for ", type, ", which has ",
                         rank, rank == 1 ? " axis" : " axes"));
  return position < 0 ? position + rank : position;
}

int Axis::in(const Tensor& x, std::string_view op) const {
  check_defined(op, x);
  check_ranked(x);
  return in(x.type(), op);
}
std::vector<int> Axes::in(const Tensor& x, std::string_view op) const {
  check_defined(op, x);
  check_ranked(x);
  return in(x.type(), op);
}

std::vector<int> Axes::in(const TensorType& type, std::string_view op) const {
  std::vector<int> result;
  for (const Axis& axis : axes_) {
    const int position = axis.in(type, op);
    if (std::count(result.begin(), result.end(), position))
      throw ArgumentError(str(op, ": ", axis_name(type, position), " is named twice"));
    result.push_back(position);
  }
  return result;
}

std::string axis_name(const TensorType& type, int axis) {
  const Dim& dim = type.dims()[static_cast<std::size_t>(axis)];
  return dim.is_named() ? str("axis ", dim, " of ", type) : str("axis ", axis, " of ", type);
}

}  // namespace reel
