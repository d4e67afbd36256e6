// slice with a step: every step-th element, forwards or backwards.
#include <algorithm>
#include <limits>

#include "reel/core/base/str.h"
#include "reel/core/ops.h"
#include "reel/core/ops/shape/along_axis.h"
#include "reel/core/ops/shape/dims.h"
#include "reel/core/ops/shape/new_dims.h"
#include "reel/core/ops/shape/slice.h"
#include "reel/core/types/sizes.h"

namespace reel {
namespace {

/// slice with a step other than 1, of x alone: AlongAxis slices the lengths that run over the axis.
Tensor slice_by_step(const Tensor& x, int axis, std::int64_t begin, std::optional<std::int64_t> end,
                     std::int64_t step, const std::optional<Dim>& to) {
  const Dim dim = dim_at(x.type(), axis);
  const auto between = [axis](const Tensor& of, std::int64_t begin,
                              std::optional<std::int64_t> end) {
    return begin == 0 && !end ? of : slice_shown(of, axis, begin, end, std::nullopt);
  };
  Tensor part = clear_padding(x, axis, to);
  if (step > 0) {
    part = between(part, begin, end);
  } else {
    for (const Dim& of : dim.length_dims())
      if (!contains(x.dims(), of))
        throw ShapeError(str("slice: step ", step, " counts from the ends of ", dim, ", but ",
                             x.type(), " has no dim ", of, " that tells them apart"));
    // Position i, from the front or from the end, is -1 - i of the reversed tensor.
    step = -std::max(step, -std::numeric_limits<std::int64_t>::max());
    part = between(reverse_shown(part, axis), -1 - begin, end ? std::optional(-1 - *end) : end);
  }
  const Dim& rest = dim_at(part.type(), axis);
  const std::int64_t count =
      rest.has_size() && !rest.is_ragged() ? rest.size() / step + (rest.size() % step != 0) : -1;
  auto named = changed_dim(dim, to, {&dim, 1}, count, [&] {
    // 1 + (length - 1) / step, and 0 for an empty entry: length + step might not fit into 32 bits.
    const Tensor lengths = rest.lengths();
    const auto most = std::min(step, kLargestI32);
    return minimum(lengths, 1 + floor_divide(maximum(lengths - 1, 0), most));
  });
  return slice_positions(part, {axis, 0, {}, std::move(named), step});
}

}  // namespace

Tensor slice(const Tensor& x, const Axis& along, std::int64_t begin,
             std::optional<std::int64_t> end, std::int64_t step, std::optional<Dim> to) {
  const int axis = along.in(x, "slice");
  if (step == 0)
    throw ArgumentError(str("slice: step 0 along ", axis_name(x.type(), axis),
                            "; a step is positive, or negative to run backwards"));
  if (step == 1) return slice(x, axis, begin, end, std::move(to));
  const auto take = [&](const Tensor& of, int axis) {
    Tensor result = slice_by_step(of, axis, begin, end, step, to);
    to = named_dim(result.type(), axis);
    return result;
  };
  if (!has_lengths_along(x.type(), axis)) return take(x, axis);
  const Dim dim = dim_at(x.type(), axis);
  const auto key = [&] {
    return key_along("slice by step", {dim})
        .text(str(begin, ':', end ? str(*end) : "", ':', step))
        .dim(*to);
  };
  return AlongAxis({dim}, take,
                   {.keeps_axis = true, .key = key, .entries = with_entries_of({dim})})(x, axis);
}

}  // namespace reel
