// core/functions/shape.h — reshapes, joins, splits and slices tensors.
#pragma once

#include <array>
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <utility>
#include <vector>

#include "reel/core/base/visibility.h"
#include "reel/core/dims/axis.h"
#include "reel/core/types/tensor.h"

REEL_API_BEGIN
namespace reel {

// A function may move, replace, join or rename elements of an axis that lengths of a ragged dim run
// over. The lengths then change alike: the result has a slice of the ragged dim, and the whole dim
// still selects its axis. New places have length 0 (docs/semantics.md).
//
// Padding becomes elements only by an option, or by dims that the caller gives: to rename, reshape,
// slice, concat, split or pad. These dims tell which elements exist; elements that x lacks are 0
// (pad and shift: `value`).
//
// An axis that x does not have throws ShapeError if given as a dim, IndexError if given as a
// position.

/// Returns x with its axes in another order. Throws ShapeError unless `order` has each axis once.
Tensor transpose(const Tensor& x, const Axes& order);
/// Options of merge_dims: merge_dims(x, axes, {.counts_padding = true}).
struct PaddingOptions {
  /// True: padding of a ragged dim becomes elements of value 0, which means, maxima and counts then
  /// include. False: ShapeError if it would.
  bool counts_padding = false;
};
/// Returns the same elements in row-major order with other dims. One plain size may be -1: it
/// follows from the others. Padding is 0; pack(x, dims) has the valid elements alone. Throws
/// ShapeError if the number of elements differs.
Tensor reshape(const Tensor& x, const std::vector<std::int64_t>& sizes);
inline Tensor reshape(const Tensor& x, std::initializer_list<std::int64_t> sizes) {
  return reshape(x, std::vector<std::int64_t>(sizes));
}
/// Returns the same elements with named dims. Also throws ShapeError if a ragged dim of x would get
/// lengths of other entries.
Tensor reshape(const Tensor& x, const Dims& dims);
/// Returns x with the axis `from` called `to`, which must have its size. Shares storage, unless a
/// ragged axis gets other lengths: elements that it lacks are 0 then.
Tensor rename(const Tensor& x, const Axis& from, const Dim& to);
/// Returns x repeated along `dims` that it lacks. The result has exactly these dims in this order.
Tensor expand(const Tensor& x, const Dims& dims);
/// Returns x repeated along one more dim, which comes first. Returns x if it has this named dim. A
/// template, so that braces mean all dims of the result.
template <std::same_as<Dim> One>
Tensor expand(const Tensor& x, const One& dim) {
  check_defined("expand", x);
  if (dim.is_named() && contains(x.dims(), dim)) return x;
  Dims dims = x.dims();
  dims.insert(dims.begin(), dim);
  return expand(x, dims);
}
/// Returns x repeated along axes of size 1, and along new axes in front, as NumPy does with plain
/// sizes. For named dims as expand.
Tensor broadcast_to(const Tensor& x, const Dims& dims);
inline Tensor broadcast_to(const Tensor& x, const std::vector<std::int64_t>& sizes) {
  return broadcast_to(x, Dims(sizes.begin(), sizes.end()));
}
inline Tensor broadcast_to(const Tensor& x, std::initializer_list<std::int64_t> sizes) {
  return broadcast_to(x, std::vector<std::int64_t>(sizes));
}
/// Returns x with several axes merged into one, in the order given (the first varies slowest). The
/// new axis stands at the position of the first of them.
///
/// Named dims: `to` is the new dim; default: a new one called "batch*time". A ragged dim stays
/// ragged, with its lengths multiplied, if it comes first and its lengths do not run over the other
/// dims, which must have one size each. Elsewhere its padding would become elements: throws
/// ShapeError, unless options.counts_padding. With that option the new dim has one size, the
/// product of the extents, and padding counts as elements of value 0. Usually meant is
/// pack(x, axes), which has the valid elements alone. split_dim is the inverse. Copies only if axes
/// move or padding is set to 0.
Tensor merge_dims(const Tensor& x, const Axes& axes, std::optional<Dim> to = {},
                  const PaddingOptions& options = {});
inline Tensor merge_dims(const Tensor& x, const Axes& axes, const PaddingOptions& options) {
  return merge_dims(x, axes, std::nullopt, options);
}
/// Options of split_dim: split_dim(x, time, {Dim("chunk"), window}, {.fill = 0}).
struct SplitOptions {
  /// The value of elements that are added behind x, or behind each entry of a ragged axis, up to a
  /// multiple of the other parts.
  std::optional<double> fill = {};
};
/// Returns x with one axis split into several, in row-major order, in its place. Shares storage
/// unless elements are added.
///
/// Sizes of the parts must multiply to the axis's size. One may be open: `unknown`, or a dim that
/// is only a name; the others must divide the axis's size, also if only a run knows it. With
/// options.fill, elements of this value are added up to a multiple: Dim("chunk") of {Dim("chunk"),
/// window} then has the size ceil(length / window). They get no gradient.
///
/// The first part of a ragged axis is ragged, the others have one size. Lengths need not be
/// multiples, so that padding would become elements: throws ShapeError without options.fill,
/// except if the axis is known to be a multiple, such as time * 2 for {time, two}. Usually meant
/// are max_pool and mean_pool, whose windows leave out padding. The fill is 0 to stack frames, or
/// what a pool over the parts ignores: 0 for a sum, -infinity for a maximum. If lengths run over
/// the axis, added elements have length 0 instead of a value.
Tensor split_dim(const Tensor& x, const Axis& axis, const Dims& parts,
                 const SplitOptions& options = {});
/// Returns x without axes. Shares storage. Throws ShapeError unless each has the static size 1.
Tensor squeeze(const Tensor& x, const Axes& axes);
/// Returns tensors one behind another along an axis. Named dims: `to` is the new dim; default: a
/// new one of the same name. Ragged dims with one name and lengths over the axis are joined. Throws
/// ArgumentError for no tensors, DTypeError or ShapeError if dtypes or other dims differ.
Tensor concat(const Tensors& tensors, const Axis& axis, std::optional<Dim> to = {});
/// Returns accum with x behind each entry's last element: one step of a growing history.
///
/// x: the dims of accum without `axis`. Returns {accum with one more element along axis, its dim
/// there}. The new dim of a named axis is axis + 1. Source: RETURNN's cum_concat_step.
std::pair<Tensor, Dim> cum_concat(const Tensor& x, const Tensor& accum, const Axis& axis);
/// Return tensors of one type side by side along a new leading dim, or a new axis at a position.
Tensor stack(const Tensors& tensors, const Dim& dim);
Tensor stack(const Tensors& tensors, int axis = 0);
/// Returns the slices along an axis, without it; inverse of stack. Throws TraceError for an unknown
/// size. A ragged axis gives as many slices as its longest entry has. They share storage, and
/// shorter entries show their padding; to get 0, pass mask_padding(x). (In scan they are finished.)
Tensors unstack(const Tensor& x, const Axis& axis = 0);
/// Returns equal parts along an axis. Named dims: each part has the dim `part`. Throws ShapeError
/// if `parts` does not divide the size, ArgumentError unless it is positive.
Tensors split(const Tensor& x, const Axis& axis, int parts, std::optional<Dim> part = {});
template <std::size_t N>
std::array<Tensor, N> split(const Tensor& x, const Axis& axis, std::optional<Dim> part = {}) {
  Tensors parts = split(x, axis, static_cast<int>(N), std::move(part));
  std::array<Tensor, N> result;
  for (std::size_t i = 0; i < N; ++i) result[i] = std::move(parts[i]);
  return result;
}
/// Returns elements begin, begin+1, ... end-1 along an axis; negative positions count from the end,
/// as in Python. Named dims: `to` is the new dim; default: a new one of the same name.
Tensor slice(const Tensor& x, const Axis& axis, std::int64_t begin,
             std::optional<std::int64_t> end = {}, std::optional<Dim> to = {});
/// Returns every step-th of these elements. A negative step runs backwards from begin to end+1, or
/// to the first: slice(x, axis, -1, {}, -1) reverses. Along a ragged dim, positions count in each
/// entry.
Tensor slice(const Tensor& x, const Axis& axis, std::int64_t begin, std::optional<std::int64_t> end,
             std::int64_t step, std::optional<Dim> to = {});
/// Returns x with its elements moved by n along an axis, to the right for positive n, with the same
/// dims. Free positions get `value`. Along a ragged dim each entry moves within its own length.
Tensor shift(const Tensor& x, const Axis& axis, std::int64_t n, double value = 0);
/// Returns x with `before` and `after` more elements of `value` along an axis. Named dims: `to` as
/// for slice. Throws ArgumentError for a negative number.
Tensor pad(const Tensor& x, const Axis& axis, std::int64_t before, std::int64_t after,
           double value = 0, std::optional<Dim> to = {});
/// Returns x backwards along an axis; along a ragged dim each entry within its own length.
Tensor reverse(const Tensor& x, const Axis& axis);

}  // namespace reel
REEL_API_END
