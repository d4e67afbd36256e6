// autodiff/saving_loop.h — the forward loop of a gradient: stacks residuals or checkpoints.
#pragma once

#include "reel/autodiff/loop_application.h"

namespace reel {

/// Returns true if residuals of a loop may lie in a file. False inside another loop, which saves
/// them for all its iterations and may itself use a file.
bool may_spill();

/// The forward loop, applied again.
struct SavingLoop {
  LoopAttrs attrs;    ///< has stacks of residuals or checkpoints behind the loop's own
  Tensors results;    ///< of the op
  Tensors residuals;  ///< by ReversedGraph::saved
};

/// Applies the forward loop again, with the residuals that the reversed body reads. If the loop has
/// a checkpoint policy, it saves checkpoints, and the residuals are results of recompute_op. A pass
/// merges the loop with the first one (core/graph/passes/merge_equal.cpp).
///
/// Residuals are a list if they cannot be one tensor: their sizes change, the loop has no dim or
/// they already have it, or one is named and the other is not.
SavingLoop forward_with_residuals(LoopApplication& loop, const ReversedGraph& reversed);

}  // namespace reel
