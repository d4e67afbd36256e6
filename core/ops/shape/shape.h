// core/ops/shape/shape.h — ops that arrange the same elements differently.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "reel/core/base/visibility.h"
#include "reel/core/op/attrs.h"
#include "reel/core/op/op.h"

namespace reel {

struct TransposeAttrs {
  std::vector<int> order;  ///< result axis i is axis order[i] of x
  template <class F>
  static void fields(F&& f) {
    f("order", &TransposeAttrs::order);
  }
};
extern const Op transpose_op;

struct ReshapeAttrs {
  std::vector<std::int64_t> sizes;  ///< plain; one may be -1
  std::optional<Dims> dims;         ///< or these
  bool reads_shape = false;  ///< see reads_shape(); follows from the operand, so it is no field
  template <class F>
  static void fields(F&& f) {
    f("sizes", &ReshapeAttrs::sizes);
    f("dims", &ReshapeAttrs::dims);
  }
};
extern const Op reshape_op;
/// Returns the first operand with the dims of the second one. Reads only the shape of the second.
extern const Op reshape_like_op;
/// Returns attributes of a reshape to the dims of `result` with `axis` open, so that it takes any
/// number of rows. Returns null if another size is unknown.
REEL_API AttrsRef with_open_axis(const TensorType& result, int axis);

struct ExpandAttrs {
  std::vector<int> from;  ///< for every result axis the axis of x, or -1; axes of x that are not
                          ///< listed have one element
  Dims added;             ///< the dims of the result axes that are -1, in order
  template <class F>
  static void fields(F&& f) {
    f("from", &ExpandAttrs::from);
    f("added", &ExpandAttrs::added);
  }
};
extern const Op expand_op;

/// Renames an axis; the elements stay the same.
extern const Op rename_op;
struct RenameAttrs {
  int axis = 0;
  Dim to{0};
  template <class F>
  static void fields(F&& f) {
    f("axis", &RenameAttrs::axis);
    f("to", &RenameAttrs::to);
  }
};

/// Returns true if a transpose to this order moves axes of one element only.
bool keeps_layout(const std::vector<int>& order, const TensorType& x);
/// Returns true if expand to `out` leaves the elements where they are: it repeats and moves none.
bool only_adds_ones(const ExpandAttrs& attrs, const TensorType& out);

/// Reshapes x alone, without the lengths that run over its axes.
Tensor reshape_to(const Tensor& x, ReshapeAttrs attrs);
/// Renames an axis of x alone, without the lengths that run over it.
Tensor renamed(const Tensor& x, int axis, const Dim& to);
/// Transposes by positions; returns x itself if they are in order.
Tensor transposed(const Tensor& x, std::vector<int> order);
/// Returns x with an axis moved to the front.
Tensor with_axis_first(const Tensor& x, int axis);
/// Returns x with its first axis moved to a place: the inverse of with_axis_first.
Tensor with_first_axis_at(const Tensor& x, int axis);

/// Implements the kernel of ops that give the same elements other dims.
REEL_API void same_elements(KernelArgs& a);
/// Implements the vjp of such an op if only a run determines the sizes of its operand. Reads the
/// operand.
REEL_API void reshape_to_input(Vjp& at);

}  // namespace reel
