// trace/executors/checkpoints/replay_segments.h — ReplaySegments: runs some iterations of a loop
// again.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "reel/core/ops/control/recompute.h"
#include "reel/trace/passes/residuals/replay_segment_graphs.h"

namespace reel {

/// Runs some iterations of a loop from the state before them, as a graph of its own.
class ReplaySegments {
 public:
  /// inputs: the recompute op's inputs.
  ReplaySegments(const RecomputeAttrs& attrs, Tensors inputs);

  struct Ran {
    Tensors carries;    ///< the state behind the iterations
    Tensors residuals;  ///< if `saves`: one tensor each if is_dense(), otherwise lists
  };
  /// Runs iterations [begin, end), in the order of the loop.
  ///
  /// carries: the state before them. saves: compute the residuals.
  Ran run(std::int64_t begin, std::int64_t end, const Tensors& carries, bool saves);

  std::int64_t steps() const { return steps_; }  ///< iterations that the loop ran
  /// Returns true if each residual of a segment is one tensor, ordered by position.
  bool is_dense() const { return graphs_->is_dense(); }
  /// Returns the position of an iteration: the index of its slices.
  std::int64_t position(std::int64_t step) const {
    return loop_.trips.is_reverse ? steps_ - 1 - step : step;
  }

 private:
  Tensors named_as_captures(Tensors carries) const;

  const RecomputeAttrs attrs_;
  const LoopAttrs& loop_;
  Tensors inputs_;              ///< of the loop
  std::vector<Tensors> lists_;  ///< by slice, the elements if it is a list
  Tensor lengths_;              ///< of the entries, if these finish one by one
  Tensors tokens_;              ///< by symbol of graphs_
  std::int64_t steps_ = 0;
  Dim time_;  ///< the named dim of dense slices; a plain dim counts as none
  std::shared_ptr<ReplaySegmentGraphs> graphs_;
};

}  // namespace reel
