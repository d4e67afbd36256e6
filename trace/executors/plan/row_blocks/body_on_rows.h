// trace/executors/plan/row_blocks/body_on_rows.h — BodyOnRows: a loop's body for any number of
// batch rows.
#pragma once

#include <span>

#include "reel/core/ops/loop/loop.h"

namespace reel {

/// A body that treats batch rows independently, rewritten to run with any number of them. Reshapes
/// leave a plain row axis open. Random draws take the rows' numbers, so that the values are those
/// of a draw for all rows.
///
///   Before: x = random_normal(key){f32[16,8]};  y = reshape(h){f32[16,8] -> f32[16,2,4]}
///   After:  x = draw_rows(key, numbers){f32[16,8], axis=0};  y = reshape(h){sizes=[-1,2,4]}
struct BodyOnRows {
  GraphRef graph;              ///< null: the body needs no change
  bool takes_numbers = false;  ///< as last capture: row numbers, then the number of all rows
};

/// Returns the rewritten body. axes: the row axis of each value, or a kind of RowAxes.
BodyOnRows body_on_rows(const Graph& body, std::span<const int> axes);

/// Returns the loop with that body. inputs: number of the loop's inputs; row numbers follow them.
LoopAttrs on_body(const LoopAttrs& attrs, const BodyOnRows& body);

}  // namespace reel
