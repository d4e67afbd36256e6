// trace/passes/inline_checkpointed.h — the pass that takes the records of checkpointed functions
// out of their graphs.
#pragma once

#include "reel/core/graph.h"

namespace reel {

/// A checkpointed function's records stand where it is called, in bodies and branches too, so that
/// other passes see them. Behind it gradients have been taken: they compute again what they need,
/// of values that are made afresh.
Ref<Graph> inline_checkpointed(const Graph& graph);

}  // namespace reel
