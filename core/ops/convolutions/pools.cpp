// The functions max_pool and mean_pool.
#include <algorithm>
#include <utility>
#include <vector>

#include "reel/core/base/str.h"
#include "reel/core/functions/convolutions.h"
#include "reel/core/ops.h"
#include "reel/core/ops/convolutions/convolutions.h"
#include "reel/core/ops/convolutions/window_arguments.h"
#include "reel/core/ops/convolutions/window_max.h"
#include "reel/core/ops/reductions/reduce.h"
#include "reel/core/ops/shape/dims.h"
#include "reel/core/ops/shape/new_dims.h"

namespace reel {
namespace {

/// x with the axes of windows side by side, in the order given, and all that is known of them.
struct Pooled {
  Tensor x;
  std::vector<Window> windows;
  int first = 0;           ///< the first axis of windows
  std::vector<int> order;  ///< of the axes of the function's argument

  int spatial() const { return static_cast<int>(windows.size()); }
  int inner() const { return x.rank() - first - spatial(); }
  Tensor restored(const Tensor& y) const { return in_order(y, inverse_of(order)); }
};

Pooled pooled(std::string_view function, const Tensor& x, const Axes& over,
              const Pooling& options) {
  std::vector<int> axes = window_axes(function, x, over);
  const std::vector<std::int64_t> size = values_of(function, "size", options.size, axes.size());
  const PerAxis<std::int64_t> stride =
      options.stride.values().empty() ? PerAxis<std::int64_t>(size) : options.stride;
  Pooled result;
  result.windows = windows_of(
      {function, axes, size, stride, options.dilation, options.padding, options.to}, x.type());
  const int front = *std::ranges::min_element(axes);
  for (int axis = 0; axis < front; ++axis) result.order.push_back(axis);
  result.first = front;
  result.order.insert(result.order.end(), axes.begin(), axes.end());
  for (int axis = front; axis < x.rank(); ++axis)
    if (!has(axes, axis)) result.order.push_back(axis);
  result.x = in_order(x, result.order);
  return result;
}

/// Returns the axes of windows in x.
std::vector<int> spatial_axes(const Pooled& at) {
  std::vector<int> axes;
  for (int i = 0; i < at.spatial(); ++i) axes.push_back(at.first + i);
  return axes;
}

/// Returns the sums of windows of x. inner: the number of axes behind the windows.
Tensor sums_of_windows(const Tensor& x, const std::vector<Window>& windows, int inner) {
  Dims dims;
  for (const Window& window : windows)
    dims.push_back(x.type().is_named() ? Dim("taps", window.taps) : Dim(window.taps));
  for (int axis = x.rank() - inner; axis < x.rank(); ++axis) dims.push_back(dim_at(x.type(), axis));
  return masked_conv(conv_op, {x, ones(dims, x.dtype())},
                     ConvAttrs{.groups = inner, .windows = windows});
}

/// Returns the number of elements in each window along one axis, such that it broadcasts to the
/// result.
Tensor counts_along(const Pooled& at, int i) {
  const Window& window = at.windows[static_cast<std::size_t>(i)];
  const int axis = at.first + i;
  const Dim& dim = dim_at(at.x.type(), axis);
  const Tensor elements =
      is_masked(at.x.type(), axis) ? cast(mask(dim), at.x.dtype()) : ones(Dims{dim}, at.x.dtype());
  const Tensor counts = sums_of_windows(elements, {window}, 0);
  if (dim.is_named()) return counts;
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(at.x.rank() - axis), 1);
  sizes[0] = -1;
  return reshape(counts, sizes);
}

/// Returns the number of elements in each window, as a factor of each axis; none if no window is
/// cut.
std::vector<Tensor> counts_of(const Pooled& at, double& whole) {
  const bool is_known = std::ranges::all_of(spatial_axes(at), [&](int axis) {
    const Dim& dim = dim_at(at.x.type(), axis);
    return dim.is_named() || dim.has_size();
  });
  std::vector<Tensor> counts;
  for (int i = 0; i < at.spatial(); ++i) {
    const Window& window = at.windows[static_cast<std::size_t>(i)];
    if (window.before == 0 && window.after == 0)
      whole *= static_cast<double>(window.taps);
    else if (is_known)
      counts.push_back(counts_along(at, i));
  }
  if (is_known) return counts;
  whole = 1;
  return {sums_of_windows(ones_like(at.x), at.windows, at.inner())};
}

}  // namespace

Tensor max_pool(const Tensor& x, const Axes& over, const Pooling& options) {
  check_number("max_pool", x, "cast it, as in max_pool(cast(x, i32), axis, ...)");
  const Pooled at = pooled("max_pool", x, over, options);
  const Tensor elements = without_padding(at.x, spatial_axes(at), lowest(x.dtype()));
  return at.restored(bind_window_op(window_max_op, {elements}, {at.inner(), at.windows})[0]);
}

Tensor mean_pool(const Tensor& x, const Axes& over, const Pooling& options) {
  check_float("mean_pool", x, "cast it to f32 or f64");
  const Pooled at = pooled("mean_pool", x, over, options);
  Tensor mean = sums_of_windows(at.x, at.windows, at.inner());
  double whole = 1;
  if (options.counts_padding)
    for (const Window& window : at.windows) whole *= static_cast<double>(window.taps);
  else
    for (const Tensor& counts : counts_of(at, whole)) mean = mean / maximum(counts, 1);
  return at.restored(whole == 1 ? mean : mean / whole);
}

}  // namespace reel
