// core/ops/scans/linear_scan.h — linear recurrences along an axis, and the ops of their
// gradients.
//
// No op here treats padding specially: linear_scan() replaces it before.
#pragma once

#include "reel/core/base/visibility.h"
#include "reel/core/op/op.h"

namespace reel {

/// Which operands a recurrence has, by bits: also which have the time axis, and which cotangents
/// are wanted.
enum ScanOperand : int { kScanA = 1, kScanB = 2, kScanX = 4, kScanInitial = 8 };

/// Attributes of linear_scan_op and linear_scan_grad_op.
struct LinearScanAttrs {
  int axis = 0;  ///< of the result
  bool reverse = false;
  int operands = 0;   ///< ScanOperands that are given: a and b always
  int over_time = 0;  ///< those with the dims of the result; the others lack the axis
  int wanted = 0;     ///< linear_scan_grad_op: one result for each of these, in the order of bits
  template <class F>
  static void fields(F&& f) {
    f("axis", &LinearScanAttrs::axis);
    f("reverse", &LinearScanAttrs::reverse);
    f("operands", &LinearScanAttrs::operands);
    f("over_time", &LinearScanAttrs::over_time);
    f("wanted", &LinearScanAttrs::wanted);
  }
};

/// h_t = a_t h_{t-1} + b_t x_t. Operands: a, b, then x and the initial h, if they are given.
/// Requires that a, b or x has the time axis.
extern const Op linear_scan_op;

/// The cotangents of wanted operands. Operands: a, the cotangent of h, then the others in the order
/// of `ScanGradOperands`. A result is summed over time if its operand lacks the axis.
extern const Op linear_scan_grad_op;

/// The operands of linear_scan_grad_op behind a and the cotangent: their positions, or -1.
struct REEL_API ScanGradOperands {
  int h = -1, initial = -1, b = -1, x = -1, count = 2;
  explicit ScanGradOperands(const LinearScanAttrs& attrs);
};

/// Attributes of scan_lag_op and scan_edge_op.
struct ScanWalkAttrs {
  int axis = 0;
  bool reverse = false;
  template <class F>
  static void fields(F&& f) {
    f("axis", &ScanWalkAttrs::axis);
    f("reverse", &ScanWalkAttrs::reverse);
  }
};
/// Each step gets the row of the step before it in the walk; the first gets the second operand,
/// which lacks the axis, or zeros without one.
extern const Op scan_lag_op;
/// The first row of the walk, without the axis; zeros if the axis is empty.
extern const Op scan_edge_op;

/// True for the four ops of this file.
bool is_linear_scan(const Op* op);
/// Returns the axis of the recurrence, in operands that have it. Requires is_linear_scan(op).
int linear_scan_axis(const Op* op, const Attrs* attrs);

// The kernels: linear_scan_kernels.cpp.
void linear_scan_kernel(KernelArgs& args);
void linear_scan_grad_kernel(KernelArgs& args);
void scan_lag_kernel(KernelArgs& args);
void scan_edge_kernel(KernelArgs& args);

}  // namespace reel
