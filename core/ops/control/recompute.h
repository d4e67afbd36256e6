// core/ops/control/recompute.h — recompute_op, which recomputes residuals for a loop's gradient.
#pragma once

#include <memory>
#include <optional>

#include "reel/core/graph/graph_runner.h"
#include "reel/core/ops/loop/loop.h"

namespace reel {

class ReplaySegmentGraphs;  // trace/passes/residuals/replay_segment_graphs.h

/// Computes the residuals of a loop again from its checkpoints.
///
///   inputs of the op:   the inputs of the loop, trips (i32), [lengths (i32 over entries.dims)],
///                       for each checkpoint {steps before, steps run together} (a list of i64[2]),
///                       for each carry the list of its values at the checkpoints
///   outputs of the op:  the loop's stacks from `first_residual` on
///
/// The input `lengths` is present if the loop makes lengths.
///
/// The outputs have no data. A loop takes them as its slices, from the last step to the first.
/// Replay segments are computed again when the loop reaches them (core/runtime/residual_source.h).
struct RecomputeAttrs {
  AttrsRef loop;  ///< LoopAttrs of the loop with all its residual stacks
  std::size_t first_residual = 0;
  /// Runs the graphs of replay segments, for the plan that set it; otherwise the interpreter runs
  /// them.
  std::optional<GraphRunner> runner;
  /// In a plan: the graphs of segments, retained between runs, and the values of their symbols in a
  /// run.
  std::shared_ptr<ReplaySegmentGraphs> graphs;
  Dims dims;

  template <class F>
  static void fields(F&& f) {
    f("loop", &RecomputeAttrs::loop);
    f("first_residual", &RecomputeAttrs::first_residual);
    f("dims", &RecomputeAttrs::dims);
  }
  const LoopAttrs& saving() const { return get<LoopAttrs>(loop.get()); }
  /// Returns how many of the op's inputs are inputs of the loop. all: the number of the op's
  /// inputs.
  std::size_t loop_inputs(std::size_t all) const {
    return all - 2 - saving().makes_lengths() - saving().carries.size();
  }
};

extern const Op recompute_op;

/// Appends a placeholder to a body for the number of steps before a checkpoint. An executor fills
/// it.
ValueId append_steps(Graph& body);

void run_recompute(KernelArgs& args);  // trace/executors/checkpoints/recomputed_residuals.cpp
void recompute_vjp(Vjp& at);           // autodiff/recompute_vjp.cpp

}  // namespace reel
