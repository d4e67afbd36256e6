// core/functions/shape.h — the same elements under other dims, side by side, or some of them.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <utility>
#include <vector>

#include "reel/core/axis.h"
#include "reel/core/tensor.h"

namespace reel {

// Where an axis that the lengths of a ragged dim run over gets other elements in its places, or
// becomes another one, the lengths go along: the result has a slice of the ragged dim, whose axis
// the whole dim finds. Places that are new have length 0 (docs/semantics.md). What was padding is 0
// (pad and shift: `value`) where `to` is a dim that takes the place of a ragged one.

/// The axes in another order; all of them are listed.
Tensor transpose(const Tensor& x, const Axes& order);
/// The same elements in row-major order with other dims. One plain size may be -1.
Tensor reshape(const Tensor& x, const std::vector<std::int64_t>& sizes);
inline Tensor reshape(const Tensor& x, std::initializer_list<std::int64_t> sizes) {
  return reshape(x, std::vector<std::int64_t>(sizes));
}
/// Throws ShapeError, too, if a ragged dim of x would get lengths that are not those of its entries.
Tensor reshape(const Tensor& x, const Dims& dims);
/// The axis `from` is called `to`, which must have its size. Shares storage.
Tensor rename(const Tensor& x, const Axis& from, const Dim& to);
/// x repeated along `dims` that it lacks; the result has exactly these dims, in this order.
Tensor expand(const Tensor& x, const Dims& dims);
/// x repeated along axes of size 1, and along axes put in front, as NumPy does with plain sizes;
/// named dims are those of expand.
Tensor broadcast_to(const Tensor& x, const Dims& dims);
inline Tensor broadcast_to(const Tensor& x, const std::vector<std::int64_t>& sizes) {
  return broadcast_to(x, Dims(sizes.begin(), sizes.end()));
}
inline Tensor broadcast_to(const Tensor& x, std::initializer_list<std::int64_t> sizes) {
  return broadcast_to(x, std::vector<std::int64_t>(sizes));
}
/// Several axes as one, in the order given (the first varies slowest), where the first of them
/// stands in x.
///
/// Named dims: `to` is the new dim, by default made fresh and called "batch*time". A ragged dim
/// that comes first, before dims with one size that its lengths do not run over, stays ragged, its
/// lengths multiplied. Otherwise the new dim has one size, the product of the extents; what was
/// padding is then elements like others, and is 0. split_dim undoes it. Copies only where axes move
/// or padding is cleared.
Tensor merge_dims(const Tensor& x, const Axes& axes, std::optional<Dim> to = {});
/// One axis as several, in row-major order, in its place; shares storage.
///
/// Their sizes multiply to that of the axis; one may be left open: `unknown`, or a dim that is only
/// a name. With an open part, an axis whose size is not static (a ragged dim always) gets zeros at
/// the end of each entry, up to a multiple of the others: Dim("chunk") of {Dim("chunk"), window} is
/// then ceil(length / window) long. Of a ragged axis the first part is ragged.
Tensor split_dim(const Tensor& x, const Axis& axis, const Dims& parts);
/// x without axes, each of the static size 1. Shares storage.
Tensor squeeze(const Tensor& x, const Axes& axes);
/// Tensors one behind another along an axis. Named dims: `to` is the new dim, by default made fresh
/// under the same name. Ragged dims of one name whose lengths run over the axis are joined.
Tensor concat(const Tensors& tensors, const Axis& axis, std::optional<Dim> to = {});
/// accum with x behind each entry's last element: one step of a history that grows.
///
/// x: the dims of accum without `axis` -> {accum with one element more along axis, its dim there}.
/// The new dim of a named axis is axis + 1. Source: RETURNN's cum_concat_step.
std::pair<Tensor, Dim> cum_concat(const Tensor& x, const Tensor& accum, const Axis& axis);
/// Tensors of one type side by side along a new leading dim (or a new axis at a position).
Tensor stack(const Tensors& tensors, const Dim& dim);
Tensor stack(const Tensors& tensors, int axis = 0);
/// The slices along an axis, which is removed; inverse of stack. The size must be known. Of a
/// ragged axis there are as many as the longest entry has, which share storage: where another has
/// ended they show its padding. mask_padding(x) makes it 0 before; in scan such entries have ended.
Tensors unstack(const Tensor& x, const Axis& axis = 0);
/// Equal parts along an axis; with named dims each part has `part` there.
Tensors split(const Tensor& x, const Axis& axis, int parts, std::optional<Dim> part = {});
template <std::size_t N>
std::array<Tensor, N> split(const Tensor& x, const Axis& axis, std::optional<Dim> part = {}) {
  Tensors parts = split(x, axis, static_cast<int>(N), std::move(part));
  std::array<Tensor, N> result;
  for (std::size_t i = 0; i < N; ++i) result[i] = std::move(parts[i]);
  return result;
}
/// Elements begin, begin+1, ... end-1 along an axis; negative positions count from the end, as in
/// Python. Named dims: `to` is the dim of what is left, by default made fresh under the same name.
Tensor slice(const Tensor& x, const Axis& axis, std::int64_t begin,
             std::optional<std::int64_t> end = {}, std::optional<Dim> to = {});
/// Every step-th element of them; a negative step runs backwards from begin down to above end, or
/// to the first: slice(x, axis, -1, {}, -1) reverses. Along a ragged dim positions are those of
/// each entry.
Tensor slice(const Tensor& x, const Axis& axis, std::int64_t begin, std::optional<std::int64_t> end,
             std::int64_t step, std::optional<Dim> to = {});
/// Elements moved by n along an axis, to the right if n is positive, under the same dims: where
/// nothing comes from there is `value`. Along a ragged dim each entry moves within its own length.
Tensor shift(const Tensor& x, const Axis& axis, std::int64_t n, double value = 0);
/// `before` and `after` more elements of `value` along an axis. Named dims: `to` as for slice.
Tensor pad(const Tensor& x, const Axis& axis, std::int64_t before, std::int64_t after,
           double value = 0, std::optional<Dim> to = {});
/// Backwards along an axis; along a ragged dim each entry within its own length.
Tensor reverse(const Tensor& x, const Axis& axis);

}  // namespace reel
