// trace/passes/cleanup/fold_captures.h — computes ops on captures once, instead of in every call.
#pragma once

#include "reel/core/base/visibility.h"
#include "reel/core/graph/graph.h"
#include "reel/core/types/tensor.h"

namespace reel {

/// A graph and the tensors behind its captures.
struct CapturedGraph {
  Ref<Graph> graph;  ///< null: nothing changes
  Tensors captured;
};

/// Replaces ops on captures and constants by captures of their results.
///
///   Before: f(%0; captures %1): %2 = transpose(%1); %3 = dot(%0, %2)
///   After:  f(%0; captures %2): %3 = dot(%0, %2)
///
/// captured: the tensors behind the graph's captures. Their values must not change, and no gradient
/// may flow to them. Uses the eager kernels, so that bits are equal. If an op would throw, or makes
/// a NaN, it stays.
/// Throws MemoryError if memory runs out while computing.
/// Preserves: bits.   Runs: for calls of jit without a tape.
/// Skips: results of the graph; products, loops and branches, and all ops that tell nothing about
/// their axes (core/op/axes.h); results larger than every operand;
/// types of unknown size or with a dim of the trace; results beyond the bytes of all captured
/// tensors, or beyond 16 MiB if these have fewer bytes. A result that only folded ops read does
/// not count.
REEL_API CapturedGraph fold_captures(const Graph& graph, const Tensors& captured);

}  // namespace reel
