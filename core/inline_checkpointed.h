// core/inline_checkpointed.h — the pass that takes the records of checkpointed functions
// out of their graphs.
#pragma once

#include "reel/core/graph.h"

namespace reel {

/// A checkpointed function's records stand where it is called, in bodies and branches too, so that
/// other passes see them. Behind it gradients have been taken: they compute again what they need,
/// of values that are made afresh. In the gradient of a loop, where nothing else has been computed
/// from them, these are the values themselves.
Ref<Graph> inline_checkpointed(const Graph& graph);
/// There are such records, in bodies and branches, too.
bool has_checkpointed(const Graph& graph);

}  // namespace reel
