// core/ops/draws.h — ops that draw random numbers, each element by its number and a key.
#pragma once

#include <cstdint>

#include "reel/core/attrs.h"
#include "reel/core/graph.h"
#include "reel/core/op.h"
#include "reel/core/tensor_type.h"

namespace reel {

struct DrawAttrs {
  TensorType type{f32};
  std::int64_t number = 0;
  double low = 0, high = 1;  ///< of truncated_normal the mean and the standard deviation
  template <class F>
  static void fields(F&& f) {
    f("type", &DrawAttrs::type);
    f("number", &DrawAttrs::number);
    f("low", &DrawAttrs::low);
    f("high", &DrawAttrs::high);
  }
};
extern const Op random_uniform_op, random_normal_op, truncated_normal_op;
/// One of these three.
bool is_draw(const Op& op);

/// Some rows, along an axis, of what one of these ops draws: each element has the number that it
/// has among all of them. The second input is the rows' numbers and, behind them, how many there
/// are in all; of a plain axis it says, too, how many are drawn.
struct DrawRowsAttrs : DrawAttrs {
  int axis = 0;
  int kind = 0;  ///< which of the three
  template <class F>
  static void fields(F&& f) {
    DrawAttrs::fields(f);
    f("axis", &DrawRowsAttrs::axis);
    f("kind", &DrawRowsAttrs::kind);
  }
};
extern const Op draw_rows_op;
/// Those for a record of one of the three ops.
DrawRowsAttrs draw_rows_attrs(const OpRecord& draw, int axis);

}  // namespace reel
