// core/functions/updates.h — tensors with some elements replaced.
#pragma once

#include <cstdint>

#include "reel/core/base/visibility.h"
#include "reel/core/dims/axis.h"
#include "reel/core/functions/operands.h"
#include "reel/core/types/tensor.h"

REEL_API_BEGIN
namespace reel {

/// Returns x with `value` at `index` along an axis: it replaces the elements that
/// gather(x, index, axis) reads.
///
/// index: i32 or i64. A scalar names one place. Named dims of the index that x has are matched
/// entry by entry, so every entry may have its own place; other dims stand for several places.
/// value: a number, or the dims that gather would return (named ones in any order), of x's dtype.
/// Negative indices count from the end. If several indices name one place, the last value stays;
/// indices of different entries never name one place. At most one dim of the
/// index stands for places if either has ragged dims or sizes that only a run knows, or x has dims
/// of the index; then no lengths of `value` run over it, and padding of the index replaces nothing.
///
/// Written in place if x is a temporary with a single reference, and if no dim of x is ragged and
/// none is a dim of the index; also if the dims of the index are those of x in front of the axis,
/// with known sizes, except in the body of a traced loop if x has fewer than 8,192 elements, and in
/// loops with entries that finish. The state of a jitted loop is such a temporary if only this call
/// reads it, the state of an eager loop if the body takes it by value and moves it. Gradients: of x
/// without the replaced elements, of the values that stayed. Throws IndexError for an index out of
/// range, ShapeError or DTypeError for other types. Source: jax.numpy's x.at[i].set(value).
Tensor set_at(Tensor x, const Arg& index, const Arg& value, const Axis& axis = 0);

/// Returns x with `value` at begin, begin + 1, ... along an axis, as many elements as value has
/// there. begin: a number or an integer scalar; negative ones count from the end. value: plain dims
/// of x with another size at the axis; for named dims, the axis is given by its position, and
/// `value` has any other dim there. In place as set_at. Throws as set_at.
Tensor set_slice(Tensor x, const Arg& begin, const Tensor& value, const Axis& axis = 0);

}  // namespace reel
REEL_API_END
