// onnx/ops/windows.h — windows over the axes behind the first two, as convolutions and pools have.
#pragma once

#include "reel/onnx/call.h"

namespace reel::imported {

/// The windows along one axis.
struct AxisWindow {
  std::int64_t size, kernel, stride, dilation, before, after, count;
  std::int64_t beyond =
      0;  ///< elements behind the padding that the last window reaches (ceil_mode)
  /// Returns the positions that windows read, one window behind another.
  std::vector<std::int64_t> positions() const;
};
using Windows = std::vector<AxisWindow>;

/// Reads strides, dilations and pads of the axes behind the first two. kernel: sizes of the kernel.
Windows windows_of(const Call& call, const Tensor& x, const std::vector<std::int64_t>& kernel);
/// Returns the positions of a window. Throws OnnxError if the list takes more than the call may.
std::vector<std::int64_t> positions_of(const Call& call, const AxisWindow& window);
/// Returns the windows: [N, C, o1, k1, o2, k2, ...]. padding: the value around x.
Tensor unfolded(const Call& call, Tensor x, const Windows& windows, double padding);
/// Returns the axes of the kernel in the result of unfolded().
std::vector<Axis> kernel_axes(std::size_t count);

/// Returns the convolution of x with weights, with the node's groups, strides, dilations and pads;
/// without a bias.
Tensor convolved(const Call& call, const Tensor& x, const Tensor& weight);

}  // namespace reel::imported
