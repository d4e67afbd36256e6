// core/ops/convolutions/depthwise.h — convolutions with a filter for each channel, as loops over
// rows of channels.
#pragma once

#include <cstdint>
#include <type_traits>

#include "reel/core/ops/convolutions/filter_matrix.h"
#include "reel/core/ops/convolutions/window_rows.h"

namespace reel {

/// Returns true if each channel has a filter of its own, and there are enough of them for vectors.
template <class T>
bool is_depthwise(const ConvSizes& sizes) {
  constexpr std::int64_t kLeastChannels = 8;
  return std::is_floating_point_v<T> && sizes.ins == 1 && sizes.outs == 1 &&
         sizes.groups >= kLeastChannels;
}

/// Computes the rows that `axes` name. Requires is_depthwise(). positions: places in the target
/// that are no padding; others become zero.
template <class T>
void multiply_depthwise(const ConvSizes& sizes, const WindowAxes& axes, const FilterRole& role,
                        const T* source, const T* f, T* target, const UnpaddedPositions& positions);

/// Computes the gradient of a filter. Requires is_depthwise().
template <class T>
void sum_depthwise(const ConvSizes& sizes, const WindowAxes& axes, const T* x, const T* y, T* f,
                   const UnpaddedPositions& positions);

}  // namespace reel
