// trace/passes/sub_graphs.h — applying a pass on loops inside of loops and branches.
#pragma once

#include <functional>
#include <vector>

#include "reel/core/ops/loop.h"

namespace reel {

using Pass = std::function<Ref<Graph>(const Graph&)>;

/// The attributes of a record after a pass over its body or branches, where there are loops in
/// them; otherwise they stay as they are. The pass changes nothing but loops, and keeps inputs and
/// outputs of a graph in their places.
AttrsRef with_sub_graphs(const OpRecord& record, const Pass& pass);

/// A loop of a graph, and its inputs, for a pass to change. Outputs stay as they are.
using LoopChange = std::function<void(const OpRecord&, LoopAttrs&, std::vector<ValueId>& inputs)>;
/// The graph after a pass that changes its loops one after the other, those inside of loops and
/// branches before them.
Ref<Graph> with_loops(const Graph& graph, const Pass& pass, const LoopChange& change);

}  // namespace reel
