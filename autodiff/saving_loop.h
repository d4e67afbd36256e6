// autodiff/saving_loop.h — the forward loop of a gradient: stacks residuals or checkpoints.
#pragma once

#include <optional>
#include <vector>

#include "reel/autodiff/reverse_graph.h"
#include "reel/core/ops/control/loop.h"

namespace reel {

/// Returns true if residuals of a loop may lie in a file. False inside another loop, which saves
/// them for all its iterations and may itself use a file.
bool may_spill();

/// Returns the forward loop with the residuals of the reverse loop as further stacks.
///
/// dim: the Dim that the loop runs along, if any. env: the dims of the body as the enclosing graph
/// names them.
/// Residuals are a list if they cannot be one tensor: their sizes change, the loop has no dim or
/// they already have it, or one is named and the other is not.
LoopAttrs with_saved(const LoopAttrs& attrs, const ReversedGraph& reversed,
                     const std::optional<Dim>& dim, DimEnv& env);
/// Returns the loop's body with the values `extra` as outputs behind its stacks.
Ref<Graph> with_outputs(const Graph& graph, const LoopAttrs& attrs,
                        const std::vector<ValueId>& extra);

/// Returns the forward loop with lists of checkpoints: its carries before some iterations, and the
/// numbers of these.
LoopAttrs with_checkpoints(const LoopAttrs& attrs);
/// Returns the body of with_checkpoints(attrs).
Ref<Graph> with_checkpoints(const Graph& graph, const LoopAttrs& attrs);

}  // namespace reel
