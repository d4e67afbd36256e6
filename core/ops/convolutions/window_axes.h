// core/ops/convolutions/window_axes.h — WindowAxis, the windows along one axis as a kernel walks
// over them.
#pragma once

#include <cstdint>
#include <type_traits>
#include <vector>

#include "reel/core/ops/convolutions/convolutions.h"

namespace reel {

/// Windows along one axis: row j of the result lies at position first + j · stride, and its tap t
/// reads position j · step + offsets[t] of the source, or zero if there is none.
struct WindowAxis {
  std::int64_t rows = 0, step = 1;
  std::int64_t first = 0, stride = 1;
  std::int64_t source = 0;                 ///< the number of positions of the source
  std::vector<std::int64_t> offsets = {};  ///< ascending
  std::vector<std::int64_t> taps = {};     ///< of each offset: its place in the filter

  std::int64_t tap_count() const { return static_cast<std::int64_t>(offsets.size()); }
  /// Returns true if the taps of a window lie side by side in the source.
  bool is_run() const;
  /// Returns the number of rows at positions below this one.
  std::int64_t rows_below(std::int64_t position) const {
    return position <= first ? 0 : (position - first - 1) / stride + 1;
  }
  /// Return the first row with all taps inside of the source, and the row behind the last one.
  std::int64_t first_inside() const;
  std::int64_t end_inside() const;
};
/// The axes of one product, outermost first.
using WindowAxes = std::vector<WindowAxis>;

/// Returns the product of sizes along axes.
std::int64_t positions_in(const std::vector<std::int64_t>& sizes);

/// Calls fn(zero) with a zero of the dtype. Does nothing for booleans, which the ops refuse.
template <class Fn>
void visit_numbers(DType dtype, Fn&& fn) {
  visit(dtype, [&](auto zero) {
    if constexpr (!std::is_same_v<decltype(zero), bool>) fn(zero);
  });
}

/// Returns the windows over x, if y is their result.
WindowAxis axis_over_x(const Window& window, std::int64_t x, std::int64_t y);
/// Returns the windows over y, if x is their result: one WindowAxis for each remainder of the
/// position by the stride, since each reads other taps.
std::vector<WindowAxis> axes_over_y(const Window& window, std::int64_t x, std::int64_t y);
/// Returns every choice of one WindowAxis for each axis.
std::vector<WindowAxes> all_choices(const std::vector<std::vector<WindowAxis>>& by_axis);

}  // namespace reel
