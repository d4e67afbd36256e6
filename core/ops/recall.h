// core/ops/recall.h — the op that gives a loop's gradient what the loop did not keep.
#pragma once

#include <memory>
#include <optional>

#include "reel/core/graph_runner.h"
#include "reel/core/ops/loop.h"

namespace reel {

class SegmentGraphs;  // trace/executors/segments.h

/// What a loop would have saved of its steps, computed again from checkpoints.
///
/// inputs of the op:   those of the loop, trips (i32), [lengths (i32 over entry_dims), of a loop
/// that makes them], how many steps ran before each checkpoint (a list of i64), and for each carry
/// the list of what it was then
/// outputs of the op:  the loop's stacks from `first_saved` on
///
/// Its outputs have no data: a loop takes them as its slices, from the last step to the first, and
/// runs of steps are computed again when it comes to them (core/saved_steps.h).
struct RecallAttrs {
  AttrsRef loop;  ///< LoopAttrs of the loop, saving all
  int first_saved = 0;
  /// Runs graphs over some of the steps: that of a plan; else the interpreter does.
  std::optional<GraphRunner> runner;
  /// Of a plan: those graphs, kept from run to run, and what their symbols stand for in a run.
  std::shared_ptr<SegmentGraphs> graphs;
  Dims dims;

  template <class F>
  static void fields(F&& f) {
    f("loop", &RecallAttrs::loop);
    f("first_saved", &RecallAttrs::first_saved);
    f("dims", &RecallAttrs::dims);
  }
  const LoopAttrs& saving() const { return get<LoopAttrs>(loop.get()); }
  /// How many of the op's inputs are the loop's.
  std::size_t loop_inputs(std::size_t all) const {
    return all - 2 - saving().makes_lengths() - static_cast<std::size_t>(saving().carries);
  }
};

extern const Op recall_op;

/// Appends to a body what stands for the steps before a checkpoint, which an executor puts there.
ValueId append_steps(Graph& body);

void run_recall(KernelArgs& args);  // trace/executors/recall.cpp
void recall_vjp(Vjp& at);           // autodiff/recall_vjp.cpp

}  // namespace reel
