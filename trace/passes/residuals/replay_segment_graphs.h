// trace/passes/residuals/replay_segment_graphs.h — ReplaySegmentGraphs: graphs that run some
// iterations of a loop again.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "reel/core/dims/dim_changes.h"
#include "reel/core/ops/control/recompute.h"

namespace reel {

/// Graphs that run some iterations of a loop. Their inputs are the loop's inputs, with slices and
/// lengths of these iterations only.
///
///   Before: residuals = recompute(x, h, …)      of the loop over x{f32[time,8]}
///   After:  for a segment: (number of steps, lengths, position, symbols, h, x{f32[chunk,8]}, …)
///             {h, residuals} = loop(…)
///
/// A plan stores this object with the recompute op, and so the plans of the graphs: plans are made
/// once for every set of sizes, whatever the dims of a call are.
///
/// Thread-safe.   Preserves: bits of the iterations; their effects do not happen again.
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
  Dim dim_of_segment(const Dim& time, std::int64_t first, std::int64_t count);
  /// Returns true if each residual of a segment is one tensor, ordered by position.
  bool is_dense() const { return is_dense_; }

 private:
  static constexpr std::size_t kMaxCached = 16;  ///< limit of cached graphs and dims
  const LoopAttrs& loop() const { return get<LoopAttrs>(loop_.get()); }
  Dim find_time() const;
  Dims find_symbols() const;
  LoopAttrs loop_of_segment(const Dim& chunk) const;
  std::vector<ValueId> add_inputs(Graph& to, const LoopAttrs& segment, const Dim& chunk) const;
  Ref<Graph> make_graph(const Dim& chunk, bool saves) const;

  const AttrsRef loop_;
  const std::size_t first_residual_;
  std::vector<TensorType> types_;    ///< of the loop's inputs
  std::vector<TensorType> lengths_;  ///< of the lengths, if entries finish one by one
  bool is_dense_ = false;
  Dims symbols_;
  Dim time_;  ///< the named dim of dense slices; a plain dim counts as none
  const DimChanges renames_;
  std::mutex mutex_;
  std::map<std::pair<std::int64_t, bool>, GraphRef> graphs_;  ///< by time steps (0: any) and saves
  std::map<std::int64_t, Dim> segment_dims_;                  ///< by time steps
};

/// Returns true if each residual of the loop is one tensor, ordered by position.
///
/// inputs: types of the recompute op's inputs; the loop's inputs come first.
bool saves_in_one_buffer(const RecomputeAttrs& attrs, std::span<const TensorType> inputs);

}  // namespace reel
