// core/ops/stride.h — ops that take every step-th element of an axis, and put them back.
#pragma once

#include <optional>

#include "reel/core/op.h"

namespace reel {

/// Positions 0, step, 2·step, ... of an axis; the result calls the axis `to`.
struct StrideAttrs {
  int axis = 0;
  std::int64_t step = 1;
  std::optional<Dim> to;  ///< none for a plain axis
  template <class F>
  static void fields(F&& f) {
    f("axis", &StrideAttrs::axis);
    f("step", &StrideAttrs::step);
    f("to", &StrideAttrs::to);
  }
};
extern const Op stride_op;
/// stride of a tensor with plain sizes that only a run knows: its vjp asks x for them.
extern const Op stride_unknown_op;
/// The inverse: zeros, where x lies at every step-th position of an axis with dim `to`; without
/// one, of the dims of a second input.
extern const Op unstride_op;

}  // namespace reel
