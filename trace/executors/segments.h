// trace/executors/segments.h — Segments, runs of some steps of a loop.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "reel/core/ops/recall.h"

namespace reel {

/// Graphs that run some of a loop's steps: its inputs, but for those that it has for all steps, are
/// theirs. A plan keeps them with the recall op, and so the plans of theirs: they are made once for
/// every set of sizes, whatever the dims of a call are.
///
/// Calls from several threads at once are safe.
class SegmentGraphs {
 public:
  /// inputs: types of the recall op's, which may mention symbols, as attrs may. renames: of the
  /// graph that it stands in.
  SegmentGraphs(const RecallAttrs& attrs, std::vector<TensorType> inputs,
                const DimRenames& renames = {});
  SegmentGraphs(const SegmentGraphs&) = delete;
  SegmentGraphs& operator=(const SegmentGraphs&) = delete;

  /// What the loop's attributes mention: the graphs take a token of each, behind [how many steps],
  /// [lengths] and position.
  const Dims& symbols() const { return symbols_; }
  /// For so many steps, or more, where the loop goes along a dim that has a name.
  GraphRef graph_for(std::int64_t count, bool saves);
  /// part_of_dim(), the same dim for as many steps, where it is no ragged one: a plan does not look
  /// at its types again then.
  Dim part_of(const Dim& time, std::int64_t first, std::int64_t count);
  bool is_dense() const { return is_dense_; }  ///< as Segments says

 private:
  static constexpr std::size_t kMost = 16;  ///< numbers of steps that something is kept for
  Ref<Graph> make_graph(const Dim& chunk, bool saves) const;
  const LoopAttrs& loop() const { return get<LoopAttrs>(loop_.get()); }
  const AttrsRef loop_;
  const int first_saved_;
  std::vector<TensorType> types_;    ///< of the loop's inputs
  std::vector<TensorType> lengths_;  ///< of those of its entries, where these end one by one
  bool is_dense_ = false;
  Dims symbols_;
  Dim time_;  ///< as that of Segments
  const DimRenames renames_;
  std::mutex mutex_;
  std::map<std::pair<std::int64_t, bool>, GraphRef> graphs_;  ///< by steps (0: any) and saves
  std::map<std::int64_t, Dim> parts_;                         ///< by steps
};

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
  bool is_dense() const { return graphs_->is_dense(); }
  /// The position of the step: where it finds its slices.
  std::int64_t position(std::int64_t step) const {
    return loop_.is_reverse ? steps_ - 1 - step : step;
  }

 private:
  const RecallAttrs attrs_;
  const LoopAttrs& loop_;
  Tensors inputs_;              ///< of the loop
  std::vector<Tensors> lists_;  ///< by slice, the elements of those that are lists
  Tensor lengths_;              ///< of its entries, where these end one by one
  Tensors tokens_;              ///< by symbol of graphs_
  std::int64_t steps_ = 0;
  Dim time_;  ///< the dim that it goes along, of slices that are no lists; a plain one counts as
              ///< none
  std::shared_ptr<SegmentGraphs> graphs_;
};

}  // namespace reel
