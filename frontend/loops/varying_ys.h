// frontend/loops/varying_ys.h — ys of a scan that have dims of another size in every iteration, and
// their stack, in which these dims are ragged over the iterations.
#pragma once

#include <cstddef>
#include <vector>

#include "reel/core/dims/dim_env.h"
#include "reel/frontend/loops/scan_leaves.h"

namespace reel {

/// Adds an axis of a leaf. Returns false if the list has it.
bool add_varying(VaryingYs& ys, std::size_t leaf, int axis);
/// Returns the entry of a leaf, or null.
const VaryingY* find_varying(const VaryingYs& ys, std::size_t leaf);

/// The dims of the stack's lengths along an axis of y: the time is left out. They are the entries
/// that y has, then the dims of the lengths in one iteration.
Dims varying_length_dims(const Dims& entry_dims, const Dims& of_y, const Dims& of_lengths);

/// Throws ShapeError if the lengths of a varying dim run over another varying dim.
void check_varying(const ScanPlan& plan, const TensorType& y, const VaryingY& varying);

// ---- Eager mode ---------------------------------------------------------------------------------

/// Returns y with static dims of `first` in place of dims of the same name and size, at the same
/// axes, that the body makes in each iteration.
Tensor with_static_dims_of(const TensorType& first, Tensor y);
/// Returns y with its axes in the order of the first iteration's y, if it differs from it in
/// varying dims alone; otherwise y itself.
Tensor in_order_of_first(const Tensor& y, const TensorType& first, const VaryingY& varying);
/// Returns true if the types differ in varying dims alone.
bool differs_in_varying(const TensorType& y, const TensorType& first, const VaryingY& varying);
/// Returns the ys of all iterations stacked along `time`. running: the entries that run in each
/// iteration, or empty Tensors. first: the type of y if there are no iterations.
Tensor stack_varying(const ScanPlan& plan, const Tensors& ys, const Tensors& running,
                     const TensorType& first, const VaryingY& varying, const Dim& time);

// ---- Traces -------------------------------------------------------------------------------------

// The body returns the elements of y as a plain vector, and the lengths and extents of its dims.
// The loop makes a list of the vectors, and stacks the lengths. Behind the loop, the vectors are
// joined and their elements gathered:
//
//   y: [batch, hist]       becomes  %1 = reshape(y, {-1}), %2 = lengths of hist, %3 = size of hist
//   behind the loop: gather(concat(%1), (begin of the iteration) + (place in the iteration))

/// Returns the leaves that the body returns instead of y: the vector, then i32 tensors over
/// `entry_dims` and more. Requires check_varying.
Tensors body_terms(const Tensor& y, const VaryingY& varying, const Dims& entry_dims);
/// Returns their number.
std::size_t term_count(const TensorType& y, const VaryingY& varying);
/// Returns the stack of y. terms: the loop's results for body_terms(): a list, then stacks along
/// `time`. y: its type in the body. outside: dims of the body, and the same dims outside.
Tensor stack_terms(const Tensors& terms, const TensorType& y, const VaryingY& varying,
                   const Dims& entry_dims, DimEnv outside, const Dim& time);

}  // namespace reel
