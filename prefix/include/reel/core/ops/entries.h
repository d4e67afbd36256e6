// core/ops/entries.h — what a loop does about entries that have ended while others still run.
//
// `live` is a boolean mask over the loop's entry dims. A leaf that lacks some of them lives while
// any entry of those does (D10): its own mask is any(live) over what it lacks. A leaf that has none
// of them is shared, and always live.
#pragma once

#include <optional>

#include "reel/core/tensor.h"

namespace reel {

/// The mask of a leaf of that type, over those entry dims that it has; nothing for a shared leaf.
std::optional<Tensor> leaf_mask(const TensorType& type, const Tensor& live);
/// x, where ended entries show the values of the first live one.
Tensor fill_live(const Tensor& x, const Tensor& live);
/// The transposed of fill_live: what ended entries have is added to the first live one.
Tensor collect_live(const Tensor& x, const Tensor& live);
/// x with zeros for ended entries.
Tensor zero_ended(const Tensor& x, const Tensor& live);
/// What comes next for live entries, what was before for others.
Tensor keep_ended(const Tensor& next, const Tensor& before, const Tensor& live);
/// Whether a mask holds everywhere (eager values only).
bool all_live(const Tensor& live);
bool any_live(const Tensor& live);

}  // namespace reel
