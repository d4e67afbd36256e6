// core/ops/shape/stride.h — ops that take every step-th element of an axis, and their inverse.
#pragma once

#include <optional>

#include "reel/core/op/op.h"

namespace reel {

/// Takes positions 0, step, 2·step, ... of an axis, which becomes `to`.
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
/// stride of a tensor with plain sizes that only a run determines: its vjp reads x for them.
extern const Op stride_unknown_op;
/// The inverse: writes x into every step-th position of zeros, along an axis with dim `to`. Without
/// `to`, the result has the dims of a second input.
extern const Op unstride_op;

}  // namespace reel
