// trace/passes/analysis/views.h — makes_view, when an output of an op lies in the memory of its
// input.
#pragma once

#include "reel/core/op/op.h"

namespace reel {

/// Returns false if outputs of the op are certain to have memory of their own: its storage is
/// OpStorage::own, or it is OpStorage::input and the kernel copies for these types. A reduction
/// over more than one element, a transpose that moves elements and a slice of inner axes copy.
///
/// x: the first input; out: the first output. Requires: sizes of both are known.
bool makes_view(const Op& op, const Attrs* attrs, const TensorType& x, const TensorType& out);

}  // namespace reel
