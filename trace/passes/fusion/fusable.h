// trace/passes/fusion/fusable.h — which records fuse_pointwise() can fuse, for passes before it.
#pragma once

#include <cstdint>
#include <optional>

#include "reel/core/graph/graph.h"

namespace reel {

/// Returns true for element-wise ops, recurrences, and ops that repeat elements along new axes.
bool is_fusable(const OpRecord& record);
/// Returns true for an op that repeats elements along new axes, which costs nothing in a fused op.
bool repeats_elements(const OpRecord& record);
/// Returns true for a recurrence that begins with the last time step, false for one that begins
/// with the first, nothing for other ops. Recurrences of one fused op begin with the same one.
std::optional<bool> walks_back(const OpRecord& record);
/// Returns the number of elements, where sizes that only a run tells count as one.
std::int64_t least_elements(const TensorType& type);

}  // namespace reel
