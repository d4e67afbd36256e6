// trace/executors/plan/tiles/placed_chain.h — PlacedChain: a fused op that is one call of machine
// code, with its operands and results found in advance.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "reel/core/ops/elementwise/pointwise_code.h"
#include "reel/core/types/tensor.h"

namespace reel {

/// The call of a chain's code for values of a plan. Bodies of loops run it in each iteration, and
/// only look up the present addresses of its operands and results.
struct PlacedChain {
  struct Place {
    const Tensor* tensor;
    std::int64_t offset, step;  ///< bytes: of the first element, and from one row to the next
  };

  std::shared_ptr<const PointwiseCode> code;
  std::int64_t rows = 1, columns = 0;
  std::vector<Place> places;  ///< operands, then results

  /// Computes the results. Requires defined tensors.
  void run() const {
    ChainRun run;
    run.rows = rows;
    run.columns = columns;
    char** at = run.at;
    for (const Place& place : places)
      *at++ = static_cast<char*>(place.tensor->block()->data) + place.offset;
    if (rows > 1) {
      std::int64_t* step = run.step;
      for (const Place& place : places) *step++ = place.step;
    }
    code->run(run);
  }
};

}  // namespace reel
