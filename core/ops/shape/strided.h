// core/ops/shape/strided.h — copy_strided, the loop behind transposing, slicing, joining and
// repeating.
#pragma once

#include <boost/container/small_vector.hpp>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

#include "reel/core/types/tensor.h"

namespace reel {

/// An axis of a copy: its size and its steps on both sides, in elements. The source's step may be 0
/// or negative.
struct StridedAxis {
  std::int64_t size, to, from;
};
using StridedAxes = boost::container::small_vector<StridedAxis, 8>;

/// Copies elements of `item` bytes (1, 4 or 8) between two layouts of the same sizes, outermost
/// axis first.
///
/// Requires layouts that do not overlap. Rows that are contiguous on both sides are copied whole.
/// If one axis is contiguous in the source and another in the destination, the copy uses tiles that
/// fit the first-level cache.
void copy_strided(std::size_t item, std::span<const StridedAxis> axes, void* to, const void* from);
inline void copy_strided(std::size_t item, std::initializer_list<StridedAxis> axes, void* to,
                         const void* from) {
  copy_strided(item, std::span<const StridedAxis>(axes.begin(), axes.size()), to, from);
}

/// Fills `to` with `count` copies of the element of `item` bytes (1, 4 or 8) at `value`.
void fill_items(std::size_t item, void* to, std::int64_t count, const void* value);

/// The step of every axis of a contiguous tensor, in elements.
using Steps = boost::container::small_vector<std::int64_t, 8>;
Steps steps_of(const TensorType& type);

/// A contiguous tensor around one axis: `outer` blocks of `size` rows of `inner` elements.
struct AxisView {
  std::int64_t outer = 1, size = 1, inner = 1;
};
AxisView view_axis(const TensorType& type, int axis);
/// Returns true if elements that follow each other along the axis lie side by side.
inline bool is_outermost(const TensorType& type, int axis) {
  return view_axis(type, axis).outer == 1;
}

/// Repeats the numbers over all axes of the type except `axis`. Sets by_block if the axes in front
/// of it suffice; then repeats over those only.
std::vector<std::int32_t> spread(const TensorType& type, int axis, const Tensor& per_entry,
                                 bool& by_block);

/// Calls fn(outer, first, count, number) for every run of elements behind an axis that share a
/// number of `per_entry` (i32, over some other dims of the type). The run is elements
/// first..first+count-1 of each row in block `outer`.
template <class Fn>
void for_each_entry(const TensorType& type, int axis, const Tensor& per_entry, Fn&& fn) {
  bool by_block = true;
  const std::vector<std::int32_t> numbers = spread(type, axis, per_entry, by_block);
  const AxisView view = view_axis(type, axis);
  std::size_t next = 0;
  for (std::int64_t outer = 0; outer < view.outer; ++outer) {
    if (by_block) {
      fn(outer, std::int64_t{0}, view.inner, std::int64_t{numbers[next++]});
      continue;
    }
    std::int64_t run = 1;
    for (std::int64_t i = 0; i < view.inner; i += run, next += static_cast<std::size_t>(run)) {
      const auto is_like_first = [&](std::int64_t k) {
        return numbers[next + static_cast<std::size_t>(k)] == numbers[next];
      };
      for (run = 1; i + run < view.inner && is_like_first(run);) ++run;
      fn(outer, i, run, std::int64_t{numbers[next]});
    }
  }
}

}  // namespace reel
