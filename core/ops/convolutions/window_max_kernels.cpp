// The kernels of the largest elements of windows. Each is a loop over windows, taps, and the
// elements behind the spatial axes.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "reel/core/ops/convolutions/window_axes.h"
#include "reel/core/ops/convolutions/window_max.h"
#include "reel/core/ops/kernels/parallel_ranges.h"
#include "reel/core/types/tensor.h"

namespace reel {
namespace {

/// The places of x that each window reads, for one entry of the rows.
class WindowTaps {
 public:
  WindowTaps(const PoolAttrs& attrs, const TensorType& x, const TensorType& y) {
    const auto first = static_cast<std::size_t>(x.rank() - attrs.inner - attrs.spatial());
    for (std::size_t axis = 0; axis < first; ++axis) rows *= x.sizes()[axis];
    for (std::size_t axis = first + attrs.windows.size(); axis < x.sizes().size(); ++axis)
      inner *= x.sizes()[axis];
    for (std::size_t i = 0; i < attrs.windows.size(); ++i) {
      axes_.push_back(axis_over_x(attrs.windows[i], x.sizes()[first + i], y.sizes()[first + i]));
      of_x *= x.sizes()[first + i];
      of_y *= y.sizes()[first + i];
      taps *= attrs.windows[i].taps;
    }
  }
  /// Returns the place of a tap of a window, in elements of x; -1 if it is outside of x.
  std::int64_t place(std::int64_t window, std::int64_t tap) const {
    std::int64_t result = 0, step = inner;
    for (std::size_t i = axes_.size(); i-- > 0;) {
      const WindowAxis& axis = axes_[i];
      const std::int64_t position = window % axis.rows * axis.step +
                                    axis.offsets[static_cast<std::size_t>(tap % axis.tap_count())];
      if (position < 0 || position >= axis.source) return -1;
      result += position * step;
      step *= axis.source;
      window /= axis.rows;
      tap /= axis.tap_count();
    }
    return result;
  }
  std::int64_t rows = 1, inner = 1, of_x = 1, of_y = 1, taps = 1;

 private:
  std::vector<WindowAxis> axes_;
};

template <class T>
bool is_nan(T x) {
  if constexpr (std::is_floating_point_v<T>)
    return std::isnan(x);
  else
    return false;
}

/// Calls fn(row, window, places) for all windows. places: of each tap in an entry of x, in
/// elements; -1 for a tap outside of x.
template <class Fn>
void for_each_window(const WindowTaps& at, std::int64_t work, Fn&& fn) {
  parallel_ranges(at.rows, work, [&](std::int64_t first, std::int64_t count) {
    std::vector<std::int64_t> places(static_cast<std::size_t>(at.taps));
    for (std::int64_t window = 0; window < at.of_y; ++window) {
      for (std::int64_t tap = 0; tap < at.taps; ++tap)
        places[static_cast<std::size_t>(tap)] = at.place(window, tap);
      for (std::int64_t row = first; row < first + count; ++row) fn(row, window, places.data());
    }
  });
}

/// Replaces an element by the element of this tap if the latter is larger, or alone is NaN. Written
/// without branches, so that compilers use vectors.
template <class T>
void take_larger(const T* __restrict from, std::int32_t tap, std::int64_t count,
                 T* __restrict largest, std::int32_t* __restrict taps) {
  for (std::int64_t i = 0; i < count; ++i) {
    const bool is_larger =
        (from[i] > largest[i]) | (static_cast<int>(is_nan(from[i])) & !is_nan(largest[i]));
    largest[i] = is_larger ? from[i] : largest[i];
    taps[i] = is_larger ? tap : taps[i];
  }
}

}  // namespace

void window_max_kernel(KernelArgs& args) {
  const Tensor& x = args.input(0);
  const Tensor &y = args.make(0), &chosen = args.make(1);
  const WindowTaps at(args.attr<PoolAttrs>(), x.type(), y.type());
  visit_numbers(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    constexpr T kLowest = std::is_floating_point_v<T> ? -std::numeric_limits<T>::infinity()
                                                      : std::numeric_limits<T>::lowest();
    for_each_window(at, y.type().numel() * at.taps,
                    [&](std::int64_t row, std::int64_t window, const std::int64_t* places) {
                      const T* const from = x.data<T>() + row * at.of_x * at.inner;
                      const std::int64_t to = (row * at.of_y + window) * at.inner;
                      T* const largest = y.data<T>() + to;
                      std::int32_t* const taps = chosen.data<std::int32_t>() + to;
                      const std::int64_t first =
                          std::find_if(places, places + at.taps, [](auto at) { return at >= 0; }) -
                          places;
                      if (first == at.taps) {
                        std::fill_n(largest, at.inner, kLowest);
                        std::fill_n(taps, at.inner, -1);
                        return;
                      }
                      std::copy_n(from + places[first], at.inner, largest);
                      std::fill_n(taps, at.inner, static_cast<std::int32_t>(first));
                      for (std::int64_t tap = first + 1; tap < at.taps; ++tap)
                        if (places[tap] >= 0)
                          take_larger(from + places[tap], static_cast<std::int32_t>(tap), at.inner,
                                      largest, taps);
                    });
  });
}

void window_put_kernel(KernelArgs& args) {
  const Tensor &y = args.input(0), &chosen = args.input(1);
  const Tensor& x = args.make();
  const WindowTaps at(args.attr<PoolAttrs>(), x.type(), y.type());
  visit_numbers(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    std::fill_n(x.data<T>(), x.type().numel(), T(0));
    for_each_window(at, y.type().numel(),
                    [&](std::int64_t row, std::int64_t window, const std::int64_t* places) {
                      const std::int64_t from = (row * at.of_y + window) * at.inner;
                      T* const to = x.data<T>() + row * at.of_x * at.inner;
                      for (std::int64_t i = 0; i < at.inner; ++i) {
                        const std::int64_t tap = chosen.data<std::int32_t>()[from + i];
                        if (tap < 0 || tap >= at.taps) continue;
                        const std::int64_t place = places[tap];
                        if (place >= 0) to[place + i] += y.data<T>()[from + i];
                      }
                    });
  });
}

void window_take_kernel(KernelArgs& args) {
  const Tensor &x = args.input(0), &chosen = args.input(1);
  const Tensor& y = args.make();
  const WindowTaps at(args.attr<PoolAttrs>(), x.type(), y.type());
  visit_numbers(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    for_each_window(at, y.type().numel(),
                    [&](std::int64_t row, std::int64_t window, const std::int64_t* places) {
                      const std::int64_t to = (row * at.of_y + window) * at.inner;
                      const T* const from = x.data<T>() + row * at.of_x * at.inner;
                      for (std::int64_t i = 0; i < at.inner; ++i) {
                        const std::int64_t tap = chosen.data<std::int32_t>()[to + i],
                                           place = tap < 0 || tap >= at.taps ? -1 : places[tap];
                        y.data<T>()[to + i] = place < 0 ? T(0) : from[place + i];
                      }
                    });
  });
}

}  // namespace reel
