// core/ops/list.h — ops on lists, the values behind TensorArray.
#pragma once

#include <cstdint>
#include <optional>

#include "reel/core/partial_shape.h"
#include "reel/core/tensor.h"

namespace reel {

/// `size` elements never written (they read as zeros). element: their type.
Tensor list_new(const TensorType& element, std::int64_t size);
/// A list without elements of a list type; as a cotangent it stands for zeros.
Tensor empty_list(const TensorType& list_type);
/// The list with x at index (an integer scalar). Beyond the end: an IndexError unless it may grow.
Tensor list_write(Tensor list, const Tensor& x, const Tensor& index, bool may_grow);
/// The element at index; zeros where none was written. Lenient: beyond the end too (cotangents).
Tensor list_read(const Tensor& list, const Tensor& index, bool is_lenient = false);
/// index, counted from the end if negative. Throws IndexError unless -size <= index < size.
Tensor list_index(const Tensor& list, const Tensor& index);
/// The elements side by side along a new leading dim; without one, along a plain one of their
/// number.
Tensor list_stack(const Tensor& list, const std::optional<Dim>& dim, bool is_lenient = false);
/// The slices of x along its leading dim.
Tensor list_unstack(const Tensor& x);
/// How many elements (an i32 scalar).
Tensor list_size(const Tensor& list);
/// As many zeros as there are elements, of their types.
Tensor list_zeros_like(const Tensor& list);
/// Element by element, where an unwritten one counts as zeros: the sum of cotangents.
Tensor list_add(Tensor a, Tensor b);

/// The list as one whose elements may differ where the shape says nothing.
Tensor relax_elements(const Tensor& list, const PartialShape& shape);

/// Builds a list value from elements, outside any trace.
Tensor make_list(const TensorType& element, const Tensors& elements);
/// The written elements of a list value, in order; unwritten ones are empty Tensors.
Tensors list_elements(const Tensor& list);

}  // namespace reel
