// core/functions/indices.h — elements by index, and indices by the order of elements.
#pragma once

#include <vector>

#include "reel/core/axis.h"
#include "reel/core/tensor.h"

namespace reel {

/// gather(x, indices, axis, {.clip = true}).
struct GatherOptions {
  /// An index out of range means the nearest position (a negative one the first), along a ragged
  /// axis within the entry's own length; an entry of length 0 gives 0.
  bool clip = false;
  /// Negative indices count from the end; if not, they are out of range.
  bool from_end = true;
  /// For plain sizes: so many leading axes of x and of the indices are matched entry by entry.
  int batch_dims = 0;
};

/// Elements at `indices` (i32 or i64) along an axis, whose place the dims of the indices take; a
/// scalar index drops the axis.
///
/// Along an axis that lengths run over, padding of x is 0. Named dims that x has too are matched
/// entry by entry; the dim of the axis itself stands for new places along it. Negative indices
/// count from the end, along a ragged axis from that of the entry; others beyond an entry's end
/// read its padding, as RETURNN's do: mask_padding(x) makes it 0. IndexError out of range.
Tensor gather(const Tensor& x, const Tensor& indices, const Axis& axis,
              const GatherOptions& options = {});
/// `like`, to which updates (with the dims that gather would give, named ones in any order) are
/// added at indices along the axis: on zeros the gradient of gather.
Tensor scatter_add(const Tensor& like, const Tensor& indices, const Tensor& updates,
                   const Axis& axis);
/// The largest of what is in `like` and the updates that come there; NaN wins. The gradient is
/// shared equally among ties, all NaN being tied.
Tensor scatter_max(const Tensor& like, const Tensor& indices, const Tensor& updates,
                   const Axis& axis);

// In what follows NaN counts as larger than all numbers, and of equal elements the first comes
// first. Padding takes no part.

/// The elements along an axis in ascending order, or descending; each entry within its own length.
Tensor sort(const Tensor& x, const Axis& axis, bool descending = false);
/// The positions (i32) that sort takes its elements from, with the dims of x.
Tensor argsort(const Tensor& x, const Axis& axis, bool descending = false);

/// What top_k gives: auto [values, indices, dim] = top_k(...).
struct TopK {
  Tensor values;   ///< in descending order along dim, which has the place of the axis
  Tensor indices;  ///< i32: where along the axis they are
  Dim dim;
};
struct TopKOverAxes {
  Tensor values;                ///< dim has the place of the foremost axis
  std::vector<Tensor> indices;  ///< one for each of the axes, in their order
  Dim dim;
};
/// The k largest elements along an axis. k: a number, or a named Dim that the result has there.
///
/// Of a ragged dim whose lengths run over the axis, entry n of the k has as many elements as the
/// n-th longest entry of x.
/// Where padding leaves an entry fewer than k, the rest are -inf (integers: the smallest), with
/// index 0 and without gradient. Throws ShapeError when k is more than the size of an axis that is
/// not ragged.
TopK top_k(const Tensor& x, const Axis& axis, const Dim& k);
/// The k largest along all of these axes together: top_k(scores, {beam, vocabulary}, k). Of equal
/// elements that one comes first whose index along the axis listed first is lower, then the second.
TopKOverAxes top_k(const Tensor& x, const std::vector<Axis>& axes, const Dim& k);

}  // namespace reel
