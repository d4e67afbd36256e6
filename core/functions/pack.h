// core/functions/pack.h — the elements that a mask selects one behind another, and back.
#pragma once

#include <optional>

#include "reel/core/axis.h"
#include "reel/core/functions/operands.h"
#include "reel/core/tensor.h"

namespace reel {

// A mask is boolean, over dims that x has; with plain sizes over the leading axes of x. What is
// padding in the mask or in x is never selected. Sizes depend on values: in a trace they are known
// to its runs only.

/// The elements of x where the mask holds, along `axes` of the mask (all of them by default), in
/// row-major order of the axes as listed: they become one axis, where the first of them stands.
///
/// Dims of the mask that are not listed stay, and each entry of theirs selects for itself: the new
/// dim is then ragged over them. `to` is the new dim, by default made fresh and called "packed"; an
/// entry that does not select as many elements as `to` is long is a ShapeError. A dim of x whose
/// lengths run over a packed dim has those of the selected elements. Source: RETURNN's
/// masked_select.
Tensor pack(const Tensor& x, const Tensor& mask, const Axes& axes, std::optional<Dim> to = {});
Tensor pack(const Tensor& x, const Tensor& mask);
/// The valid elements along named axes: f32[batch,time[batch],f] packed along {batch, time} is
/// f32[packed,f] without padding. Source: RETURNN's pack_padded.
Tensor pack(const Tensor& x, const Axes& axes, std::optional<Dim> to = {});

/// The inverse: the packed axis of x becomes `axes` of the mask again, in their place; the elements
/// that the mask selects come from x in order, the others from `backup` (of the result's dims, or
/// fewer). unpack(pack(x, mask), 0, mask, x) is x.
Tensor unpack(const Tensor& x, const Axis& packed, const Tensor& mask, const Axes& axes,
              const Arg& backup = 0);
Tensor unpack(const Tensor& x, const Axis& packed, const Tensor& mask);
Tensor unpack(const Tensor& x, const Axis& packed, const Tensor& mask, const Tensor& backup);
/// The packed axis becomes these dims, its elements the valid ones: inverse of pack(x, dims).
Tensor unpack(const Tensor& x, const Axis& packed, const Dims& dims, const Arg& backup = 0);

}  // namespace reel
