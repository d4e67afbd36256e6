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

/// An op on cells, a copy, or a chain.
struct TileStep {
  const OpRecord* record = nullptr;  ///< null: a copy
  DType from = f32, to = f32;
  std::vector<int> in = {}, out = {};                   ///< cells
  std::shared_ptr<const PointwiseCode> code = nullptr;  ///< of a chain, which has no record
};

}  // namespace reel
