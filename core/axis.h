// core/axis.h — Axis and Axes, how an op is told which axes it works on.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "reel/core/tensor_type.h"

namespace reel {

class Tensor;

/// One axis of a tensor: by its Dim, or by its position (negative ones count from the end). Never a
/// size.
class Axis {
 public:
  Axis(Dim dim) : axis_(std::move(dim)) {}
  Axis(int position) : axis_(position) {}

  /// The position in that type. Throws ShapeError when the dim is not there, IndexError for a
  /// position out of range.
  int in(const TensorType& type, std::string_view op) const;
  /// Returns the position in the tensor's type. Throws ArgumentError, too, if the tensor is empty.
  int in(const Tensor& x, std::string_view op) const;
  const Dim* dim() const { return std::get_if<Dim>(&axis_); }

 private:
  std::variant<Dim, int> axis_;
};

/// Some axes of a tensor: an Axis, or several in braces.
class Axes {
 public:
  Axes(Dim dim) : axes_{Axis(std::move(dim))} {}
  Axes(int position) : axes_{Axis(position)} {}
  Axes(std::initializer_list<Axis> axes) : axes_(axes) {}
  Axes(std::vector<Axis> axes) : axes_(std::move(axes)) {}
  Axes(const Dims& dims) : axes_(dims.begin(), dims.end()) {}

  /// Their positions, in the given order. Throws as Axis::in, and ArgumentError when one is named
  /// twice.
  std::vector<int> in(const TensorType& type, std::string_view op) const;
  /// Returns the positions in the tensor's type. Throws ArgumentError, too, if the tensor is empty.
  std::vector<int> in(const Tensor& x, std::string_view op) const;

 private:
  std::vector<Axis> axes_;
};

/// What messages call an axis: by its name where it has one, else by its position. "axis time=3 of
/// f32[batch=2,time=3]", "axis 1 of f32[2,3]".
std::string axis_name(const TensorType& type, int axis);

}  // namespace reel
