// core/ops/join.h — what ops that join tensors and take them apart have in common.
#pragma once

#include <optional>
#include <string_view>

#include "reel/core/op.h"

namespace reel {

/// For type rules: the dims that all inputs have, one axis aside (-1: none); what one does not know
/// another may. Throws ShapeError or DTypeError when they differ.
Dims shared_dims(const TypeArgs& a, int axis);

/// For vjps: the cotangents of all outputs, and one for each input.
Tensors cotangents(Vjp& at);
void add_parts(Vjp& at, const Tensors& parts);

/// Throws ArgumentError when there are none.
void need_tensors(const Tensors& tensors, std::string_view op);
/// x with its dims in the order of `dims`, of which the one at `axis` (-1: none) may be another dim
/// of x. A tensor that has other dims comes back as it is: the type rule says what is wrong.
Tensor in_order(const Tensor& x, const Dims& dims, int axis);

/// One tensor after the other along an axis.
struct ConcatAttrs {
  int axis = 0;
  std::optional<Dim> to;  ///< none for a plain axis
  template <class F>
  static void fields(F&& f) {
    f("axis", &ConcatAttrs::axis);
    f("to", &ConcatAttrs::to);
  }
};
extern const Op concat_op;

/// The inverse: parts of those dims.
struct UnconcatAttrs {
  int axis = 0;
  Dims parts;
  template <class F>
  static void fields(F&& f) {
    f("axis", &UnconcatAttrs::axis);
    f("parts", &UnconcatAttrs::parts);
  }
};
extern const Op unconcat_op;

/// Equal parts along an axis.
struct SplitAttrs {
  int axis = 0;
  int parts = 1;
  std::optional<Dim> part;  ///< none for a plain axis
  template <class F>
  static void fields(F&& f) {
    f("axis", &SplitAttrs::axis);
    f("parts", &SplitAttrs::parts);
    f("part", &SplitAttrs::part);
  }
};
extern const Op split_op;

extern const Op stack_op;
extern const Op unstack_op;
/// unstack of what needs no clear_padding.
Tensors unstack_shown(const Tensor& x, int axis);

}  // namespace reel
