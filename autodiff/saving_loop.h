// autodiff/saving_loop.h — a loop with what its gradient reads among its stacks.
#pragma once

#include <optional>
#include <vector>

#include "reel/autodiff/reverse_graph.h"
#include "reel/core/ops/loop.h"

namespace reel {

/// What a loop keeps may lie in a file. Not inside of another loop: that one keeps it, of all its
/// steps, and may have it in a file.
bool may_spill();

/// The forward loop with more stacks: what the reverse loop reads.
///
/// dim: what the loop runs along, if that has a Dim; env: what dims of the body are called where
/// the loop stands. Values go into a list where they cannot be one tensor: where their sizes
/// change, where there is no dim or they have it already, or where one is named and the other is
/// not.
LoopAttrs with_saved(const LoopAttrs& attrs, const ReversedGraph& reversed,
                     const std::optional<Dim>& dim, DimEnv& env);
/// The loop's body, with more values behind its stacks.
Ref<Graph> with_outputs(const Graph& graph, const LoopAttrs& attrs,
                        const std::vector<ValueId>& extra);

/// The forward loop with lists of its carries as they were before some steps, and behind which
/// steps.
LoopAttrs with_checkpoints(const LoopAttrs& attrs);
/// Its body.
Ref<Graph> with_checkpoints(const Graph& graph, const LoopAttrs& attrs);

}  // namespace reel
