// core/ops/convolutions/window_max.h — the largest element of each window, and the ops of its
// gradient.
#pragma once

#include <vector>

#include "reel/core/ops/convolutions/convolutions.h"

namespace reel {

/// Axes of a tensor: x [rows, spatial, inner], y [rows, windows, inner].
struct PoolAttrs {
  int inner = 0;
  std::vector<Window> windows = {};  ///< by spatial axis; `to` as for conv
  bool reads_shape = false;  ///< see reads_shape(); follows from the operand, so it is no field
  template <class F>
  static void fields(F&& f) {
    f("inner", &PoolAttrs::inner);
    f("windows", &PoolAttrs::windows);
  }
  int spatial() const { return static_cast<int>(windows.size()); }
};

/// The largest element of each window, and its tap (i32): the first of equal ones, or the first
/// NaN. Taps are numbered over all axes, the last one fastest; -1 for a window without elements,
/// and the maximum is then lowest().
extern const Op window_max_op;
/// Adds elements of y to x at the taps that window_max_op chose; x is zero elsewhere. A third
/// operand, if there is one, has the sizes of x.
extern const Op window_put_op;
/// Takes the elements of x at these taps; zero for -1.
extern const Op window_take_op;

/// Applies one of these ops. operands: as the op takes them.
Tensors bind_window_op(const Op& op, const Tensors& operands, PoolAttrs attrs);

// The kernels: window_max_kernels.cpp.
void window_max_kernel(KernelArgs& args);
void window_put_kernel(KernelArgs& args);
void window_take_kernel(KernelArgs& args);

}  // namespace reel
