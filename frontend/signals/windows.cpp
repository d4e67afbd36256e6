#include "reel/frontend/signals/windows.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string_view>
#include <vector>

#include "reel/core/base/str.h"
#include "reel/core/ops.h"
#include "reel/core/ops/reductions/reduce.h"

namespace reel {
namespace {

/// Returns a - b cos(t) + c cos(2t).
Tensor cosine_window(std::string_view name, const Dim& dim, const WindowOptions& options, double a,
                     double b, double c) {
  if (!dim.has_size() || dim.is_ragged())
    throw ArgumentError(str(name, ": a window needs a dim of one known size, got ", dim));
  if (options.dtype != f32 && options.dtype != f64)
    throw DTypeError(str(name, ": dtype is ", options.dtype, "; give f32 or f64"));
  const std::int64_t size = dim.size(), steps = options.is_periodic ? size : size - 1;
  std::vector<double> values;
  for (std::int64_t i = 0; i < size; ++i) {
    const double t = 2 * std::numbers::pi * static_cast<double>(i) /
                     static_cast<double>(std::max<std::int64_t>(steps, 1));
    values.push_back(a - b * std::cos(t) + c * std::cos(2 * t));
  }
  // A window of one element is 1, as in SciPy and torch.
  if (size == 1) values[0] = 1;
  return cast(tensor(values, Dims{dim}, f64), options.dtype);
}

}  // namespace

Tensor hann_window(const Dim& dim, const WindowOptions& options) {
  return cosine_window("hann_window", dim, options, 0.5, 0.5, 0);
}
Tensor hamming_window(const Dim& dim, const WindowOptions& options) {
  return cosine_window("hamming_window", dim, options, 0.54, 0.46, 0);
}
Tensor blackman_window(const Dim& dim, const WindowOptions& options) {
  return cosine_window("blackman_window", dim, options, 0.42, 0.5, 0.08);
}

}  // namespace reel
