#include "reel/core/ops/convolutions/window_axes.h"

#include <algorithm>

namespace reel {
namespace {

/// Divides and rounds down, also for negative numbers. Requires b > 0.
std::int64_t floor_of(std::int64_t a, std::int64_t b) { return a / b - (a % b < 0); }
std::int64_t ceil_of(std::int64_t a, std::int64_t b) { return -floor_of(-a, b); }

}  // namespace

bool WindowAxis::is_run() const {
  return !offsets.empty() && offsets.back() - offsets.front() == tap_count() - 1;
}

std::int64_t WindowAxis::first_inside() const {
  if (offsets.empty()) return rows;
  return std::clamp<std::int64_t>(ceil_of(-offsets.front(), step), 0, rows);
}

std::int64_t WindowAxis::end_inside() const {
  if (offsets.empty()) return rows;
  const std::int64_t end = floor_of(source - 1 - offsets.back(), step) + 1;
  return std::clamp<std::int64_t>(end, first_inside(), rows);
}

std::int64_t positions_in(const std::vector<std::int64_t>& sizes) {
  std::int64_t result = 1;
  for (const std::int64_t size : sizes) result *= size;
  return result;
}

WindowAxis axis_over_x(const Window& window, std::int64_t x, std::int64_t y) {
  WindowAxis result{.rows = y, .step = window.stride, .source = x};
  for (std::int64_t tap = 0; tap < window.taps; ++tap) {
    result.offsets.push_back(tap * window.dilation - window.before);
    result.taps.push_back(tap);
  }
  return result;
}

std::vector<WindowAxis> axes_over_y(const Window& window, std::int64_t x, std::int64_t y) {
  std::vector<WindowAxis> result;
  const std::int64_t stride = window.stride;
  for (std::int64_t first = 0; first < std::min(stride, x); ++first) {
    // Position `first` and tap k are of window o with o · stride + k · dilation - before = first.
    WindowAxis axis{
        .rows = ceil_of(x - first, stride), .first = first, .stride = stride, .source = y};
    for (std::int64_t tap = window.taps; tap-- > 0;) {
      const std::int64_t at = first + window.before - tap * window.dilation;
      if (at - floor_of(at, stride) * stride != 0) continue;
      axis.offsets.push_back(floor_of(at, stride));
      axis.taps.push_back(tap);
    }
    result.push_back(std::move(axis));
  }
  return result;
}

std::vector<WindowAxes> all_choices(const std::vector<std::vector<WindowAxis>>& by_axis) {
  std::vector<WindowAxes> result{{}};
  for (const std::vector<WindowAxis>& choices : by_axis) {
    std::vector<WindowAxes> longer;
    for (const WindowAxes& axes : result)
      for (const WindowAxis& choice : choices) {
        longer.push_back(axes);
        longer.back().push_back(choice);
      }
    result = std::move(longer);
  }
  return result;
}

}  // namespace reel
