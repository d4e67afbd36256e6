// trace/executors/leaves/terms_of_chunk.h — for_each_step: the time steps of a stack's term.
#pragma once

#include <utility>

#include "reel/core/ops/list/list.h"
#include "reel/core/ops/shape/join.h"
#include "reel/trace/executors/leaves/leaf_context.h"

namespace reel {

/// Calls put(position, element) for the time steps of a term: the term itself, or in a chunked loop
/// one element per time step, in the order of the loop.
template <class Put>
void for_each_step(const LeafContext& loop, Tensor term, std::int64_t position, Put&& put) {
  if (!loop.is_chunked()) return put(position, std::move(term));
  Tensors steps = term.type().is_list() ? list_elements(term) : unstack_shown(term, 0);
  const std::int64_t first = loop.chunks.first(position), count = std::ssize(steps);
  for (std::int64_t k = 0; k < count; ++k) {
    const std::int64_t step = loop.attrs.trips.is_reverse ? count - 1 - k : k;
    put(first + step, std::move(steps[static_cast<std::size_t>(step)]));
  }
}

}  // namespace reel
