// core/ops/loop/loop_types.h — types and dims of a loop's leaves, inside and outside of its
// body.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "reel/core/base/visibility.h"
#include "reel/core/ops/loop/loop_attrs.h"

namespace reel {

/// Returns the dim along which slices of a loop run. Lists have none: returns Dim(0).
inline Dim leading_dim(const TensorType& slices) {
  return slices.is_list() ? Dim(0) : slices.dims()[0];
}

/// Returns the type of one slice, as the body takes it.
REEL_API TensorType slice_type(const TensorType& slices);
/// Returns the type of the slices of one chunk, with the dim `chunk` in front; a list stays a list.
TensorType chunk_type(const TensorType& slices, const Dim& chunk);
/// Returns the type of one step, given the type of a slice or of a stack's term in the body.
TensorType remove_chunk_dim(const LoopAttrs& attrs, const TensorType& in_body);
/// Returns the element type of a stack that is a list, one step or one checkpoint, given the type
/// of the body's term.
TensorType element_of_stack(const LoopAttrs& attrs, std::size_t stack, const TensorType& in_body);

/// True if the graph's own records make `dim`, or a dim that it is computed from, and only a run
/// determines its size.
bool makes_dim(const Graph& graph, const Dim& dim);

/// Returns the attributes of the same loop over some of its steps, for the body of an enclosing
/// graph. Sets within_chunk and puts the dim `chunk` in front of its stacks.
LoopAttrs make_chunk_loop(const LoopAttrs& attrs, const Dim& chunk);

/// Returns the dims of the body's carries that iterations change.
Dims changing_dims(const LoopAttrs& attrs);
/// Returns, by carry, true if the carry has any of the changing_dims().
std::vector<std::uint8_t> carries_with_changing_dims(const LoopAttrs& attrs);

/// Returns the index of the first slice that is no list; the loop runs along its dim. Returns
/// nullopt if all slices are lists.
std::optional<std::size_t> first_dense_slice(const LoopAttrs& attrs,
                                             std::span<const TensorType> inputs);

/// Returns the dims outside the loop for the dims of its body. inputs: types of the op's inputs.
REEL_API DimEnv body_env(const LoopAttrs& attrs, std::span<const TensorType> inputs);
/// Returns the dims outside the loop for the dims of its condition.
REEL_API DimEnv cond_env(const LoopAttrs& attrs, std::span<const TensorType> inputs);

}  // namespace reel
