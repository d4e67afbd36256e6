// trace/passes/rows/body_on_rows.h — BodyOnRows: a loop's body for any number of batch rows.
#pragma once

#include <span>
#include <vector>

#include "reel/core/ops/loop/loop.h"

namespace reel {

/// A body that treats batch rows independently, rewritten to run with any number of them. Reshapes
/// leave a plain row axis open. Random draws take the rows' numbers, so that the values are those
/// of a draw for all rows. Lengths and masks of dims that have a length for each row are captures.
/// Products for each row leave out the padding of these dims.
///
///   Before: x = random_normal(key){f32[16,8]};  y = reshape(h){f32[16,8] -> f32[16,2,4]}
///           m = mask(){dim=time[batch]}
///   After:  x = draw_rows(key, numbers, 16){f32[16,8], axis=0};  y = reshape(h){sizes=[-1,2,4]}
///           m is a capture
struct BodyOnRows {
  GraphRef graph;                         ///< null: the body needs no change
  std::vector<OpRecord> lengths_of = {};  ///< the records that captures replace
  bool takes_numbers = false;  ///< as last captures: row numbers, and the number of all rows

  // Return the results of lengths_of for all rows, and their types. env: the dims of the whole
  // body.
  Tensors lengths(DimEnv env) const;
  std::vector<TensorType> length_types(DimEnv env) const;
};

/// Returns the rewritten body. axes: the row axis of each value, or a kind of RowAxes.
BodyOnRows body_on_rows(const Graph& body, std::span<const int> axes);

/// Returns the loop with that body. The results of BodyOnRows::lengths(), then row numbers, follow
/// the loop's own inputs.
LoopAttrs on_body(const LoopAttrs& attrs, const BodyOnRows& body);

}  // namespace reel
