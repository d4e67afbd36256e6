// Frames are made of blocks of `hop` elements: frame f is the blocks f, f + 1, ... side by side.
// Therefore slices, joins and sums of blocks suffice, also for gradients and saved models.
#include "reel/frontend/signals/frames.h"

#include <string_view>
#include <utility>
#include <vector>

#include "reel/core/base/str.h"
#include "reel/core/functions/dim_arithmetic.h"
#include "reel/core/ops.h"
#include "reel/core/ops/shape/new_dims.h"
#include "reel/core/ops/shape/slice.h"

namespace reel {
namespace {

struct Margins {
  std::int64_t before, after;
};
Margins margins_of(const WindowPadding& padding, std::int64_t window) {
  switch (padding.kind) {
    case WindowPadding::Kind::same:
      return {(window - 1) / 2, window - 1 - (window - 1) / 2};
    case WindowPadding::Kind::valid:
      return {0, 0};
    case WindowPadding::Kind::causal:
      return {window - 1, 0};
    case WindowPadding::Kind::numbers:
      break;
  }
  return {padding.before, padding.after};
}

void check_frames(std::string_view name, const Tensor& x, int axis, const Dim& window,
                  std::int64_t hop) {
  if (hop < 1) throw ArgumentError(str(name, ": hop is ", hop, "; it must be positive"));
  if (!window.has_size() || window.is_ragged() || window.raw_size() < 1)
    throw ArgumentError(str(name, ": a window needs one known size above 0, got ", window));
  const Dim& dim = dim_at(x.type(), axis);
  if (is_unknown(dim))
    throw ShapeError(str(name, ": ", axis_name(x.type(), axis),
                         " has a size that only a run knows; name its dim"));
}

/// Returns x with another dim at an axis: entries keep their first elements, and zeros follow.
Tensor with_size(const Tensor& x, int axis, const Dim& dim) {
  if (dim.is_named()) return resized(x, with_dim(x.dims(), axis, dim));
  const std::int64_t there = x.dims()[static_cast<std::size_t>(axis)].size(), size = dim.size();
  return there >= size ? slice(x, axis, 0, size) : pad(x, axis, 0, size - there);
}
/// Returns the elements from `begin` on, as with_size().
Tensor from(const Tensor& x, int axis, std::int64_t begin, const Dim& dim) {
  return with_size(begin == 0 ? x : slice(x, axis, begin), axis, dim);
}
/// Returns a dim of a known size, named if others are.
Dim sized(bool is_named, const char* name, std::int64_t size) {
  return is_named ? Dim(name, size) : Dim(size);
}

}  // namespace

namespace detail {

Dim frames_of(const Dim& time, std::int64_t window, std::int64_t hop,
              const WindowPadding& padding) {
  const auto [before, after] = margins_of(padding, window);
  return ceildiv(time + (before + after) - (window - 1), hop);
}

}  // namespace detail

Tensor frame(const Tensor& x, const Axis& time, const Dim& window, std::int64_t hop,
             const WindowPadding& padding) {
  const int axis = time.in(x, "frame");
  check_frames("frame", x, axis, window, hop);
  const Dim dim = canonical(dim_at(x.type(), axis));
  const bool is_named = dim.is_named();
  if (is_named != window.is_named())
    throw ShapeError(str("frame: named and plain dims meet: x ", x.type(), ", window ", window));
  const std::int64_t size = window.size(), blocks = (size + hop - 1) / hop;
  const auto [before, after] = margins_of(padding, size);
  if (before < 0 || after < 0) throw ArgumentError("frame: the padding is negative");
  const Dim frames = detail::frames_of(dim, size, hop, padding);
  // The last frame ends at most `after` + hop - 1 elements behind the axis; also without frames,
  // there are as many blocks as a frame has.
  std::int64_t behind = after + blocks * hop;
  if (!is_named) behind += hop - 1 - (dim.size() + before + behind + hop - 1) % hop;
  const Tensor padded = pad(mask_padding(x), axis, before, behind);
  const Tensor parts = split_dim(
      padded, axis,
      is_named ? Dims{Dim("block"), Dim("hop", hop)}
               : Dims{Dim(padded.dims()[static_cast<std::size_t>(axis)].size() / hop), Dim(hop)},
      {.fill = 0});
  Tensors columns;
  for (std::int64_t j = 0; j < blocks; ++j) columns.push_back(from(parts, axis, j, frames));
  const Tensor all =
      columns.size() == 1
          ? columns[0]
          : concat(columns, axis + 1,
                   is_named ? std::optional(Dim("blocks", blocks * hop)) : std::nullopt);
  return with_size(all, axis + 1, window);
}

Tensor overlap_add(const Tensor& x, const Axis& frames, std::int64_t hop, const Dim& time,
                   std::int64_t before) {
  const int axis = frames.in(x, "overlap_add");
  if (axis + 1 >= x.rank())
    throw ShapeError(str("overlap_add: x ", x.type(), " has no window behind the frames"));
  const Dim window = dim_at(x.type(), axis + 1), dim = canonical(dim_at(x.type(), axis));
  check_frames("overlap_add", x, axis, window, hop);
  if (before < 0) throw ArgumentError(str("overlap_add: before is ", before));
  const bool is_named = dim.is_named();
  if (is_named != time.is_named())
    throw ShapeError(str("overlap_add: named and plain dims meet: x ", x.type(), ", time ", time));
  const std::int64_t blocks = (window.size() + hop - 1) / hop;
  const Dim block = sized(is_named, "hop", hop), rows = dim + (blocks - 1);
  const Tensor whole =
      with_size(mask_padding(x), axis + 1, sized(is_named, "blocks", blocks * hop));
  Tensor sum;
  for (std::int64_t j = 0; j < blocks; ++j) {
    const Tensor part = slice(whole, axis + 1, j * hop, (j + 1) * hop,
                              is_named ? std::optional(block) : std::nullopt);
    const Tensor moved =
        pad(part, axis, j, blocks - 1 - j, 0, is_named ? std::optional(rows) : std::nullopt);
    sum = sum.is_defined() ? sum + moved : moved;
  }
  const Tensor samples = merge_dims(sum, {axis, axis + 1});
  return from(samples, axis, before, time);
}

}  // namespace reel
