// core/ops/shape.h — ops that arrange the same elements otherwise.
#pragma once

#include <vector>

#include "reel/core/attrs.h"
#include "reel/core/op.h"

namespace reel {

extern const Op expand_op;

/// Another name for an axis: the same elements.
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

/// transpose by positions; x itself where they are in order.
Tensor transposed(const Tensor& x, std::vector<int> order);

// Of ops that put the same elements under other dims: the kernel; and the vjp where
// plain sizes of x are known to a run only, which asks x for them.
void same_elements(KernelArgs& a);
void same_elements_unknown_vjp(Vjp& at);
constexpr Op same_elements_unknown(std::string_view name, TypeRule type, OpSamples (*samples)()) {
  return Op{.name = name,
            .type = type,
            .kernel = same_elements,
            .storage = OpStorage::input,
            .vjp = same_elements_unknown_vjp,
            .reads = {.inputs = 0b1},
            .samples = samples};
}

}  // namespace reel
