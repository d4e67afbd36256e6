// core/ops/shape/padding_runs.h — for_each_padding(), a walk over the padding of ragged dims.
#pragma once

#include "reel/core/ops/shape/dims.h"
#include "reel/core/ops/shape/new_dims.h"
#include "reel/core/ops/shape/strided.h"
#include "reel/core/types/tensor.h"

namespace reel {

/// Calls fn(first, count) for every run of padding elements of the type.
template <class Fn>
void for_each_padding(const TensorType& type, Fn&& fn) {
  for (int axis = 0; type.is_ragged() && axis < type.rank(); ++axis) {
    if (!is_masked(type, axis)) continue;
    const AxisView view = view_axis(type, axis);
    for_each_entry(
        type, axis, Tensor(dim_at(type, axis).node()->lengths),
        [&](std::int64_t outer, std::int64_t first, std::int64_t count, std::int64_t length) {
          for (std::int64_t p = length; p < view.size; ++p)
            fn((outer * view.size + p) * view.inner + first, count);
        });
  }
}

}  // namespace reel
