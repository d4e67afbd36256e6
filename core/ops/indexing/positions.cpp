#include "reel/core/functions/positions.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "reel/core/base/errors.h"
#include "reel/core/base/str.h"
#include "reel/core/ops.h"

namespace reel {
namespace {

/// Returns true where a is below b; NaN is above all numbers.
Tensor is_below(const Tensor& a, const Tensor& b) {
  if (!is_float(a.dtype())) return a < b;
  return a < b || (isnan(b) && !isnan(a));
}

const Dim& named_axis(const char* function, const Tensor& x, int axis) {
  const Dim& dim = x.dims()[static_cast<std::size_t>(axis)];
  if (!dim.is_named())
    throw ArgumentError(str(function, ": ", axis_name(x.type(), axis),
                            " has a plain size, which cannot depend on values; name the axes"));
  return dim;
}

void check_integers(const char* function, const char* role, const Tensor& x) {
  if (x.dtype() != i32 && x.dtype() != i64)
    throw DTypeError(str(function, ": ", role, " are integers, got ", x.type()));
}

constexpr std::int64_t kLowest = std::numeric_limits<std::int32_t>::min(),
                       kHighest = std::numeric_limits<std::int32_t>::max();

/// Returns integers as i32, and the nearest one for numbers that i32 does not hold. A cast would
/// wrap around, and the largest i64, which often stands for the end of an axis, would be -1.
Tensor nearest_i32(const Tensor& x) {
  return x.dtype() == i32 ? x : cast(clip(x, kLowest, kHighest), i32);
}

/// Returns an argument as i32 positions.
Tensor position(const char* role, const Arg& argument) {
  if (!argument.is_number()) {
    check_defined("slice", argument.tensor());
    check_integers("slice", role, argument.tensor());
    return nearest_i32(argument.tensor());
  }
  if (argument.is_floating())
    throw DTypeError(str("slice: ", role, " is an integer, got ", argument.number()));
  return scalar(std::clamp(argument.integer(), kLowest, kHighest), i32);
}

/// Returns the sum of tensors over the dims of both: lengths of entries and their positions.
Tensor sum_of(const Tensor& a, const Tensor& b) {
  const auto [p, q] = spread(a, b);
  return p + q;
}

/// Returns the position within 0 ... size, counted from the front.
Tensor from_front(const Tensor& position, const Tensor& size) {
  const auto [at, end] = spread(position, size);
  return minimum(maximum(where(at < 0, at + end, at), 0), end);
}

}  // namespace

std::pair<Tensor, Tensor> spread(const Tensor& a, const Tensor& b) {
  check_defined("spread", a);
  check_defined("spread", b);
  Dims all = a.dims();
  for (const Dim& dim : b.dims())
    if (!contains(all, dim)) all.push_back(dim);
  for (const Dim& dim : all)
    if (!dim.is_named())
      throw ShapeError(str("spread: ", a.type(), " and ", b.type(),
                           " have plain sizes; name the axes, or call broadcast_to"));
  return {expand(a, all), expand(b, all)};
}

Tensor search_sorted(const Tensor& sorted, const Tensor& values, const Axis& axis,
                     const SearchSortedOptions& options) {
  const int at = axis.in(sorted, "search_sorted");
  check_defined("search_sorted", values);
  if (sorted.dtype() != values.dtype() || sorted.dtype() == boolean)
    throw DTypeError(str("search_sorted: dtypes differ, or are boolean: ", sorted.type(), " and ",
                         values.type(), "; cast them to one dtype of numbers"));
  const Dim dim = sorted.dims()[static_cast<std::size_t>(at)];
  const int batch = sorted.rank() - 1;
  if (!dim.is_named() && batch && (at != batch || values.rank() != sorted.rank()))
    throw ShapeError(str("search_sorted: sorted ", sorted.type(), " and values ", values.type(),
                         " need the same leading sizes, and the last axis"));
  if (dim.is_named() && contains(values.dims(), dim))
    throw ShapeError(str("search_sorted: values ", values.type(), " have the dim ", dim,
                         " of sorted elements; rename it"));
  const GatherOptions clipped{.clip = true, .batch_dims = dim.is_named() ? 0 : batch};
  Tensor low = cast(zeros_like(values), i32);
  Tensor high =
      dim.is_named() ? sum_of(low, cast(dim.lengths(), i32)) : low + cast(dim.lengths(), i32);
  Tensor wanted = values;
  if (dim.is_named()) {
    for (const Dim& other : sorted.dims())
      if (!(other == dim) && !contains(high.dims(), other))
        high = spread(high, expand(scalar(0), {other})).first;
    low = zeros_like(high);
    wanted = expand(values, high.dims());
  }
  const Dims order = high.dims();
  if (dim.has_size() && dim.size() == 0) return low;
  // The interval [low, high] holds the result, and is halved in every round.
  const int rounds = dim.has_size() ? std::bit_width(static_cast<std::uint64_t>(dim.size())) : 31;
  for (int i = 0; i < rounds; ++i) {
    const Tensor middle = low + floor_divide(high - low, 2);
    const Tensor element = gather(sorted, middle, at, clipped);
    const Tensor is_left = options.right ? !is_below(wanted, element) : is_below(element, wanted);
    const Tensor moves = is_left && middle < high;
    low = where(moves, middle + 1, low);
    high = where(moves, high, middle);
  }
  return dim.is_named() ? expand(low, order) : low;
}

Tensor repeat(const Tensor& x, const Tensor& counts, const Axis& axis, std::optional<Dim> to) {
  const int at = axis.in(x, "repeat");
  const Dim dim = named_axis("repeat", x, at);
  check_defined("repeat", counts);
  check_integers("repeat", "counts", counts);
  Tensor each = maximum(nearest_i32(counts), 0);
  if (!contains(each.dims(), dim)) {
    Dims dims = each.dims();
    for (const Dim& other : dim.lengths().dims())
      if (!contains(dims, other)) dims.push_back(other);
    dims.push_back(dim);
    each = expand(each, dims);
  }
  const Dim made = to ? *to : Dim(dim.name(), sum(each, dim));
  return gather(x, search_sorted(cumsum(each, dim), range(made), dim, {.right = true}), at,
                {.clip = true});
}

Tensor slice(const Tensor& x, const Axis& axis, const Arg& begin, const Arg& end,
             std::optional<Dim> to) {
  const int at = axis.in(x, "slice");
  const Dim dim = named_axis("slice", x, at);
  const Tensor size = cast(dim.lengths(), i32);
  const Tensor first = from_front(position("begin", begin), size),
               last = from_front(position("end", end), size);
  const auto [low, high] = spread(first, last);
  const Dim made = to ? *to : Dim(dim.name(), maximum(high - low, 0));
  return gather(x, sum_of(low, range(made)), at, {.clip = true});
}

Tensor detail::slice_over(const Tensor& x, const Axis& axis, const Arg& begin, const Dim& to) {
  const int at = axis.in(x, "slice");
  const Dim dim = named_axis("slice", x, at);
  if (!to.is_named())
    throw ArgumentError(str("slice: the dim of the result needs a name, got ", to));
  const Tensor size = cast(dim.lengths(), i32);
  const Tensor places = sum_of(from_front(position("begin", begin), size), range(to));
  // An axis without elements has none to read in the place of those behind its end.
  const bool is_empty = dim.has_size() && dim.size() == 0;
  const Tensor elements = gather(is_empty ? pad(x, at, 0, 1) : x, places, at, {.clip = true});
  const auto [place, end] = spread(places, size);
  return where(expand(place < end, elements.dims()), elements, 0);
}

Tensor detail::pad_with(const Tensor& x, const Axis& axis, std::int64_t before, std::int64_t after,
                        const Tensor& value, std::optional<Dim> to) {
  const int at = axis.in(x, "pad");
  check_defined("pad", value);
  if (value.dtype() != x.dtype())
    throw DTypeError(str("pad: dtypes differ: x ", x.type(), ", value ", value.type()));
  const Dim dim = x.dims()[static_cast<std::size_t>(at)];
  const Tensor y = pad(x, at, before, after, 0., std::move(to));
  const Dim made = y.dims()[static_cast<std::size_t>(at)];
  const Tensor behind = dim.lengths() + before;
  if (made.is_named()) {
    for (const Dim& of_value : value.dims())
      if (!contains(y.dims(), of_value))
        throw ShapeError(
            str("pad: the value ", value.type(), " has the dim ", of_value,
                of_value == dim ? ", along which x is padded: x " : ", which x lacks: x ", x.type(),
                "; give a scalar, or a value over other dims of x"));
    const auto [place, end] = spread(range(made), behind);
    return where(expand(place < before || place >= end, y.dims()), expand(value, y.dims()), y);
  }
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(y.rank()), 1);
  sizes[static_cast<std::size_t>(at)] = -1;
  const Tensor place = range(made);
  return where(reshape(place < before || place >= behind, sizes), value, y);
}

}  // namespace reel
