// trace/passes/residuals/relax_finished_residuals.h — turns residuals of finished entries into
// padding.
#pragma once

#include "reel/core/graph/graph.h"

namespace reel {

/// Relaxes the values that a gradient loop reads for finished entries. A loop saves residuals of
/// finished entries as its body computed them, and the gradient loop reads them as they are. If the
/// body treats each entry on its own, such a residual equals the residual of the running entry that
/// the finished one read from. If it was made of cotangents, it is zero. The gradient loop may then
/// read the running entry's residual, or zeros.
///
///   Before: stack r (residual); gradient loop reads slices r with FinishedFill::as_is
///   After:  stack r (residual, finished_unread); gradient loop reads slices r with
///           FinishedFill::running, running_padding or zero
///
/// Random draws of each entry are relaxed as well if no op mixes entries, as no cotangent flows to
/// them. Outputs that are zero for finished entries no longer collect them. Recomputed residuals
/// (core/ops/control/recompute.h) are marked in the same way.
///
/// Preserves: bits.   Runs: before passes that leave padding undefined, such as
/// batch_across_iterations, and before plans that do not compute finished entries. Skips: loops
/// with entries that finish along several dims.
Ref<Graph> relax_finished_residuals(const Graph& graph);

}  // namespace reel
