// trace/executors/segments.h — Segments, runs of some steps of a loop.
#pragma once

#include <map>
#include <vector>

#include "reel/core/ops/recall.h"

namespace reel {

/// Runs some of a loop's steps, from the state before them: a graph of its own, in which the loop
/// goes over these.
class Segments {
 public:
  /// inputs: those of the recall op.
  Segments(const RecallAttrs& attrs, Tensors inputs);

  struct Ran {
    Tensors carries;  ///< the state behind the steps
    Tensors saved;    ///< where asked for: what they saved, as one tensor (is_dense()), or as lists
  };
  /// The steps from `begin` to before `end`, as the loop goes. carries: the state before them.
  Ran run(std::int64_t begin, std::int64_t end, const Tensors& carries, bool saves);

  std::int64_t steps() const { return steps_; }  ///< that the loop has run
  /// All that the steps of a segment save lies one behind the other, in the order of positions.
  bool is_dense() const { return is_dense_; }
  /// The position of the step: where it finds its slices.
  std::int64_t position(std::int64_t step) const {
    return loop_.is_reverse ? steps_ - 1 - step : step;
  }

 private:
  GraphRef graph_for(std::int64_t count, bool saves);
  Ref<Graph> make_graph(const Dim& chunk, bool saves) const;

  const RecallAttrs attrs_;
  const LoopAttrs& loop_;
  Tensors inputs_;              ///< of the loop
  std::vector<Tensors> lists_;  ///< by slice, the elements of those that are lists
  Tensor lengths_;              ///< of its entries, where these end one by one
  std::int64_t steps_ = 0;
  bool is_dense_ = false;
  Dim time_;  ///< the dim that it goes along, of slices that are no lists; a plain one counts as
              ///< none
  std::map<std::pair<std::int64_t, bool>, GraphRef> graphs_;  ///< by steps (0: any) and saves
};

}  // namespace reel
