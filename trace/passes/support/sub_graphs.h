// trace/passes/support/sub_graphs.h — applies a pass to loops inside loops and branches.
#pragma once

#include <functional>
#include <vector>

#include "reel/core/ops/loop/loop.h"

namespace reel {

using Pass = std::function<Ref<Graph>(const Graph&)>;

/// Returns the attributes of a record with the pass applied to its body and condition, or branches.
/// Requires a pass that keeps the order of a graph's inputs and outputs.
AttrsRef with_all_sub_graphs(const OpRecord& record, const Pass& pass);
/// As with_all_sub_graphs(), for passes that change only loops: sub-graphs without loops stay the
/// same objects.
AttrsRef with_sub_graphs(const OpRecord& record, const Pass& pass);

/// Changes a loop of a graph and its inputs. Must leave its outputs unchanged.
using LoopChange = std::function<void(const OpRecord&, LoopAttrs&, std::vector<ValueId>& inputs)>;
/// Returns the graph with `pass` applied to sub-graphs with loops, and then `change` to each of its
/// own loops in order.
Ref<Graph> with_loops(const Graph& graph, const Pass& pass, const LoopChange& change);

}  // namespace reel
