// trace/executors/plan/loop/stack_of_run.h — StackOfRun: one stack of a run, as its sink sees it.
#pragma once

#include <cstring>

#include "reel/trace/executors/loop/iterations.h"
#include "reel/trace/executors/plan/loop/planned_loop.h"

namespace reel {

struct StackOfRun {
  const PlannedLoop& loop;
  const Iterations& iterations;
  std::size_t index;

  const LoopAttrs& attrs() const { return loop.loop(); }
  const LoopStack& leaf() const { return attrs().stacks[index]; }
  /// Returns the type of a term as planned.
  const TensorType& term() const {
    return loop.body->output_type(loop.output_numbers().stacks[index]);
  }
  /// Returns the type of a term in the body's graph.
  const TensorType& formal() const {
    return attrs().body.graph->types[body_outputs(attrs()).stacks[index]];
  }
};

/// Returns the type of a stack of terms of type `term` along `dim`.
inline TensorType stacked(const TensorType& term, const Dim& dim) {
  Dims dims{dim};
  dims.insert(dims.end(), term.dims().begin(), term.dims().end());
  return term.with(dims);
}

/// Sets bytes [from, to) to zero.
inline void clear_bytes(char* data, std::int64_t from, std::int64_t to) {
  if (from < to) std::memset(data + from, 0, static_cast<std::size_t>(to - from));
}

}  // namespace reel
