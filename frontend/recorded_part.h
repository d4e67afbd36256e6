// frontend/recorded_part.h — a part of eager code that is run as a graph.
#pragma once

#include <functional>
#include <string>

#include "reel/core/leaf.h"

namespace reel {

/// Whether a part of the code that asks for it is recorded, to be one record of the active tapes:
/// in eager mode, where there is a tape.
bool is_recorded_here();

/// Records `part` for these arguments, and runs the graph by the interpreter: what it gives, and
/// its gradient, have the bits of eager code. A tape sees one record, and the gradient chooses what
/// it keeps. what: that is recorded, for errors.
TreeLeaves run_recorded(const std::string& what, TreeLeaves arguments,
                        const std::function<TreeLeaves(const TreeLeaves&)>& part);

}  // namespace reel
