// frontend/tree/tensor_array.h — TensorArray, a list of tensors of one type as a value.
#pragma once

#include <cstdint>
#include <optional>

#include "reel/core/base/visibility.h"
#include "reel/core/types/tensor.h"

REEL_API_BEGIN
namespace reel {

/// Options of TensorArray.
struct TensorArrayOptions {
  std::int64_t size = 0;  ///< initial number of elements; they read as zeros until written
  /// true: a write beyond the end grows the array; false: it throws IndexError.
  bool dynamic_size = false;
};

/// A list of tensors of one type. A value like a Tensor: each change returns a new array and leaves
/// the old one unchanged.
///
/// Works in eager mode, as state of a loop, and with gradients of any order. An element that was
/// never written reads as zeros; a second write replaces the first. Cost: push_back, write and read
/// O(log N), in place if this is the only reference to the array; a gradient through N of them O(N
/// log N) in total.
///
/// Modelled on RETURNN's and TensorFlow's TensorArray. TensorFlow's remaining flags have no meaning
/// if memory follows ownership (clear_after_read, close), or are part of the element type
/// (infer_shape, element_shape).
class TensorArray {
 public:
  /// An array without an element type, to be assigned to. Ops on it throw ArgumentError.
  TensorArray() = default;
  /// An array of options.size elements that were never written. element: the type of the elements;
  /// sizes that differ between elements are `unknown`. Throws ArgumentError for a negative size.
  TensorArray(TensorType element, TensorArrayOptions options = {});

  /// Returns the slices of x along an axis: elements of x's type without that axis.
  static TensorArray unstack(const Tensor& x, const class Axis& axis);
  /// Returns pieces of x along its first axis. x: [n, ...], plain; lengths: integers [k] with the
  /// sum n. Returns k elements [unknown, ...].
  static TensorArray split(const Tensor& x, const Tensor& lengths);

  /// Returns the array with x appended. Throws DTypeError or ShapeError unless x has the element
  /// type; named dims may be in another order.
  TensorArray push_back(const Tensor& x) const;
  /// Returns the array with x at an index; replaces an earlier write. Throws as push_back does, and
  /// IndexError if the index is negative, or beyond the end of an array without dynamic_size.
  TensorArray write(const Tensor& index, const Tensor& x) const;
  TensorArray write(std::int64_t index, const Tensor& x) const;
  /// Returns the array with the slices of x along its leading dim written at indices. If indices
  /// are equal, the last one counts. indices: integers [k]; x: [k, ...]. Throws as write does.
  TensorArray scatter(const Tensor& indices, const Tensor& x) const;
  /// Returns the element at an index. index: an integer scalar; negative ones count from the end.
  /// Throws IndexError if it is out of range, or if the element was never written and the array
  /// does not know its shape.
  Tensor read(const Tensor& index) const;
  Tensor read(std::int64_t index) const;
  /// Returns the element at an index, as read does.
  Tensor operator[](const Tensor& index) const { return read(index); }
  Tensor operator[](std::int64_t index) const { return read(index); }
  /// Returns the elements at indices, stacked along the dim of the indices: [k, ...]. indices:
  /// integers [k]; negative ones count from the end. Throws IndexError if one is out of range, and
  /// ShapeError if elements differ in shape, or if none was written and their shape is not known.
  Tensor gather(const Tensor& indices) const;
  /// Returns all elements, stacked along a new leading dim. Throws ShapeError if the dim's size is
  /// not their number, or if elements differ in shape. Without elements their shape must be known.
  Tensor stack() const;
  Tensor stack(const Dim& dim) const;
  /// Returns all elements, concatenated along their first axis, in which they may differ. Plain
  /// dims only. Throws ShapeError if they differ in other axes.
  Tensor concat() const;
  /// Returns the number of elements (an i32 scalar).
  Tensor size() const;

  /// Returns the type of the elements.
  TensorType element_type() const { return list_.type().element(); }
  /// Returns false for an empty array without a type.
  bool is_defined() const { return list_.is_defined(); }

  // For the library itself:
  const Tensor& list() const& { return list_; }
  Tensor list() && { return std::move(list_); }
  static TensorArray of_list(Tensor list);

 private:
  const Tensor& list_for(const char* op) const;
  Tensor checked(const Tensor& x, const char* op) const;

  Tensor list_;
};

}  // namespace reel
REEL_API_END
