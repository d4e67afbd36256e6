// trace/executors/checkpoints/replay_segments.h — ReplaySegments: runs some iterations of a loop
// again.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "reel/core/ops/control/recompute.h"

namespace reel {

/// Graphs that run some iterations of a loop. Their inputs are the loop's inputs, with slices and
/// lengths of these iterations only. A plan stores this object with the recompute op, and so the
/// plans of the graphs: plans are made once for every set of sizes, whatever the dims of a call
/// are.
///
/// Thread-safe.
class ReplaySegmentGraphs {
 public:
  /// inputs: types of the recompute op's inputs. They may mention symbols, as attrs may.
  /// renames: of the graph that contains the op.
  ReplaySegmentGraphs(const RecomputeAttrs& attrs, std::vector<TensorType> inputs,
                      const DimChanges& renames = {});
  ReplaySegmentGraphs(const ReplaySegmentGraphs&) = delete;
  ReplaySegmentGraphs& operator=(const ReplaySegmentGraphs&) = delete;

  /// Returns the symbols that the loop's attributes mention. The graphs take a token for each,
  /// behind [number of steps], [lengths] and position.
  const Dims& symbols() const { return symbols_; }
  /// Returns the graph for `count` time steps. If the loop runs along a named dim, the graph serves
  /// any number of them. saves: the graph returns the residuals as well.
  GraphRef graph_for(std::int64_t count, bool saves);
  /// Returns part_of_dim(). If the dim is not ragged, returns the same dim for the same `count`, so
  /// that a plan need not compare types again.
  Dim part_of(const Dim& time, std::int64_t first, std::int64_t count);
  bool is_dense() const { return is_dense_; }  ///< see ReplaySegments::is_dense()

 private:
  static constexpr std::size_t kMaxCached = 16;  ///< limit of cached graphs and dims
  Ref<Graph> make_graph(const Dim& chunk, bool saves) const;
  const LoopAttrs& loop() const { return get<LoopAttrs>(loop_.get()); }
  const AttrsRef loop_;
  const std::size_t first_residual_;
  std::vector<TensorType> types_;    ///< of the loop's inputs
  std::vector<TensorType> lengths_;  ///< of the lengths, if entries finish one by one
  bool is_dense_ = false;
  Dims symbols_;
  Dim time_;  ///< see ReplaySegments
  const DimChanges renames_;
  std::mutex mutex_;
  std::map<std::pair<std::int64_t, bool>, GraphRef> graphs_;  ///< by time steps (0: any) and saves
  std::map<std::int64_t, Dim> parts_;                         ///< by time steps
};

/// Runs some iterations of a loop from the state before them, as a graph of its own.
class ReplaySegments {
 public:
  /// inputs: the recompute op's inputs.
  ReplaySegments(const RecomputeAttrs& attrs, Tensors inputs);

  struct Ran {
    Tensors carries;    ///< the state behind the iterations
    Tensors residuals;  ///< if `saves`: one tensor each if is_dense(), otherwise lists
  };
  /// Runs iterations [begin, end), in the order of the loop.
  ///
  /// carries: the state before them. saves: compute the residuals.
  Ran run(std::int64_t begin, std::int64_t end, const Tensors& carries, bool saves);

  std::int64_t steps() const { return steps_; }  ///< iterations that the loop ran
  /// Returns true if each residual of a segment is one tensor, ordered by position.
  bool is_dense() const { return graphs_->is_dense(); }
  /// Returns the position of an iteration: the index of its slices.
  std::int64_t position(std::int64_t step) const {
    return loop_.trips.is_reverse ? steps_ - 1 - step : step;
  }

 private:
  Tensors named_as_captures(Tensors carries) const;

  const RecomputeAttrs attrs_;
  const LoopAttrs& loop_;
  Tensors inputs_;              ///< of the loop
  std::vector<Tensors> lists_;  ///< by slice, the elements if it is a list
  Tensor lengths_;              ///< of the entries, if these finish one by one
  Tensors tokens_;              ///< by symbol of graphs_
  std::int64_t steps_ = 0;
  Dim time_;  ///< the named dim of dense slices; a plain dim counts as none
  std::shared_ptr<ReplaySegmentGraphs> graphs_;
};

}  // namespace reel
