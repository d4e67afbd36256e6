// core/ops/slice.h — ops that take, add or move elements along one axis.
#pragma once

#include <optional>

#include "reel/core/attrs.h"
#include "reel/core/op.h"

namespace reel {

/// Positions begin..end-1 of an axis, as Python counts them; the result calls the axis `to`.
struct SliceAttrs {
  int axis = 0;
  std::int64_t begin = 0;
  std::optional<std::int64_t> end;
  std::optional<Dim> to;  ///< none for a plain axis
  template <class F>
  static void fields(F&& f) {
    f("axis", &SliceAttrs::axis);
    f("begin", &SliceAttrs::begin);
    f("end", &SliceAttrs::end);
    f("to", &SliceAttrs::to);
  }
};
extern const Op slice_op;
/// slice of a tensor with plain sizes that only a run knows: its vjp asks x for them.
extern const Op slice_unknown_op;
/// The inverse: zeros, where x lies at begin..end-1 of an axis with dim `to`; without one, of the
/// dims of a second input.
extern const Op unslice_op;

/// So many elements more along an axis.
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

/// shift, below.
struct ShiftAttrs {
  int axis = 0;
  Dim to{0};
  double value = 0;  ///< where nothing comes from
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
  /// Lengths of other dims over this one are not those of the rows any more: what the type takes
  /// for padding counts.
  bool is_shown = false;
  template <class F>
  static void fields(F&& f) {
    f("axis", &ReverseAttrs::axis);
    f("is_shown", &ReverseAttrs::is_shown);
  }
};
extern const Op reverse_op;

/// Elements begin..end-1 of a named or plain axis; in vjps: without looking at padding, and
/// negative positions count from the extent.
Tensor slice_positions(const Tensor& x, SliceAttrs attrs);
/// Throws DTypeError if a tensor of this type cannot hold the value.
void check_fits(std::string_view op, double value, const TensorType& x);
/// slice and reverse of what needs no clear_padding.
Tensor slice_shown(const Tensor& x, int axis, std::int64_t begin, std::optional<std::int64_t> end,
                   std::optional<Dim> to);
Tensor reverse_shown(const Tensor& x, int axis);

/// Moves elements along an axis, each entry by its own offset: result[p] = x[p + offset], or
/// `value` outside x.
///
/// offsets: i32 over some dims of x other than the axis; to: what the result calls the axis.
Tensor shift(const Tensor& x, const Tensor& offsets, int axis, const Dim& to, double value = 0);

/// x with other named dims, axis by axis: of each entry the first elements, and zeros behind them
/// where a dim is longer.
Tensor resized(const Tensor& x, const Dims& dims);

}  // namespace reel
