// core/dims/axis.h — Axis and Axes, arguments that select axes of a tensor.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "reel/core/base/visibility.h"
#include "reel/core/types/tensor_type.h"

REEL_API_BEGIN
namespace reel {

class Tensor;

/// One axis of a tensor, given by its Dim or by its position; negative positions count from the
/// end. Never a size.
class Axis {
 public:
  Axis(Dim dim) : axis_(std::move(dim)) {}
  Axis(int position) : axis_(position) {}

  /// Returns the position in the type. Throws ShapeError if the type lacks the dim, IndexError if
  /// the position is out of range, ArgumentError for a plain size. `op` names the function in
  /// messages.
  int in(const TensorType& type, std::string_view op) const;
  /// Returns the position in the tensor's type. Also throws ArgumentError if the tensor is empty.
  int in(const Tensor& x, std::string_view op) const;
  /// Returns the dim; null if the axis is given by its position.
  const Dim* dim() const { return std::get_if<Dim>(&axis_); }

 private:
  std::variant<Dim, int> axis_;
};

/// Axes of a tensor: one Axis, or several in braces.
class Axes {
 public:
  Axes(Dim dim) : axes_{Axis(std::move(dim))} {}
  Axes(int position) : axes_{Axis(position)} {}
  Axes(std::initializer_list<Axis> axes) : axes_(axes) {}
  Axes(std::vector<Axis> axes) : axes_(std::move(axes)) {}
  Axes(const Dims& dims) : axes_(dims.begin(), dims.end()) {}

  /// Returns the positions in the given order. Throws as Axis::in; ArgumentError also if an axis is
  /// listed twice.
  std::vector<int> in(const TensorType& type, std::string_view op) const;
  /// Returns the positions in the tensor's type. Also throws ArgumentError if the tensor is empty.
  std::vector<int> in(const Tensor& x, std::string_view op) const;

 private:
  std::vector<Axis> axes_;
};

/// Returns the text for an axis in messages, with its name or else its position. Examples:
/// "axis time=3 of f32[batch=2,time=3]", "axis 1 of f32[2,3]". Requires: axis >= 0.
std::string axis_name(const TensorType& type, int axis);

}  // namespace reel
REEL_API_END
