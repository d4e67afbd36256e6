// trace/passes/join_loops.h — the pass that lets a loop run inside the one whose iterations it
// reads.
#pragma once

#include "reel/core/graph.h"

namespace reel {

/// A loop that runs once more over the iterations of another, in the same direction, and reads what
/// that one saved for it, becomes part of it; nothing is saved then.
///
///   %y, %saved, %n = loop (%x); %t = loop bound %n slices (%saved) (%v)     becomes
///   %y, %t = loop (%x, %v)
///
/// That is the form of a jvp: the tangent, reversed twice, runs forwards beside the value. Loops
/// that users wrote one behind the other stay apart, and so do those whose entries end one by one.
/// Stands after forwarded_outputs, which shows that two loops run equally often.
Ref<Graph> join_loops(const Graph& graph);

}  // namespace reel
