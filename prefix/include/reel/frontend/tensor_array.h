// frontend/tensor_array.h — TensorArray, a list of tensors of one type as a value.
#pragma once

#include <cstdint>
#include <optional>

#include "reel/core/tensor.h"

namespace reel {

struct TensorArrayOptions {
  std::int64_t size = 0;  ///< elements to start with; never written ones read as zeros
  /// A write beyond the end lets the array grow, instead of being an IndexError.
  bool dynamic_size = false;
};

/// A list of tensors of one type, a value like a Tensor: changing one gives another, and the old
/// one stays as it was.
///
/// Works eagerly, as state of a loop, and with gradients of any order. An element that was never
/// written reads as zeros; a second write replaces. Cost: push_back, write and read O(log N), in
/// place when nobody else holds the array; a gradient through N of them O(N log N) in all.
///
/// After RETURNN's and TensorFlow's TensorArray. What of the latter's flags is missing here has no
/// meaning where memory follows ownership (clear_after_read, close), or is said by the type of an
/// element (infer_shape, element_shape).
class TensorArray {
 public:
  /// An array of no element type: to be assigned to.
  TensorArray() = default;
  /// An empty array, or one of `size` elements never written. element: the type of its elements;
  /// sizes may be `unknown` where elements differ.
  TensorArray(TensorType element, TensorArrayOptions options = {});

  /// The slices of x along an axis. x: any with that axis -> elements of x's type without it.
  static TensorArray unstack(const Tensor& x, const class Axis& axis);
  /// Pieces of x along its first axis. x: [n, ...], plain; lengths: integers [k] that add up to n
  /// -> k elements [unknown, ...].
  static TensorArray split(const Tensor& x, const Tensor& lengths);

  /// With x behind the last element. Throws DTypeError or ShapeError unless x has the type of an
  /// element (the order of named dims aside).
  TensorArray push_back(const Tensor& x) const;
  /// With x at an index; a second write replaces. Throws as push_back, and IndexError where the
  /// index is negative, or beyond the end of an array without dynamic_size.
  TensorArray write(const Tensor& index, const Tensor& x) const;
  TensorArray write(std::int64_t index, const Tensor& x) const;
  /// With the slices of x along its leading dim at indices; of equal ones the last counts.
  /// indices: integers [k]; x: [k, ...]. Throws as write.
  TensorArray scatter(const Tensor& indices, const Tensor& x) const;
  /// The element at an index, negative ones counting from the end. index: an integer scalar.
  Tensor read(const Tensor& index) const;
  Tensor read(std::int64_t index) const;
  Tensor operator[](const Tensor& index) const { return read(index); }
  Tensor operator[](std::int64_t index) const { return read(index); }
  /// The elements at indices, side by side along the indices' dim. indices: integers [k], negative
  /// ones counting from the end -> [k, ...].
  Tensor gather(const Tensor& indices) const;
  /// All elements side by side along a new leading dim; ShapeError when its size is not their
  /// number, or elements differ in shape. Without elements their shape must be known.
  Tensor stack() const;
  Tensor stack(const Dim& dim) const;
  /// All elements one after the other along their first axis, in which they may differ. Plain dims.
  Tensor concat() const;
  /// The number of elements (an i32 scalar).
  Tensor size() const;

  TensorType element_type() const { return list_.type().element(); }
  bool is_defined() const { return list_.is_defined(); }

  // Below: for the library itself.
  const Tensor& list() const& { return list_; }
  Tensor list() && { return std::move(list_); }
  static TensorArray of_list(Tensor list);

 private:
  const Tensor& list_for(const char* op) const;
  Tensor checked(const Tensor& x, const char* op) const;

  Tensor list_;
};

}  // namespace reel
