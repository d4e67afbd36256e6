// trace/executors/loop_types.h — types that only a run of a loop tells.
#pragma once

#include "reel/core/ops/loop.h"
#include "reel/core/tensor.h"

namespace reel {

/// A type of the body where no iteration ran, given the types of the loop's inputs: sizes that only
/// an iteration would know count as zero.
TensorType type_without_iterations(const LoopAttrs& attrs, std::span<const TensorType> inputs,
                                   const TensorType& type);

/// What a loop finds in a list that it runs along, where elements that nobody wrote are zeros: a
/// cotangent ends at the last element that somebody read. slice: as the body takes it; limit: how
/// many iterations there may be, INT64_MAX for as many as there are elements.
Tensors slices_of_list(const Tensor& list, const TensorType& slice, std::int64_t& limit);

/// The step at a position of slices that stand for steps, with the dims that their type has: an
/// iteration may have named these anew (name_alike). Requires that SavedSteps::need() has been
/// called for it.
Tensor step_of_saved(const Tensor& slices, std::int64_t position);

/// The elements of some steps, as far as there are any. all: those of the list.
Tensor part_of_list(const Tensor& list, const Tensors& all, std::int64_t first, std::int64_t count);

/// Slices of a loop that are elements of lists, whose dims may be those of the iteration that made
/// them: by number, of those where the body has names for them.
std::vector<int> slices_with_own_dims(const LoopAttrs& attrs, std::span<const TensorType> inputs);
/// What the body takes, where such slices may come from several runs of the step that made their
/// dims, as do the carries: a dim of the body is one in all of it. inputs: of the body; env: of it.
void name_alike(const LoopAttrs& attrs, const std::vector<int>& slices, Tensors& inputs,
                DimEnv& env);

/// What the elements of a list have in common: plain sizes that differ are unknown. One of them at
/// least is defined.
TensorType common_type(const Tensors& elements);
/// The same of two elements.
TensorType common_type(const TensorType& a, const TensorType& b);

/// The bytes of its elements; of a list, those of all its elements; of what stands for steps, those
/// that these hold in memory.
std::int64_t bytes_of(const Tensor& tensor);

}  // namespace reel
