// core/functions/positions.h — outer operands, searches in sorted elements, elements at
// positions that a run computes, and padding with values that it computes.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <utility>

#include "reel/core/base/visibility.h"
#include "reel/core/dims/axis.h"
#include "reel/core/functions/operands.h"
#include "reel/core/types/tensor.h"

REEL_API_BEGIN
namespace reel {

/// Returns both tensors over all dims of both, a's first: auto [p, q] = spread(a, b), then p + q is
/// the outer sum. (The outer product needs no spread: matmul(a, b, Dims{}).) Dims that both have
/// are matched by identity. Throws ShapeError for plain sizes.
std::pair<Tensor, Tensor> spread(const Tensor& a, const Tensor& b);

/// Options of search_sorted: search_sorted(sorted, values, axis, {.right = true}).
struct SearchSortedOptions {
  bool right = false;  ///< true: behind equal elements; false: before them
};
/// Returns the positions (i32) at which values would be inserted into `sorted`, which ascends along
/// the axis, so that it still ascends: the number of elements below a value, or not above it with
/// `right`. NaN is larger than all numbers, as in sort.
///
/// Named dims: the result has the dims of values, then the other dims of sorted; common dims are
/// matched. Along a ragged axis each entry has its own length. Plain sizes, as in
/// PyTorch: sorted is one-dimensional, or has the same leading sizes as values, and the axis is the
/// last. Takes about log₂(size) gathers. Throws DTypeError if dtypes differ, ShapeError or
/// ArgumentError if dims do not fit.
Tensor search_sorted(const Tensor& sorted, const Tensor& values, const Axis& axis,
                     const SearchSortedOptions& options = {});

/// Returns x with the element at each position i of a named axis counts[i] times, one behind
/// another. counts: i32 or i64, over the axis, or without it for one number; other dims are
/// matched with dims of x, so that every entry may have its own counts. Negative counts, and counts
/// in padding, are 0.
///
/// `to` is the new dim; default: a new dim of the same name. Its lengths are the sums of the
/// counts. Throws ArgumentError for a plain axis, because its size must not depend on values.
Tensor repeat(const Tensor& x, const Tensor& counts, const Axis& axis, std::optional<Dim> to = {});

/// Returns elements begin, begin+1, ... end-1 along a named axis, as slice with numbers does, for
/// positions that a run computes. begin, end: numbers, or integers of any dims without the axis;
/// common dims are matched, so that every entry may have its own positions. Negative positions
/// count from the end, along a ragged axis from the end of the entry; positions out of range are
/// clamped.
///
/// `to` is the new dim; default: a new dim of the same name. Its lengths are end - begin, at
/// least 0. Throws ArgumentError for a plain axis.
Tensor slice(const Tensor& x, const Axis& axis, const Arg& begin, const Arg& end,
             std::optional<Dim> to = {});
namespace detail {
Tensor slice_over(const Tensor& x, const Axis& axis, const Arg& begin, const Dim& to);
}  // namespace detail
/// Returns as many elements from `begin` on as the named dim `to` has, which is the result's.
/// begin: as above. Places behind the end of the axis, or of an entry, are 0. A template, so that
/// a number means an end.
template <std::same_as<Dim> One>
Tensor slice(const Tensor& x, const Axis& axis, const Arg& begin, const One& to) {
  return detail::slice_over(x, axis, begin, to);
}

namespace detail {
Tensor pad_with(const Tensor& x, const Axis& axis, std::int64_t before, std::int64_t after,
                const Tensor& value, std::optional<Dim> to);
}  // namespace detail
/// Returns x with `before` and `after` more elements along an axis, as pad with a number does, but
/// with the values of a tensor of x's dtype. value: a scalar, or named dims of x without the axis,
/// so that every entry may have its own value; for plain sizes, any tensor that NumPy broadcasts to
/// the result. A template, so that braces mean a number.
template <std::same_as<Tensor> Value>
Tensor pad(const Tensor& x, const Axis& axis, std::int64_t before, std::int64_t after,
           const Value& value, std::optional<Dim> to = {}) {
  return detail::pad_with(x, axis, before, after, value, std::move(to));
}

}  // namespace reel
REEL_API_END
