// core/functions/indices.h — reads and writes elements by index, sorts, and selects the largest.
#pragma once

#include <concepts>
#include <cstdint>
#include <vector>

#include "reel/core/base/visibility.h"
#include "reel/core/dims/axis.h"
#include "reel/core/functions/creation.h"
#include "reel/core/types/tensor.h"

REEL_API_BEGIN
namespace reel {

/// Options of gather: gather(x, indices, axis, {.clip = true}).
struct GatherOptions {
  /// Replaces an index out of range by the nearest position (0 for a negative one). Along a ragged
  /// axis, positions are within the entry's own length. A dim made from lengths gives 0 if it is 0.
  bool clip = false;
  /// If true, negative indices count from the end; if false, they are out of range.
  bool from_end = true;
  /// For plain sizes: the number of leading axes that x and indices share as batch axes.
  int batch_dims = 0;
};

/// Returns the elements at `indices` (i32 or i64) along an axis. The dims of the indices replace
/// the axis; a scalar index drops it.
///
/// Named dims that x has too are matched entry by entry, except the axis's own dim, which stands
/// for new positions along it. Negative indices count from the end; along a ragged axis, from the
/// end of the entry. Other indices beyond an entry's end read its padding, as in RETURNN; to
/// read 0, pass mask_padding(x). Along an axis that lengths run over, the padding of x counts as 0.
/// Throws IndexError for an index out of range, ArgumentError if batch_dims does not fit.
Tensor gather(const Tensor& x, const Tensor& indices, const Axis& axis,
              const GatherOptions& options = {});
/// Returns the element at a C++ number along an axis, without that axis: gather(x, 0, time).
template <std::integral Index>
Tensor gather(const Tensor& x, Index index, const Axis& axis, const GatherOptions& options = {}) {
  return gather(x, scalar(static_cast<std::int64_t>(index), i64), axis, options);
}
/// Returns `like` with the updates added at `indices` along the axis. On zeros this is the gradient
/// of gather. updates: has the dims that gather would return; named dims may have any order.
Tensor scatter_add(const Tensor& like, const Tensor& indices, const Tensor& updates,
                   const Axis& axis);
/// Returns, for each position, the maximum of `like` and the updates there; NaN if one is NaN. Ties
/// share the gradient equally; all NaN are tied.
Tensor scatter_max(const Tensor& like, const Tensor& indices, const Tensor& updates,
                   const Axis& axis);

// In the functions below, NaN is larger than all numbers, equal elements keep their order, and
// padding is ignored.

/// Returns the elements along an axis in ascending or descending order; each entry within its own
/// length.
Tensor sort(const Tensor& x, const Axis& axis, bool descending = false);
/// Returns the positions (i32) from which sort takes its elements, with the dims of x.
Tensor argsort(const Tensor& x, const Axis& axis, bool descending = false);

/// Result of top_k: auto [values, indices, dim] = top_k(...).
struct TopK {
  Tensor values;   ///< in descending order along dim, which replaces the axis
  Tensor indices;  ///< i32: their positions along the axis
  Dim dim;         ///< the axis of the k results
};
/// Result of top_k over several axes: auto [values, indices, dim] = top_k(...).
struct TopKOverAxes {
  Tensor values;                ///< dim replaces the foremost of the axes
  std::vector<Tensor> indices;  ///< one for each axis, in the order of the axes
  Dim dim;                      ///< the axis of the k results
};
/// Returns the k largest elements along an axis. k: a number, or a named Dim for the result.
///
/// If the lengths of a ragged dim run over the axis, entry n of the k has as many elements as the
/// n-th longest entry of x.
/// If an entry has fewer than k elements without padding, the rest are -inf (integers: the
/// smallest) with index 0 and no gradient. Throws ShapeError if k is larger than an axis that is
/// not ragged, ArgumentError unless k has one size.
TopK top_k(const Tensor& x, const Axis& axis, const Dim& k);
/// Returns the k largest elements along all of these axes together: top_k(scores, {beam,
/// vocabulary}, k). Among equal elements, the lowest index along the first listed axis comes first,
/// then along the second. Throws as above, and ArgumentError for no axes.
TopKOverAxes top_k(const Tensor& x, const std::vector<Axis>& axes, const Dim& k);

}  // namespace reel
REEL_API_END
