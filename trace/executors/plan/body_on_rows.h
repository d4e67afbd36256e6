// trace/executors/plan/body_on_rows.h — BodyOnRows, the body of a loop for some of its rows.
#pragma once

#include <span>

#include "reel/core/ops/loop.h"

namespace reel {

/// A body that treats rows each for itself, such that it does so with any number of them: a plain
/// axis of rows is left open by what is reshaped, and what is drawn is drawn as that of all rows,
/// by their numbers.
///
///   x = random_normal(key){f32[16,8]}           x = draw_rows(key, numbers){f32[16,8], axis=0}
///   y = reshape(h){f32[16,8] -> f32[16,2,4]}    y = reshape(h){sizes=[-1,2,4]}
struct BodyOnRows {
  GraphRef graph;              ///< none: the body as it is
  bool takes_numbers = false;  ///< as its last capture: row numbers, and how many there are in all
};

/// axes: where each value has its rows, or one of RowAxes' kinds.
BodyOnRows body_on_rows(const Graph& body, std::span<const int> axes);

/// The loop with that body; row numbers are an input behind its `inputs` own ones.
LoopAttrs on_body(const LoopAttrs& attrs, std::size_t inputs, const BodyOnRows& body);

}  // namespace reel
