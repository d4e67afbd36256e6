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
  template <class F>
  static void fields(F&& f) {
    f("sizes", &ReshapeAttrs::sizes);
    f("dims", &ReshapeAttrs::dims);
  }
};
extern const Op reshape_op;
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

/// Renames an axis of x alone, without the lengths that run over it.
Tensor renamed(const Tensor& x, int axis, const Dim& to);
/// Transposes by positions; returns x itself if they are in order.
Tensor transposed(const Tensor& x, std::vector<int> order);
/// Returns x with an axis moved to the front.
Tensor with_axis_first(const Tensor& x, int axis);
/// Returns x with its first axis moved to a place: the inverse of with_axis_first.
Tensor with_first_axis_at(const Tensor& x, int axis);

// For ops that give the same elements other dims: the kernel, and the vjp for plain sizes of x that
// only a run determines. The vjp reads x for them.
REEL_API void same_elements(KernelArgs& a);
REEL_API void same_elements_unknown_vjp(Vjp& at);
constexpr Op same_elements_unknown(std::string_view name, TypeRule type, OpSamples (*samples)()) {
  return Op{.name = name,
            .type = type,
            .kernel = same_elements,
            .storage = OpStorage::input,
            .vjp = same_elements_unknown_vjp,
            .reads = {.inputs = 0b1},
            .samples = samples,
            .fails = never_fails};
}

}  // namespace reel
