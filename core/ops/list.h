// core/ops/list.h — ops on lists, the values behind TensorArray.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "reel/core/graph.h"
#include "reel/core/partial_shape.h"
#include "reel/core/tensor.h"

namespace reel {

/// `size` elements never written (they read as zeros). element: their type; may_grow: by a write
/// beyond the end.
Tensor list_new(const TensorType& element, std::int64_t size, bool may_grow = false);
/// A list without elements of a list type; as a cotangent it stands for zeros.
Tensor empty_list(const TensorType& list_type);
/// The list with x at index (an integer scalar). Beyond the end: an IndexError unless it may grow.
Tensor list_write(Tensor list, const Tensor& x, const Tensor& index);
/// The list with x behind the last element.
Tensor list_push(Tensor list, const Tensor& x);
/// The list without the elements at indices, which read as zeros then.
Tensor list_drop(Tensor list, const Tensor& indices);
/// The element at index (an integer scalar), negative ones counted from the end; zeros where none
/// was written. Lenient: beyond the end too, and never counted from there (cotangents).
Tensor list_read(const Tensor& list, const Tensor& index, bool is_lenient = false);
/// Indices (integers) as i64, negative ones counted from the end. Throws IndexError unless -size <=
/// index < size.
Tensor list_index(const Tensor& list, const Tensor& indices, const std::string& method = "read");
/// The elements at indices (a vector), side by side along its dim. Throws IndexError as
/// list_index.
Tensor list_gather(const Tensor& list, const Tensor& indices);
/// The list with the slices of x along its leading dim at indices; the last one counts where an
/// index is repeated.
Tensor list_scatter(Tensor list, const Tensor& x, const Tensor& indices);
/// The elements one after the other along their first axis.
Tensor list_concat(const Tensor& list);
/// Pieces of x along its first axis, of these lengths (an integer vector).
Tensor list_split(const Tensor& x, const Tensor& lengths);
/// The elements side by side along a new leading dim; without one, along a plain one of their
/// number.
Tensor list_stack(const Tensor& list, const std::optional<Dim>& dim, bool is_lenient = false);
/// The slices of x along its leading dim.
Tensor list_unstack(const Tensor& x);
/// How many elements (an i32 scalar).
Tensor list_size(const Tensor& list);
/// As many zeros as there are elements, of their types.
Tensor list_zeros_like(const Tensor& list);
/// The list with elements of other named dims: of each the first elements, and zeros behind them
/// where a dim is longer; clears_padding: zeros in what is padding of an element, too. Dims that
/// are those of the list's type stay each element's own.
Tensor list_resized(const Tensor& list, const Dims& dims, bool clears_padding = false);
/// Element by element, where an unwritten one counts as zeros: the sum of cotangents.
Tensor list_add(Tensor a, Tensor b);

/// The list as one of another type, to which its elements belong too.
Tensor list_of_type(const Tensor& list, const TensorType& type);
/// The list as one whose elements may differ where the shape says nothing.
Tensor relax_elements(const Tensor& list, const PartialShape& shape);

/// The elements of a, then those of b. size: of a (an integer scalar).
Tensor list_extend(Tensor a, const Tensor& b, const Tensor& size);
/// Whether a record is list_push's: its inputs are list, element, and the size of the list.
bool is_list_push(const OpRecord& record);
bool is_list_size(const OpRecord& record);

/// Builds a list value from elements, outside any trace.
Tensor make_list(const TensorType& element, const Tensors& elements);
/// The written elements of a list value, in order; unwritten ones are empty Tensors.
Tensors list_elements(const Tensor& list);

}  // namespace reel
