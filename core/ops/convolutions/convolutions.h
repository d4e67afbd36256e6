// core/ops/convolutions/convolutions.h — conv_op and the ops of its gradients: the three
// contractions of one trilinear form.
//
// The form is the sum of x[n, o·stride + k·dilation - before, g, c] · f[k, g, c, m] · y[n, o, g, m]
// over all indices. Each op contracts two of the three tensors to the cotangent of the third one,
// so the ops are closed under vjp. No op here treats padding specially: functions and vjps replace
// it by zeros before.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "reel/core/op/axes.h"
#include "reel/core/op/op.h"
#include "reel/core/types/tensor.h"

namespace reel {

/// The windows along one axis. Window o begins at position o · stride - before.
struct Window {
  std::int64_t taps = 1;  ///< elements that a window reads, `dilation` apart
  std::int64_t stride = 1, dilation = 1;
  std::int64_t before = 0, after = 0;  ///< zeros in front of the axis and behind it
  /// The axis that the result has there: of y for conv, of x and f for the gradients. None for a
  /// plain axis if its size follows: always for y and f, for x unless an operand has its size.
  std::optional<Dim> to = {};
  /// If the size of x follows from the size of y: elements of x behind the last window.
  std::int64_t extra = 0;
  template <class F>
  static void fields(F&& f) {
    f("taps", &Window::taps);
    f("stride", &Window::stride);
    f("dilation", &Window::dilation);
    f("before", &Window::before);
    f("after", &Window::after);
    f("to", &Window::to);
    f("extra", &Window::extra);
  }
};

/// Returns the number of elements from the first to the last tap of a window.
inline std::int64_t reach_of(const Window& window) {
  return (window.taps - 1) * window.dilation + 1;
}
/// Returns the number of windows over an axis of `size` elements: ceil((size + before + after -
/// (reach - 1)) / stride), and 0 if that is negative.
std::int64_t window_count(const Window& window, std::int64_t size);
/// Returns the size of an axis with this number of windows, and `extra` elements behind them.
std::int64_t windowed_size(const Window& window, std::int64_t count);

/// Axes of the three tensors, in this order:
///
///   x  [batch, rows, spatial, groups, ins]
///   f  [batch, taps, groups, ins, outs]
///   y  [batch, rows, windows, groups, outs]
///
/// The numbers of axes of each kind; the number of rows follows from the rank.
struct ConvAttrs {
  int batch = 0;
  int groups = 0, ins = 0, outs = 0;
  std::vector<Window> windows = {};  ///< by spatial axis
  bool reads_shape = false;  ///< see reads_shape(); follows from the operands, so it is no field
  template <class F>
  static void fields(F&& f) {
    f("batch", &ConvAttrs::batch);
    f("groups", &ConvAttrs::groups);
    f("ins", &ConvAttrs::ins);
    f("outs", &ConvAttrs::outs);
    f("windows", &ConvAttrs::windows);
  }
  int spatial() const { return static_cast<int>(windows.size()); }
};

/// y of x and f.
extern const Op conv_op;
/// The cotangent of x, of y and f. A third operand, if there is one, has the sizes of x.
extern const Op conv_input_op;
/// The cotangent of f, of x and y.
extern const Op conv_filter_op;

/// The three tensors of an application, in the roles above.
struct ConvTypes {
  TensorType x, f, y;
  explicit ConvTypes(const OpCall& call);
};
/// Return the position of the first axis of a kind. Axes behind the rows are counted from the end.
inline int first_spatial_of_x(const ConvAttrs& attrs, const TensorType& x) {
  return x.rank() - attrs.ins - attrs.groups - attrs.spatial();
}
inline int first_spatial_of_y(const ConvAttrs& attrs, const TensorType& y) {
  return y.rank() - attrs.outs - attrs.groups - attrs.spatial();
}

/// Applies a convolution op after it has put zeros into the padding that a sum would read.
/// operands: two tensors, and a third one for conv_input_op.
Tensor masked_conv(const Op& op, const Tensors& operands, ConvAttrs attrs);

// The kernels: conv_kernels.cpp.
void conv_kernel(KernelArgs& args);
void conv_input_kernel(KernelArgs& args);
void conv_filter_kernel(KernelArgs& args);

}  // namespace reel
