// core/ops/shape/join.h — helpers and ops that join tensors and take them apart.
#pragma once

#include <optional>
#include <string_view>

#include "reel/core/op/op.h"

namespace reel {

/// For type rules: returns the dims that all inputs share, except for one axis (-1: none). An
/// unknown size is taken from another input. Throws ShapeError or DTypeError if inputs differ.
Dims shared_dims(const TypeArgs& a, int axis);

/// For vjps: return the cotangents of all outputs; add one cotangent to each input.
Tensors cotangents(Vjp& at);
void add_parts(Vjp& at, const Tensors& parts);

/// Throws ArgumentError if there are none, or if one is empty.
void need_tensors(const Tensors& tensors, std::string_view op);
/// Returns x with its dims in the order of `dims`; the dim at `axis` (-1: none) may be another one.
/// Returns a tensor with different dims unchanged: the type rule then reports the error.
Tensor in_order(const Tensor& x, const Dims& dims, int axis);

/// Concatenates tensors along an axis.
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

/// The inverse: cuts the axis into parts with these dims.
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

/// Splits an axis into equal parts.
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
/// Unstacks a tensor without clear_padding; padding keeps its values.
Tensors unstack_shown(const Tensor& x, int axis);

}  // namespace reel
