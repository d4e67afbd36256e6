// core/functions/scatter.h — scatter, which reduces elements with equal indices.
#pragma once

#include <optional>

#include "reel/core/base/visibility.h"
#include "reel/core/dims/axis.h"
#include "reel/core/types/tensor.h"

REEL_API_BEGIN
namespace reel {

/// How scatter reduces the elements of one position.
enum class ScatterBy { sum, mean, max, min, logsumexp };

/// Options of scatter: scatter(x, indices, time, segment, {.by = ScatterBy::mean}).
struct ScatterOptions {
  ScatterBy by = ScatterBy::sum;  ///< the reduction
  /// The value of positions that no index names; default: of an empty reduction, which is 0 for sum
  /// and mean, the highest value (infinity) for min, the lowest (-infinity) for others.
  std::optional<double> fill = {};
};

/// Returns x with the dims `over` replaced by `to`: the element at position p is the reduction of
/// the elements of x that have the index p. The dim `to` stands where the first of `over` stood.
///
/// indices: i32 or i64 over the named dims `over`, and over further dims of x, if each of their
/// entries has its own positions. Padding is left out. Negative indices count from the end of `to`.
/// Sums run in the order of x. Ties of max and min share the gradient equally.
/// Throws IndexError for an index out of range, ShapeError if x lacks a dim of the indices or they
/// lack a dim of `over`, ArgumentError for a `to` without a name, DTypeError for a mean or
/// logsumexp of integers.
Tensor scatter(const Tensor& x, const Tensor& indices, const Dims& over, const Dim& to,
               const ScatterOptions& options = {});

/// Returns, for each position p of `to`, the position (i32) along `over` of the largest element of
/// x that has the index p: the first of equal elements, or `none` if no element has it. NaN is
/// larger than all numbers. Dims and errors: as scatter.
Tensor scatter_argmax(const Tensor& x, const Tensor& indices, const Dim& over, const Dim& to,
                      int none = -1);

}  // namespace reel
REEL_API_END
