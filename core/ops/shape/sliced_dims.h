// core/ops/shape/sliced_dims.h — ragged dims of slices: each word has its own number of letters.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "reel/core/dims/dim_slices.h"
#include "reel/core/types/tensor.h"

namespace reel {

/// Returns a Dim with these lengths that is a slice of `whole`.
///
/// key: if it is not empty, the same whole dim and key give the same Dim while that Dim lives. In a
/// trace this holds inside of the graph that the Dim was made for.
Dim slice_of_dim(const Dim& whole, const Tensor& lengths, const SliceKey& key = {});

/// Returns the number of an index that is a scalar and not negative, if it is known.
std::optional<std::int64_t> element_of(const Tensor& index);
/// Adds an integer or boolean tensor to a key: in a trace the value that it stands for, otherwise
/// its dims and its numbers.
void add_value(SliceKey& key, const Tensor& value);

/// Cuts operands to slices of their dims. An operand may have a dim, but lack dims of its lengths:
/// if another operand has a slice of this dim, the first operand gets the slice too.
///
/// Returns false if no operand was cut.
bool meet_slices(std::span<Tensor* const> operands);

}  // namespace reel
