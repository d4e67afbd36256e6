// trace/executors/loop/loop_types.h — types of loop values that are known only while a loop runs.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "reel/core/graph/passes/dim_meetings.h"
#include "reel/core/ops/loop/loop.h"
#include "reel/core/types/tensor.h"

namespace reel {

/// Returns a type of the body for a loop that ran zero iterations. Sizes that only an iteration
/// would determine are zero.
///
/// inputs: types of the loop's inputs.
TensorType type_without_iterations(const LoopAttrs& attrs, std::span<const TensorType> inputs,
                                   const TensorType& type);

/// Returns the slices that a loop reads from a list. Missing elements are zeros: a cotangent list
/// ends at the last element that was read.
///
/// slice: type of a slice in the body.
/// limit: maximum number of iterations; INT64_MAX is replaced by the length of the list.
Tensors slices_of_list(const Tensor& list, const TensorType& slice, std::int64_t& limit);

/// Returns the value of one time step from a tensor that stands for saved steps, with the dims of
/// its type. A recomputed iteration may have made these dims anew (name_alike()). Requires that
/// ResidualSource::need() was called for the position.
Tensor step_of_residual(const Tensor& slices, std::int64_t position);

/// Returns elements [first, first + count) of a list, cut at its end. all: the list's elements.
Tensor part_of_list(const Tensor& list, const Tensors& all, std::int64_t first, std::int64_t count);

/// True if the dims have the same size and lengths, though iterations may have made each anew.
/// Ragged dims of unknown lengths are alike only if they are one Dim.
bool are_alike(const Dim& a, const Dim& b);

/// Returns the indices of the slices that are list elements with dims made by the saving iteration,
/// if the body names these dims.
std::vector<std::size_t> slices_with_own_dims(const LoopAttrs& attrs,
                                              std::span<const TensorType> inputs);
/// Dims of a body that an iteration may make twice.
struct DimsMadeTwice {
  std::vector<std::pair<Dim, Dim>> pairs;
  DimMeetings meetings;  ///< of the body
};
/// Returns pairs of dims of one name, if no value has both dims of a pair, and if no other input or
/// output of the body names either. An iteration that a rule runs again makes its dims
/// twice, and a residual may have either.
DimsMadeTwice dims_made_twice(const LoopAttrs& attrs, const std::vector<std::size_t>& slices);
/// Gives such slices the dims of the body. A recomputed step makes its dims anew, so that slices
/// and carries may come with different dims. In the body each is one dim.
///
/// twice: dims_made_twice(); each pair that is alike becomes one dim. inputs: inputs of the body;
/// changed. env: its dims; bound.
void name_alike(const LoopAttrs& attrs, const std::vector<std::size_t>& slices,
                DimsMadeTwice& twice, Tensors& inputs, DimEnv& env);
/// Gives the types of a loop's operands the dims of the body, also types of lists of such elements.
void name_alike(const LoopAttrs& attrs, std::vector<TensorType>& operands);

/// Returns the common type of the elements: plain sizes that differ become unknown. Requires that
/// at least one element is defined.
TensorType common_type(const Tensors& elements);
/// Returns the common type of two types.
TensorType common_type(const TensorType& a, const TensorType& b);

/// Returns the bytes of the tensor's elements. For a list: the sum over its elements. For a tensor
/// that stands for saved steps: the bytes that these hold in memory.
std::int64_t bytes_of(const Tensor& tensor);

/// Returns the bytes of a tensor; 0 if a size is unknown.
std::int64_t dense_bytes(const TensorType& type);
/// Returns the sum over the types.
std::int64_t dense_bytes(const std::vector<TensorType>& types);

/// Returns the number of time steps if the loop runs along a dim of known size.
std::optional<std::int64_t> steps_of(const LoopAttrs& attrs, std::span<const TensorType> in);

}  // namespace reel
