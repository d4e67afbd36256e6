// core/functions/pack.h — packs the elements that a mask selects, and unpacks them.
#pragma once

#include <optional>

#include "reel/core/base/visibility.h"
#include "reel/core/dims/axis.h"
#include "reel/core/functions/operands.h"
#include "reel/core/types/tensor.h"

REEL_API_BEGIN
namespace reel {

// A mask is boolean, over dims that x has; with plain sizes, over the leading axes of x. Padding of
// the mask or of x is never selected. Sizes depend on values: a trace does not know them, only its
// runs do.

/// Returns the elements of x where the mask is true, along `axes` of the mask (default: all), in
/// row-major order of the axes as listed. One new axis replaces them, at the position of the first.
///
/// Each entry of the mask's other dims selects for itself; the new dim is then ragged over them.
/// `to` is the new dim; default: a new one called "packed". Throws ShapeError if an entry selects
/// another number of elements than `to` has. A dim of x with lengths over a packed dim gets
/// the lengths of the selected elements. Source: RETURNN's masked_select.
Tensor pack(const Tensor& x, const Tensor& mask, const Axes& axes, std::optional<Dim> to = {});
Tensor pack(const Tensor& x, const Tensor& mask);
/// Returns the valid elements along named axes: f32[batch,time[batch],f] packed along {batch, time}
/// is f32[packed,f] without padding. Source: RETURNN's pack_padded.
Tensor pack(const Tensor& x, const Axes& axes, std::optional<Dim> to = {});

/// Returns the inverse of pack: `axes` of the mask replace the packed axis. Elements that the mask
/// selects come from x in order, the others from `backup`, which has the result's dims or fewer.
/// unpack(pack(x, mask), 0, mask, x) is x. Throws ShapeError or DTypeError if operands do not fit.
Tensor unpack(const Tensor& x, const Axis& packed, const Tensor& mask, const Axes& axes,
              const Arg& backup = 0);
Tensor unpack(const Tensor& x, const Axis& packed, const Tensor& mask);
Tensor unpack(const Tensor& x, const Axis& packed, const Tensor& mask, const Tensor& backup);
/// Returns the inverse of pack(x, dims): `dims` replace the packed axis, and its elements become
/// the valid elements.
Tensor unpack(const Tensor& x, const Axis& packed, const Dims& dims, const Arg& backup = 0);

}  // namespace reel
REEL_API_END
