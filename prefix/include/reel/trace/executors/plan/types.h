// trace/executors/plan/types.h — PlannedTypes, what is known about a graph's values before it runs.
#pragma once

#include <vector>

#include "reel/core/graph.h"

namespace reel {

/// The types of all values of a graph, given those of its inputs, as far as no value has to be
/// looked at; and the attributes of its records with actual dims in place of symbols.
struct PlannedTypes {
  std::vector<TensorType> types;       ///< by value; the graph's own where they are not known
  std::vector<std::uint8_t> is_known;  ///< by value: all sizes, or it is a list
  std::vector<AttrsRef> attrs;         ///< by record; empty where a symbol is not known
  std::vector<std::uint8_t>
      has_types;  ///< by record: the types of its inputs, and attrs, are known
  DimEnv env;     ///< what symbols stand for, as far as they are known
};

/// env: what the graph's free symbols stand for.
PlannedTypes plan_types(const Graph& graph, std::span<const TensorType> inputs, DimEnv env);

/// The same sizes, whatever the dims.
bool same_sizes(const PlannedTypes& a, const PlannedTypes& b);

}  // namespace reel
