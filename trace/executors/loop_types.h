// trace/executors/loop_types.h — types that only a run of a loop tells.
#pragma once

#include "reel/core/ops/loop.h"

namespace reel {

/// A type of the body where no iteration ran, given the types of the loop's inputs: sizes that only
/// an iteration would know count as zero.
TensorType type_without_iterations(const LoopAttrs& attrs, std::span<const TensorType> inputs,
                                   const TensorType& type);

/// What the elements of a list have in common: plain sizes that differ are unknown. One of them at
/// least is defined.
TensorType common_type(const Tensors& elements);

}  // namespace reel
