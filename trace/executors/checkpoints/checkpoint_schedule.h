// trace/executors/checkpoints/checkpoint_schedule.h — CheckpointSchedule: before which iterations
// of a loop a checkpoint is taken.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "reel/core/ops/loop/loop.h"

namespace reel {

/// Decides which checkpoints a loop keeps while it runs; the trip count need not be known.
///
/// Checkpoint::every: a checkpoint every `every` steps. Budget: checkpoints use at most three
/// quarters of the slots. When these are full, every second checkpoint is dropped, and from then on
/// checkpoints are taken half as often. The remaining slots serve the reverse sweep (revolve.h). A
/// chunked loop takes checkpoints before chunks only.
class CheckpointSchedule {
 public:
  /// every: steps between checkpoints; 0 for a budget of `slots` checkpoints.
  CheckpointSchedule(std::int64_t every, std::int64_t slots);

  /// The actions before an iteration: first drop every second checkpoint (from the second one on),
  /// `drops` times; then take a checkpoint if `takes`.
  struct Decision {
    bool takes = false;
    int drops = 0;
  };
  /// Returns the actions before an iteration. Must be called before each one, in increasing
  /// order.
  ///
  /// step: number of the iteration; of a chunked loop, the first time step of the chunk.
  Decision before(std::int64_t step);
  /// Returns true if before() may ask for a checkpoint at this step.
  bool is_due(std::int64_t step) const { return place(step) >= next_; }
  /// Returns the number of checkpoints that exist now.
  std::int64_t taken() const { return taken_; }
  /// Lowers the limit for `slots` slots, as the state has grown.
  void allow(std::int64_t slots) { most_ = std::min(most_, most(slots)); }
  /// Returns how many of `slots` slots the forward loop may use for checkpoints.
  static std::int64_t most(std::int64_t slots) {
    return std::max<std::int64_t>(slots - slots / 4 - (slots % 4 != 0), 1);
  }

 private:
  /// Returns the position in the unit of the stride: under a budget calls of before(), otherwise
  /// steps. Under a budget a stride in time steps that is shorter than a chunk would drop
  /// checkpoints and still take as many as before.
  std::int64_t place(std::int64_t step) const { return most_ ? calls_ : step; }

  std::int64_t every_, most_;  ///< 0: no limit
  std::int64_t calls_ = 0;     ///< calls of before(): iterations, or chunks
  std::int64_t next_ = 0, taken_ = 0;
};

/// Drops every second element, from the second one on.
template <class T>
void thin(std::vector<T>& checkpoints) {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < checkpoints.size(); i += 2)
    checkpoints[kept++] = std::move(checkpoints[i]);
  checkpoints.resize(kept);
}

/// Bytes that a checkpoint takes beside its state: the number of its step, and the count of time
/// steps of its iteration or chunk (i64 each).
inline constexpr std::int64_t kBytesOfWhich = 16;

/// Returns how many checkpoints a loop takes, including those that it drops later.
///
/// slots: checkpoint slots of its budget; not read for Checkpoint::every.
/// chunks: the number of chunks of a chunked loop; otherwise of iterations.
/// chunk_size: time steps of each.
std::int64_t checkpoints_taken(const LoopAttrs& attrs, std::int64_t slots, std::int64_t chunks,
                               std::int64_t chunk_size);

/// Returns the number of checkpoint slots of a loop under a budget; at least 1. state_bytes: size
/// of its state. Half of the budget is for checkpoints, the other half for recomputed residuals.
std::int64_t slots_of(const LoopAttrs& attrs, std::int64_t state_bytes);

}  // namespace reel
