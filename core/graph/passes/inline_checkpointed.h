// core/graph/passes/inline_checkpointed.h — inlines checkpointed functions.
#pragma once

#include <functional>

#include "reel/core/base/visibility.h"
#include "reel/core/graph/graph.h"

namespace reel {

/// Replaces each call of a checkpointed function by its records, also in bodies and branches, so
/// that other passes can see them.
///
///   Before: %1 = checkpointed(%0) {body: %a = exp(%x); return %a}
///   After:  %1 = exp(%0)
///
/// Runs: after gradients were taken, and before other passes of a plan. Gradients recompute values
/// from copies with a new identity (afresh_op). In the body of a gradient loop the copies become
/// the values themselves, because nothing else there was computed from them.
REEL_API Ref<Graph> inline_checkpointed(const Graph& graph);
/// Returns true for a call that remains a call. graph: the one that has the record.
using KeepsCall = std::function<bool(const Graph& graph, const OpRecord& call)>;
/// Inlines the calls for which `keeps` is false. Calls inside a call that remains are not visited.
REEL_API Ref<Graph> inline_checkpointed_unless(const Graph& graph, const KeepsCall& keeps);
/// Returns true if the graph has checkpointed functions, also in bodies and branches.
REEL_API bool has_checkpointed(const Graph& graph);

}  // namespace reel
