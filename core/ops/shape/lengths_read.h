// core/ops/shape/lengths_read.h — dims with lengths that an op reads.
#pragma once

#include <optional>
#include <utility>

#include "reel/core/base/visibility.h"
#include "reel/core/op/attrs.h"
#include "reel/core/types/dim.h"
#include "reel/core/types/fwd.h"

namespace reel {

/// Returns an op without inputs, and attributes with which its result is the lengths of a dim (i32,
/// over its length dims).
std::pair<const Op*, AttrsRef> op_of_lengths(const Dim& dim);
/// Returns the dim if the op returns a dim's lengths, as numbers (dim_lengths) or as a mask (mask).
/// Returns nothing for other ops.
REEL_API std::optional<Dim> dim_read_by(const Op& op, const Attrs* attrs);

}  // namespace reel
