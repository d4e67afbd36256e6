// frontend/loops/trace_subcomputation.h — runs a part of eager code as a graph.
#pragma once

#include <functional>
#include <string>

#include "reel/core/types/leaf.h"

namespace reel {

/// True if loops with a policy are recorded as one record of the active tapes: in eager mode with
/// an active tape.
bool is_recorded_here();

/// Records `part` for these arguments and runs the graph in the interpreter, so values and
/// gradients have the bits of eager code. A tape sees one record, and its gradient saves the
/// residuals of the policy. `what` names the part in errors; `purpose` says there why eager code is
/// recorded. Throws the exceptions of `part`.
TreeLeaves run_recorded(const std::string& what, TreeLeaves arguments,
                        const std::function<TreeLeaves(const TreeLeaves&)>& part,
                        const char* purpose = "to choose the residuals of its gradient");

}  // namespace reel
