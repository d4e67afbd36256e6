// trace/executors/plan/base/infer_types.h — PlannedTypes: the types of a graph's values before it
// runs.
#pragma once

#include <vector>

#include "reel/core/graph/graph.h"

namespace reel {

/// The types of all values of a graph given the types of its inputs, as far as they do not depend
/// on values. Also the attributes of its records, with actual dims in place of symbols.
struct PlannedTypes {
  std::vector<TensorType> types;       ///< by value; the graph's own if unknown
  std::vector<std::uint8_t> is_known;  ///< by value: all sizes are known, or it is a list
  std::vector<AttrsRef> attrs;         ///< by record; empty if a symbol is unknown
  std::vector<std::uint8_t>
      has_types;  ///< by record: the types of its inputs, and attrs, are known
  DimEnv env;     ///< dims that symbols stand for, as far as known
};

/// Infers the types. env: the dims that the graph's free symbols stand for.
PlannedTypes plan_types(const Graph& graph, std::span<const TensorType> inputs, DimEnv env);

/// Returns true if all sizes are equal; dims may differ.
bool same_sizes(const PlannedTypes& a, const PlannedTypes& b);

}  // namespace reel
