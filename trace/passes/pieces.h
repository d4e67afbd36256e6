// trace/passes/pieces.h — in_pieces, a pass over a long graph, some records at a time.
#pragma once

#include <cstddef>
#include <functional>

#include "reel/core/graph.h"

namespace reel {

/// What the pass makes of pieces of at most so many records each, one behind the other; of a graph
/// that is no longer, what it makes of that. For passes that may leave alone what stands in two
/// pieces, and that make no values. A piece takes what it reads of those before, and gives what is
/// read behind it.
Ref<Graph> in_pieces(const Graph& graph, std::size_t most_records,
                     const std::function<Ref<Graph>(const Graph&)>& pass);

}  // namespace reel
