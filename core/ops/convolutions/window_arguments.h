// core/ops/convolutions/window_arguments.h — arguments that functions of windows share: axes,
// sizes, padding, and the dims of results.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "reel/core/functions/convolutions.h"
#include "reel/core/ops/convolutions/convolutions.h"

namespace reel {

/// The arguments of a function of windows along its axes.
struct WindowArguments {
  std::string_view function;
  std::vector<int> axes;           ///< positions in x
  std::vector<std::int64_t> taps;  ///< by axis
  const PerAxis<std::int64_t>& stride;
  const PerAxis<std::int64_t>& dilation;
  const PerAxis<WindowPadding>& padding;
  const Dims& to;
};

/// Returns positions of one to three axes. Throws ArgumentError for another number of them,
/// ShapeError if lengths of another dim of x run over one.
std::vector<int> window_axes(std::string_view function, const Tensor& x, const Axes& over);
/// Returns the values for each of `count` axes. Throws ArgumentError for another number of values.
std::vector<std::int64_t> values_of(std::string_view function, std::string_view option,
                                    const PerAxis<std::int64_t>& values, std::size_t count);
/// Returns the windows over axes of x, with the dims of the result. is_transposed: x has the
/// windows, and the dims are those which they are over.
std::vector<Window> windows_of(const WindowArguments& arguments, const TensorType& x,
                               bool is_transposed = false);

/// Returns x with its axes in this order of positions; x itself if they are.
Tensor in_order(const Tensor& x, const std::vector<int>& order);
/// Returns the order that in_order() undoes.
std::vector<int> inverse_of(const std::vector<int>& order);

}  // namespace reel
