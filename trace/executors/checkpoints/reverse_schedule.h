// trace/executors/checkpoints/reverse_schedule.h — ReverseSchedule: the reverse sweep over a loop
// with checkpoints.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "reel/core/ops/control/recompute.h"
#include "reel/trace/executors/checkpoints/revolve.h"

namespace reel {

/// Decides which iterations are run again, and from which checkpoint. It counts in chunks: a chunk
/// is one iteration unless the loop ran in larger chunks. A window is a run of consecutive chunks
/// that are recomputed together. The last window is recomputed first.
///
/// Under Checkpoint::every a window is all iterations between two checkpoints. Under a budget, half
/// of the budget holds the residuals of a window. If a gradient then requests several steps at
/// once, a window is one or more whole requests, so that each request is one run. These windows may
/// span checkpoints. If the loop ran in chunks, a request may be several runs.
class ReverseSchedule {
 public:
  /// checkpoints: the chunk behind each checkpoint. chunks: their number. `loop` must outlive this
  /// object.
  ReverseSchedule(const LoopAttrs& loop, std::vector<std::int64_t> checkpoints, std::int64_t chunks,
                  bool is_in_chunks)
      : loop_(loop),
        checkpoints_(std::move(checkpoints)),
        chunk_count_(chunks),
        is_in_chunks_(is_in_chunks) {}

  struct Bytes {
    std::int64_t state, chunk;  ///< bytes of a state, and of a chunk's residuals
  };
  /// Returns the sizes behind a checkpoint. Called for budgets only.
  using Measure = std::function<Bytes(std::size_t checkpoint)>;

  /// Selects the run that ends at `end`. Chunks [begin, end) are the rest of a request of
  /// `together` chunks. Returns true if the run begins at another state than the run before: at
  /// checkpoint().
  bool find(std::int64_t begin, std::int64_t end, std::int64_t together, const Measure& measure);
  std::size_t checkpoint() const { return checkpoint_; }
  /// Returns the chunk behind that checkpoint.
  std::int64_t first() const { return checkpoints_[checkpoint_]; }
  /// Returns the runs that are needed before the window that ends at `end`; see Revolve.
  std::vector<Revolve::Advance> advances_to(std::int64_t end);
  /// Returns how many states need memory, including the checkpoint itself.
  std::size_t states() const { return revolve_->checkpoints(); }
  /// Returns the first chunk of the window behind these runs.
  std::int64_t begin_behind(const std::vector<Revolve::Advance>& advances) const {
    return advances.empty() ? std::max(revolve_->last_checkpoint(), first()) : advances.back().to;
  }
  std::span<const std::int64_t> checkpoints() const { return checkpoints_; }

 private:
  std::size_t checkpoint_before(std::int64_t chunk) const;
  std::int64_t end_of_gap(std::size_t checkpoint) const {
    return checkpoint + 1 < checkpoints_.size() ? checkpoints_[checkpoint + 1] : chunk_count_;
  }
  /// Returns true if windows are whole requests, which may begin before a checkpoint.
  bool is_over_gaps(std::int64_t together) const {
    return loop_.policy.bytes && !is_in_chunks_ && together > 1;
  }
  bool continues(std::int64_t begin, std::int64_t end, std::int64_t together) const;

  const LoopAttrs& loop_;
  std::vector<std::int64_t> checkpoints_;
  std::int64_t chunk_count_;
  bool is_in_chunks_;
  std::size_t checkpoint_ = 0;
  std::int64_t window_ = 1, origin_ = 0;
  std::int64_t together_ = 0;       ///< chunks of a request that is one run; otherwise 0
  std::optional<Revolve> revolve_;  ///< over the chunks behind `origin_`
};

}  // namespace reel
