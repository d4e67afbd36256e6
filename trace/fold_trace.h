// trace/fold_trace.h — the graph of a trace for calls without a tape.
#pragma once

#include "reel/trace/passes/cleanup/fold_captures.h"

namespace reel {

/// Returns true if a call in the current mode runs ops on captures once for all calls: nothing
/// takes gradients of captures, replaces them, or names the ops and elements of the recorded graph.
bool may_fold();

/// Returns the graph without ops on captures, and without transposes that undo each other; null if
/// that changes nothing. Throws MemoryError if memory runs out while ops on captures are computed.
///
/// captured: the tensors behind the graph's captures.
CapturedGraph fold_trace(const Graph& graph, const Tensors& captured);

}  // namespace reel
