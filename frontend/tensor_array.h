// frontend/tensor_array.h — TensorArray, a list of tensors of one type as a value.
#pragma once

#include <cstdint>
#include <optional>

#include "reel/core/tensor.h"

namespace reel {

struct TensorArrayOptions {
  std::int64_t size = 0;  ///< elements to start with; never written ones read as zeros
  bool dynamic_size =
      false;  ///< a write beyond the end lets the array grow, instead of being an IndexError
};

/// A list of tensors of one type, a value like a Tensor: changing one gives another, and the old
/// one stays as it was.
///
/// Works eagerly, as state of a loop, and with gradients of any order. Cost: push_back, write and
/// read O(log N); a gradient through N reads O(N log N) in all.
class TensorArray {
 public:
  /// An array of no element type: to be assigned to.
  TensorArray() = default;
  /// An empty array. element: the type of its elements; sizes may be `unknown` where elements
  /// differ.
  TensorArray(TensorType element, TensorArrayOptions options = {});

  /// The slices of x along an axis. x: any with that axis -> elements of x's type without it.
  static TensorArray unstack(const Tensor& x, const class Axis& axis);

  /// With x behind the last element. Throws DTypeError or ShapeError unless x has the type of an
  /// element (the order of named dims aside).
  TensorArray push_back(const Tensor& x) const;
  /// With x at an index; a second write replaces. Throws as push_back, and IndexError out of range.
  TensorArray write(const Tensor& index, const Tensor& x) const;
  TensorArray write(std::int64_t index, const Tensor& x) const;
  /// The element at an index, negative ones counting from the end. index: an integer scalar.
  Tensor read(const Tensor& index) const;
  Tensor read(std::int64_t index) const;
  Tensor operator[](const Tensor& index) const { return read(index); }
  Tensor operator[](std::int64_t index) const { return read(index); }
  /// All elements side by side along a new leading dim; ShapeError when its size is not their
  /// number.
  Tensor stack() const;
  Tensor stack(const Dim& dim) const;
  /// The number of elements (an i32 scalar).
  Tensor size() const;

  TensorType element_type() const { return list_.type().element(); }
  bool is_defined() const { return list_.is_defined(); }

  // Below: for the library itself.
  const Tensor& list() const { return list_; }
  static TensorArray of_list(Tensor list);
  TensorArray with_list(Tensor list) const;

 private:
  Tensor checked(const Tensor& x, const char* op) const;

  Tensor list_;
  bool may_grow_ = false;
};

}  // namespace reel
