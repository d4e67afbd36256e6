// trace/passes/saved_of_ended.h — the pass that lets what was saved of ended entries be anything.
#pragma once

#include "reel/core/graph.h"

namespace reel {

/// A loop saves, for its gradient, what its body computed for entries that had ended, and the
/// gradient's loop reads that as it is. Where the body treats entries each for itself, this is what
/// it computed for the live one whose values they saw, or zero, if it was made of cotangents: the
/// other loop may as well see that one's (Fill::live instead of Fill::as_is), or zeros, and what
/// was saved of ended entries becomes padding. So for what is drawn for each entry, where nothing
/// mixes them: no cotangent comes to it. Where ended entries give zeros, nothing is left to
/// collect of them. So for loops whose steps are run again (core/ops/recall.h).
///
/// Same results. Before passes that leave that padding to chance: batch_over_time, and plans that
/// do not compute ended entries at all.
Ref<Graph> saved_of_ended(const Graph& graph);

}  // namespace reel
