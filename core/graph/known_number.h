// core/graph/known_number.h — known_number, integers of a graph that are known before it runs.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>

#include "reel/core/graph/graph.h"

namespace reel {

/// Returns the record that makes a value; null for an input. Takes time linear in the graph's size.
const OpRecord* record_of(const Graph& graph, ValueId v);

/// Known integer values of a graph's inputs.
using KnownNumbers = std::unordered_map<ValueId, std::int64_t>;

/// Returns the integer that a value has in every run, or nothing if it is not known. Known are
/// constants, entries of `numbers`, and casts, minima and maxima of them.
std::optional<std::int64_t> known_number(const Graph& graph, ValueId v,
                                         const KnownNumbers& numbers = {});

}  // namespace reel
