// core/ops/shape/merge.h — ops that merge several axes into one, and split one into several.
#pragma once

#include <optional>

#include "reel/core/op/attrs.h"
#include "reel/core/op/op.h"

namespace reel {

struct MergeDimsAttrs {
  int axis = 0, count = 1;   ///< axes axis..axis+count-1
  std::optional<Dim> to;     ///< none for plain axes
  bool reads_shape = false;  ///< see reads_shape(); follows from the operand, so it is no field
  template <class F>
  static void fields(F&& f) {
    f("axis", &MergeDimsAttrs::axis);
    f("count", &MergeDimsAttrs::count);
    f("to", &MergeDimsAttrs::to);
  }
};
extern const Op merge_dims_op;

struct SplitDimAttrs {
  int axis = 0;
  Dims parts;  ///< one plain size may be unknown: the quotient of the axis' size and the others
  bool reads_shape = false;  ///< see reads_shape(); follows from the operand, so it is no field
  template <class F>
  static void fields(F&& f) {
    f("axis", &SplitDimAttrs::axis);
    f("parts", &SplitDimAttrs::parts);
  }
};
extern const Op split_dim_op;

/// Merges axes of x alone, without the lengths that run over them. to: the new dim; nullopt for
/// plain axes.
Tensor merged_axes(const Tensor& x, const std::vector<int>& axes, const std::optional<Dim>& to);

}  // namespace reel
