// core/known_number.h — what a graph tells of integers before it runs.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>

#include "reel/core/graph.h"

namespace reel {

/// The record that makes a value; null of an input.
const OpRecord* record_of(const Graph& graph, ValueId v);

/// Integers that are known of inputs of a graph.
using KnownNumbers = std::unordered_map<ValueId, std::int64_t>;

/// The integer that a value is in every run: a constant, or what is made of such by casts, minimum
/// and maximum.
std::optional<std::int64_t> known_number(const Graph& graph, ValueId v,
                                         const KnownNumbers& numbers = {});

}  // namespace reel
