// trace/passes/support/windowed_pass.h — windowed_pass, which applies a pass to windows of a long
// graph.
#pragma once

#include <cstddef>
#include <functional>

#include "reel/core/graph/graph.h"

namespace reel {

/// Applies `pass` to consecutive windows of at most `most_records` records and concatenates the
/// results. A window's inputs are the earlier values that it reads; its outputs are the values that
/// later records read. A graph of at most `most_records` records is passed whole.
///
/// Requires a local pass, which is correct without seeing other windows. Values of a window keep
/// their numbers in its result, and its outputs stay the same values. The pass may add values: each
/// gets a new number in the whole graph.
Ref<Graph> windowed_pass(const Graph& graph, std::size_t most_records,
                         const std::function<Ref<Graph>(const Graph&)>& pass);

}  // namespace reel
