// trace/executors/plan/tiles/tile_steps.h — TileStep: a step of a fused op, before it is a
// TileProgram.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "reel/core/graph/graph.h"
#include "reel/core/ops/elementwise/pointwise_code.h"
#include "reel/core/ops/shape/strided.h"

namespace reel {

/// The layout of elements along the axes of the space, before axes are merged.
struct Lie {
  std::int64_t offset = 0;  ///< elements
  Steps steps;

  bool operator==(const Lie&) const = default;
};

/// A value of the space's size: a whole small value, or one part of a large one; or one number per
/// row.
struct TileCell {
  bool is_of_rows = false;
  int input = -1;  ///< number of the input it lies in; -1: none
  Lie lie = {};    ///< in that input, or in the output it is written to
  int output = -1;
  int made_by = -1, last_read = -1;  ///< steps
  std::int64_t item = 0;
  int tile = -1;
};

/// A step of a recurrence along the axis of the walk.
enum class TileWalk : std::uint8_t {
  none,
  states,      ///< h_k = a_k h_{k-1} + b_k. Operands: a, b, and h_{-1} if it is given
  cotangents,  ///< g_k = c_k + a_{k+1} g_{k+1}. Operands: a, c
  lag,         ///< h_{k-1}. Operands: h, which is an input, and h_{-1} if it is given
};

/// An op on cells, a copy, or a chain.
struct TileStep {
  const Op* op = nullptr;  ///< null: a copy
  TileWalk walk = TileWalk::none;
  DType from = f32, to = f32;
  std::vector<int> in = {}, out = {};                   ///< cells
  std::shared_ptr<const PointwiseCode> code = nullptr;  ///< of a chain, which has no op
  bool is_sum = false;                                  ///< of a row, to one number
};

}  // namespace reel
