// trace/executors/plan/loop/loop_work.h — LoopWork: the work of an iteration of a loop.
#pragma once

#include <cstdint>

#include "reel/core/graph/graph.h"
#include "reel/trace/executors/plan/base/infer_types.h"

namespace reel {

/// The work of one iteration of a loop's body, in multiplications of a product that take as long:
/// about 1/32 of a nanosecond each.
///
/// Recomputed ops do not count: row blocks must not depend on the residuals that a policy keeps.
/// Graphs of branches and inner loops do not count either.
struct LoopWork {
  std::int64_t products = 0;  ///< multiplications of products
  std::int64_t elements = 0;  ///< all other ops, by their elements

  std::int64_t all() const { return products + elements; }
};

/// Returns the work of the body. types: of its values; ops of unknown types do not count.
LoopWork work_of(const Graph& body, const PlannedTypes& types);

}  // namespace reel
