// trace/passes/fusion/tile_ops.h — which ops a tile program has, for the passes that fuse them and
// for the program.
#pragma once

#include <cstdint>
#include <optional>

#include "reel/core/graph/graph.h"

namespace reel {

/// An op of a tile program, by its effect on elements.
enum class TileOp : std::uint8_t {
  none,           ///< cannot be fused
  element,        ///< element-wise
  sum,            ///< over axes; of a row in a tile program
  split,          ///< selects elements
  concat,         ///< places elements
  spread,         ///< repeats elements along new axes
  expand,         ///< repeats elements along new axes; may move axes
  scan,           ///< a linear recurrence
  scan_gradient,  ///< its gradient
};
TileOp tile_op(const Op& op);

/// Returns true for a recurrence and for its gradient.
bool is_scan(TileOp op);
/// Returns true for an op that repeats elements along new axes, which costs nothing in a fused op.
bool repeats_elements(TileOp op);

/// Returns true for element-wise ops, recurrences, and ops that repeat elements along new axes.
bool is_fusable(const OpRecord& record);
/// Returns true for a recurrence that begins with the last time step, false for one that begins
/// with the first, nothing for other ops. Recurrences of one fused op begin with the same one.
std::optional<bool> walks_back(const OpRecord& record);
/// Returns the number of elements, where sizes that only a run tells count as one.
std::int64_t least_elements(const TensorType& type);

}  // namespace reel
