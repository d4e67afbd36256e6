// trace/executors/checkpoints/recomputed_residuals.h — RecomputedResiduals: residuals of a loop,
// recomputed from its checkpoints.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "reel/core/ops/control/recompute.h"
#include "reel/core/runtime/residual_source.h"
#include "reel/trace/executors/checkpoints/replay_segments.h"
#include "reel/trace/executors/checkpoints/reverse_schedule.h"

namespace reel {

/// Numbers of iterations that were run again since the program began. advanced: only to reach later
/// ones. saved: to compute their residuals.
struct RecomputedSteps {
  std::int64_t advanced = 0, saved = 0;
};
/// Returns these numbers, over all threads. Thread-safe.
RecomputedSteps recomputed_steps();

/// Recomputes a loop's residuals segment by segment and holds a window of them in memory.
///
/// Under Checkpoint::every the window is all iterations between two checkpoints. Under a budget it
/// has as many iterations as half of the budget holds. If more lie between two checkpoints, Revolve
/// decides which are run again to reach the window. A loop that ran in chunks is run again in the
/// same chunks, as these give the same bits. Otherwise a chunk is one iteration. Chunks are
/// numbered in the order in which the loop ran.
///
/// A chunked gradient requests many time steps at once. Under a budget, if the loop ran step by
/// step, a request is recomputed in one run, across checkpoints if necessary. If a request spans
/// several runs, their residuals are copied into one buffer as each run finishes. The run is then
/// freed, unless it has chunks before the request. Peak memory: the request plus one run.
class RecomputedResiduals final : public ResidualSource {
 public:
  /// inputs: the recompute op's inputs. types: types of the residuals, for all time steps.
  RecomputedResiduals(const RecomputeAttrs& attrs, Tensors inputs, std::vector<TensorType> types);
  void need(std::int64_t first, std::int64_t count) override;
  char* data(std::size_t i, std::int64_t step) override;
  Tensor tensor(std::size_t i, std::int64_t step) override;
  std::int64_t count() const override { return segments_.steps(); }
  std::int64_t bytes_held() const override;

 private:
  /// The loop's state before a chunk.
  struct State {
    std::int64_t chunk;
    Tensors carries;
  };
  /// Residuals of consecutive chunks, in memory.
  struct Segment {
    std::int64_t begin, end;
    Tensors whole;                  ///< by value: if dense, all time steps by position
    std::vector<Tensors> elements;  ///< by value: otherwise one tensor per time step
  };
  const LoopAttrs& loop() const { return attrs_.saving(); }
  Tensor carry_at(std::size_t carry, std::size_t checkpoint) const;
  std::int64_t step_of(std::int64_t chunk) const;
  std::int64_t chunk_at(std::int64_t step) const;
  std::int64_t first_position(std::int64_t begin, std::int64_t end) const {
    return loop().trips.is_reverse ? segments_.steps() - step_of(end) : step_of(begin);
  }
  ReplaySegments::Ran run(std::int64_t begin, std::int64_t end, const Tensors& carries, bool saves);
  State state_at(std::size_t checkpoint) const;
  State last_state_behind(std::size_t checkpoint);
  bool state_has_any_size() const;
  ReverseSchedule::Bytes bytes_behind(std::size_t checkpoint);
  ReverseSchedule::Bytes bytes_at(const State& state);
  std::int64_t bytes_of_step(const State& state);
  std::int64_t run_before(std::int64_t begin, std::int64_t end, std::int64_t together);
  void copy_to_request(const Segment& segment);
  bool is_dense(std::size_t i) const { return !types_[i].is_list(); }
  /// Returns the loop's stack of residual i.
  std::size_t stack_of(std::size_t i) const { return attrs_.first_residual + i; }
  Segment as_segment(std::int64_t begin, std::int64_t end, Tensors residuals) const;
  static Tensor in_one_buffer(Tensors steps);
  /// The segment with the requested time steps, and the position of its first one.
  struct Place {
    const Segment& segment;
    std::int64_t first;
  };
  Place place() const {
    if (joined_) return {*joined_, first_};
    return {window_.back(), first_position(window_.back().begin, window_.back().end)};
  }

  const std::uint64_t begin_ = next_block_id();  ///< blocks with later ids were made here
  RecomputeAttrs attrs_;
  std::vector<TensorType> types_;
  ReplaySegments segments_;
  std::int64_t chunk_size_ = 1, chunk_count_ = 0;  ///< time steps of a chunk; number of chunks
  Tensors checkpoints_;             ///< by carry, the list of its values at the checkpoints
  std::vector<Tensors> in_memory_;  ///< by carry, the list's elements unless it is in a file
  std::optional<ReverseSchedule> schedule_;
  std::vector<State> states_;            ///< checkpoints to run chunks from
  std::deque<Segment> window_;           ///< the window, consecutive
  std::int64_t first_ = -1, count_ = 0;  ///< the last request
  bool is_there_ = false;                ///< its time steps are in memory; false after an exception
  std::optional<Segment> joined_;        ///< the last request, if it was copied into one buffer
};

}  // namespace reel
