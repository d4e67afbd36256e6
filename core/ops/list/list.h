// core/ops/list/list.h — ops on lists, the values behind TensorArray.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "reel/core/base/visibility.h"
#include "reel/core/graph/graph.h"
#include "reel/core/types/partial_shape.h"
#include "reel/core/types/tensor.h"

namespace reel {

/// Returns a list of `size` unwritten elements, which read as zeros. element: their type. may_grow:
/// a write beyond the end makes the list longer instead of throwing.
Tensor list_new(const TensorType& element, std::int64_t size, bool may_grow = false);
/// Returns a list without elements, of a list type. As a cotangent it stands for zeros.
Tensor empty_list(const TensorType& list_type);
/// Returns the list with x at index (an integer scalar). Throws IndexError beyond the end unless
/// the list may grow.
Tensor list_write(Tensor list, const Tensor& x, const Tensor& index);
/// Returns the list with x appended.
Tensor list_push(Tensor list, const Tensor& x);
/// Returns the list without the elements at indices, which then read as zeros.
Tensor list_drop(Tensor list, const Tensor& indices);
/// Returns the element at index (an integer scalar; negative ones count from the end), or zeros for
/// an unwritten element. is_lenient, for cotangents: returns zeros beyond the end too, and does not
/// count from the end.
Tensor list_read(const Tensor& list, const Tensor& index, bool is_lenient = false);
/// Returns indices (integers) as i64, counted from the front; negative ones in `indices` count from
/// the end. Throws IndexError unless -size <= index < size. method: its name in messages.
Tensor list_index(const Tensor& list, const Tensor& indices, const std::string& method = "read");
/// Returns the elements at indices (a vector), stacked along its dim. Throws IndexError as
/// list_index does.
Tensor list_gather(const Tensor& list, const Tensor& indices);
/// Returns the list with slices of x along its leading dim written at indices. If an index is
/// repeated, the last slice is written.
Tensor list_scatter(Tensor list, const Tensor& x, const Tensor& indices);
/// Concatenates the elements along their first axis.
Tensor list_concat(const Tensor& list);
/// Splits x along its first axis into elements of these lengths (an integer vector).
Tensor list_split(const Tensor& x, const Tensor& lengths);
/// Stacks the elements along a new leading dim; without `dim`, along a plain one. is_lenient:
/// missing elements are zeros.
Tensor list_stack(const Tensor& list, const std::optional<Dim>& dim, bool is_lenient = false);
/// Returns the slices of x along its leading dim as a list.
Tensor list_unstack(const Tensor& x);
/// Returns the number of elements (an i32 scalar).
Tensor list_size(const Tensor& list);
/// Returns a list of zeros with as many elements, of the same types.
Tensor list_zeros_like(const Tensor& list);
/// Returns the list with other named dims: elements are cut, or padded with zeros if a dim is
/// longer. clears_padding: also sets the padding of elements to zero. Axes with an unchanged dim
/// keep each element's own dim.
Tensor list_resized(const Tensor& list, const Dims& dims, bool clears_padding = false);
/// Adds element by element; unwritten elements count as zeros. Sums cotangents.
Tensor list_add(Tensor a, Tensor b);

/// Returns the list under another type. Requires that its elements fit that type.
Tensor list_of_type(const Tensor& list, const TensorType& type);
/// Returns the list with unknown sizes wherever `shape` gives no size or name.
Tensor relax_elements(const Tensor& list, const PartialShape& shape);

/// Concatenates two lists. size: the number of elements of a (an integer scalar).
Tensor list_extend(Tensor a, const Tensor& b, const Tensor& size);
/// True for a record of list_push. Its inputs are list, element, and the size of the list.
REEL_API bool is_list_push(const OpRecord& record);
bool is_list_size(const OpRecord& record);

/// Builds a list value from elements, outside any trace.
Tensor make_list(const TensorType& element, const Tensors& elements);
/// Returns the elements of a list value in order; unwritten ones are empty Tensors.
Tensors list_elements(const Tensor& list);

}  // namespace reel
