// Sample i of `to` lies between samples of `from` at a place that repeats every `to` samples: one
// filter for each place, applied to frames that are `from` samples apart.
#include "reel/frontend/signals/resample.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <vector>

#include "reel/core/base/str.h"
#include "reel/core/functions/dim_arithmetic.h"
#include "reel/core/ops.h"
#include "reel/core/ops/reductions/reduce.h"
#include "reel/core/ops/shape/new_dims.h"
#include "reel/core/ops/shape/slice.h"
#include "reel/frontend/signals/along.h"
#include "reel/frontend/signals/frames.h"

namespace reel {

Tensor resample(const Tensor& x, const Axis& time, std::int64_t from, std::int64_t to,
                const ResampleOptions& options) {
  const int axis = time.in(x, "resample");
  check_float("resample", x, "cast it to f32");
  if (from < 1 || to < 1 || options.zeros < 1 || !(options.rolloff > 0 && options.rolloff <= 1))
    throw ArgumentError(str("resample: rates ", from, " and ", to, ", zeros ", options.zeros,
                            " and rolloff ", options.rolloff,
                            " must be positive, and the rolloff at most 1"));
  if (from == to) return x;
  const std::int64_t common = std::gcd(from, to), in = from / common, out = to / common;
  const double zeros = static_cast<double>(options.zeros);
  const double cutoff = static_cast<double>(std::min(in, out)) * options.rolloff;
  const auto width = static_cast<std::int64_t>(std::ceil(zeros * static_cast<double>(in) / cutoff));
  const std::int64_t taps = 2 * width + in;
  std::vector<double> values;
  for (std::int64_t k = 0; k < taps; ++k)
    for (std::int64_t i = 0; i < out; ++i) {
      const double place = static_cast<double>(k - width) / static_cast<double>(in) -
                           static_cast<double>(i) / static_cast<double>(out);
      const double t = std::clamp(place * cutoff, -zeros, zeros), angle = std::numbers::pi * t;
      const double window = std::cos(angle / zeros / 2);
      const double sinc = t == 0 ? 1 : std::sin(angle) / angle;
      values.push_back(sinc * window * window * cutoff / static_cast<double>(in));
    }
  const bool is_named = x.type().is_named();
  const Dim window = is_named ? Dim("tap", taps) : Dim(taps),
            place = is_named ? Dim("place", out) : Dim(out);
  const Dim dim = canonical(dim_at(x.type(), axis));
  const Tensor filters = cast(tensor(values, Dims{window, place}, f64), x.dtype());
  Tensor samples = detail::product_along(
      frame(x, axis, window, in, WindowPadding{width, width + in - 1}), axis + 1, filters);
  if (is_named) {  // the places follow the frames
    std::vector<Axis> order;
    for (int i = 0; i + 1 < samples.rank(); ++i) {
      order.emplace_back(i);
      if (i == axis) order.emplace_back(samples.rank() - 1);
    }
    samples = transpose(samples, Axes(order));
  }
  samples = merge_dims(samples, {axis, axis + 1});
  const Dim made = ceildiv(dim * out, in);
  return is_named ? resized(samples, with_dim(samples.dims(), axis, made))
                  : slice(samples, axis, 0, made.size());
}

}  // namespace reel
