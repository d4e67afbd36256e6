// core/ops/shape/slice.h — ops that take, add or move elements along one axis.
#pragma once

#include <optional>

#include "reel/core/op/attrs.h"
#include "reel/core/op/op.h"

namespace reel {

/// Takes positions begin, begin + step, ... below end of an axis, counted as in Python. The axis
/// becomes `to`.
struct SliceAttrs {
  int axis = 0;
  std::int64_t begin = 0;
  std::optional<std::int64_t> end;
  std::optional<Dim> to;     ///< none for a plain axis
  std::int64_t step = 1;     ///< at least 1
  bool reads_shape = false;  ///< see reads_shape(); follows from the operand, so it is no field
  template <class F>
  static void fields(F&& f) {
    f("axis", &SliceAttrs::axis);
    f("begin", &SliceAttrs::begin);
    f("end", &SliceAttrs::end);
    f("to", &SliceAttrs::to);
    f("step", &SliceAttrs::step);
  }
};
extern const Op slice_op;
/// The inverse: writes x into these positions of zeros, along an axis with dim `to`. Without `to`,
/// the result has the dims of a second input.
extern const Op unslice_op;

/// Adds `before` and `after` elements along an axis.
struct PadAttrs {
  int axis = 0;
  std::int64_t before = 0, after = 0;
  double value = 0;
  std::optional<Dim> to;
  template <class F>
  static void fields(F&& f) {
    f("axis", &PadAttrs::axis);
    f("before", &PadAttrs::before);
    f("after", &PadAttrs::after);
    f("value", &PadAttrs::value);
    f("to", &PadAttrs::to);
  }
};
extern const Op pad_op;

/// Attributes of shift(), below.
struct ShiftAttrs {
  int axis = 0;
  Dim to{0};
  double value = 0;  ///< for positions outside x
  template <class F>
  static void fields(F&& f) {
    f("axis", &ShiftAttrs::axis);
    f("to", &ShiftAttrs::to);
    f("value", &ShiftAttrs::value);
  }
};
extern const Op shift_op;

struct ReverseAttrs {
  int axis = 0;
  /// True if lengths of other dims over this axis no longer belong to its rows. The vjp then keeps
  /// elements that the type counts as padding.
  bool is_shown = false;
  template <class F>
  static void fields(F&& f) {
    f("axis", &ReverseAttrs::axis);
    f("is_shown", &ReverseAttrs::is_shown);
  }
};
extern const Op reverse_op;

/// Returns elements begin..end-1 of a named or plain axis, for vjps: ignores padding, and negative
/// positions count from the extent.
Tensor slice_positions(const Tensor& x, SliceAttrs attrs);
/// Throws DTypeError if a tensor of this type cannot hold the value.
void check_fits(std::string_view op, double value, const TensorType& x);
/// Slice or reverse a tensor without clear_padding; padding keeps its values.
Tensor slice_shown(const Tensor& x, int axis, std::int64_t begin, std::optional<std::int64_t> end,
                   std::optional<Dim> to);
Tensor reverse_shown(const Tensor& x, int axis);

/// Moves elements along an axis, each entry by its own offset: result[p] = x[p + offset], or
/// `value` outside x.
///
/// offsets: i32 over some dims of x other than the axis. to: the axis' dim in the result.
Tensor shift(const Tensor& x, const Tensor& offsets, int axis, const Dim& to, double value = 0);

/// Returns x with other named dims, axis by axis. Each entry keeps its first elements, followed by
/// zeros if a dim is longer.
Tensor resized(const Tensor& x, const Dims& dims);

}  // namespace reel
