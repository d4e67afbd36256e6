// core/functions/scans.h — linear recurrences along an axis.
#pragma once

#include <optional>

#include "reel/core/base/visibility.h"
#include "reel/core/dims/axis.h"
#include "reel/core/types/tensor.h"

REEL_API_BEGIN
namespace reel {

/// Options of linear_scan: linear_scan(a, b, h0, time, {.input = x, .reverse = true}).
struct LinearScan {
  std::optional<Tensor> input = {};  ///< x in h_t = a_t h_{t-1} + b_t x_t; without it, b_t alone
  bool reverse = false;              ///< from the last step to the first: h_t = a_t h_{t+1} + b_t
};
/// Returns all states of the recurrence h_t = a_t h_{t-1} + b_t along an axis, element by element.
///
/// a, b: f32 or f64, of one dtype. They are broadcast as operands of a * b are, so that a may lack
/// the axis and others; `time` is an axis of the result. h0: the state before the first step, which
/// broadcasts to the result without the axis; default: zeros. input: b and x are broadcast alike,
/// and b_t x_t is multiplied on the way.
///
/// Along a ragged dim each entry runs within its own length: from its first element, or with
/// .reverse from its last. If the axis is ragged, or lengths of a ragged dim run over it, padding
/// of a, b and x does not count, and padding of the result is 0.
///
/// Each product and each sum is rounded, as in a loop; only along an axis of 4,096 and more
/// elements with fewer than four elements behind it, segments run at once, and the rounding
/// differs. Bits do not depend on the number of threads. Gradients of any order; the residual is
/// the result. Throws DTypeError for other dtypes, ShapeError if dims do not fit, IndexError or
/// ShapeError for the axis. Source: Martin and Cundy (2018), "Parallelizing linear recurrent neural
/// nets over sequence length".
Tensor linear_scan(const Tensor& a, const Tensor& b, const std::optional<Tensor>& h0,
                   const Axis& time, const LinearScan& options = {});
/// As above, with an initial state of zeros.
Tensor linear_scan(const Tensor& a, const Tensor& b, const Axis& time,
                   const LinearScan& options = {});

}  // namespace reel
REEL_API_END
