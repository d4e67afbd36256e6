// trace/executors/leaves/leaf_context.h — LeafContext: the run of a loop, as its slices and stacks
// see it.
#pragma once

#include <cstdint>
#include <span>

#include "reel/trace/executors/loop/chunks.h"
#include "reel/trace/executors/loop/iterations.h"

namespace reel {

/// Refers to parts of a run, which must outlive it.
struct LeafContext {
  const LoopAttrs& attrs;
  std::span<const TensorType> inputs;  ///< types of the op's inputs
  const Chunks& chunks;                ///< of a chunked loop
  const Iterations& iterations;

  bool is_chunked() const { return attrs.chunking.over_chunks; }
  /// Returns the first time step of the iteration at a position.
  std::int64_t first_step_at(std::int64_t position) const {
    return is_chunked() ? chunks.first(position) : position;
  }
  /// Returns the number of time steps of the iteration at a position.
  std::int64_t steps_at(std::int64_t position) const {
    return is_chunked() ? chunks.steps_of(position) : 1;
  }
  /// Returns how many time steps ran before the iteration at a position.
  std::int64_t steps_before(std::int64_t position) const {
    if (!is_chunked()) return iterations.count();
    return attrs.trips.is_reverse
               ? chunks.steps - chunks.first(position) - chunks.steps_of(position)
               : chunks.first(position);
  }
  /// Returns the dim of stack `index` behind the loop. made: the dim that the loop makes, if any.
  Dim stack_dim(std::size_t index, const Dim& made) const {
    const Dim& dim = attrs.trips.makes_dim ? made : attrs.stacks[index].dim;
    return dim.has_size() ? dim : Dim(iterations.count());
  }
  /// Returns the type of a term of stack `index` in the body's graph.
  const TensorType& formal_term(std::size_t index) const {
    return attrs.body.graph->types[body_outputs(attrs).stacks[index]];
  }
};

/// Returns the type of a stack of terms of type `term` along `dim`.
inline TensorType stacked(const TensorType& term, const Dim& dim) {
  Dims dims{dim};
  dims.insert(dims.end(), term.dims().begin(), term.dims().end());
  return term.with(dims);
}

}  // namespace reel
