// core/ops/creation/draws.h — ops that draw random numbers; each element depends on its number and
// a key.
#pragma once

#include <cstdint>
#include <span>

#include "reel/core/graph/graph.h"
#include "reel/core/op/attrs.h"
#include "reel/core/op/op.h"
#include "reel/core/types/tensor_type.h"

namespace reel {

struct DrawAttrs {
  TensorType type{f32};
  std::int64_t number = 0;
  double low = 0, high = 1;  ///< for truncated_normal: the mean and the standard deviation
  template <class F>
  static void fields(F&& f) {
    f("type", &DrawAttrs::type);
    f("number", &DrawAttrs::number);
    f("low", &DrawAttrs::low);
    f("high", &DrawAttrs::high);
  }
};
extern const Op random_uniform_op, random_normal_op, truncated_normal_op;
/// True for the three ops above.
bool is_draw(const Op& op);

/// Draws some rows, along an axis, of a tensor of these ops. Each element has its number in the
/// whole tensor. The second input holds the numbers of the rows, the third the number of all rows.
/// For a plain axis the second one also determines the size of the result.
struct DrawRowsAttrs : DrawAttrs {
  int axis = 0;
  int kind = 0;  ///< index of the op among the three
  template <class F>
  static void fields(F&& f) {
    DrawAttrs::fields(f);
    f("axis", &DrawRowsAttrs::axis);
    f("kind", &DrawRowsAttrs::kind);
  }
};
extern const Op draw_rows_op;
/// Returns the attributes of draw_rows_op that draws rows of the given record.
DrawRowsAttrs draw_rows_attrs(const OpRecord& draw, int axis);
/// The inputs of draw_rows_op.
struct DrawRowsInputs {
  ValueId key, numbers, count;
};
/// Appends the form of a draw that takes the numbers of its rows. It makes the values `out`.
void append_draw_rows(Graph& to, const OpRecord& draw, int axis, const DrawRowsInputs& in,
                      std::span<const ValueId> out);

}  // namespace reel
