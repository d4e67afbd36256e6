// trace/executors/kept_steps.h — KeptSteps, before which steps of a loop a checkpoint is taken.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "reel/core/ops/loop.h"

namespace reel {

/// Which checkpoints a loop keeps while it runs, however long that will be. Every so many steps; or
/// as many as a number of slots allows: when three quarters of these are taken, every second
/// checkpoint is dropped, and from then on they are taken half as often. The rest of the slots is
/// for the way back (revolve.h). Where a loop goes in chunks, before chunks only.
class KeptSteps {
 public:
  /// every: of a run of steps, 0 for as few as `slots` allow.
  KeptSteps(std::int64_t every, std::int64_t slots);

  /// Whether a checkpoint is to be taken before this step (or chunk, the first of whose steps it
  /// is); steps rise. Before that, so many times: every second of those that were taken is to be
  /// dropped, the second one among them. To be asked before each.
  struct Decision {
    bool takes = false;
    int drops = 0;
  };
  Decision before(std::int64_t step);
  /// before() may say that one is to be taken.
  bool is_due(std::int64_t step) const { return place(step) >= next_; }
  /// How many checkpoints there are now.
  std::int64_t taken() const { return taken_; }
  /// From here on there are at most so many slots: the state has grown.
  void allow(std::int64_t slots) { most_ = std::min(most_, most(slots)); }
  /// Of so many slots, how many a loop takes.
  static std::int64_t most(std::int64_t slots) {
    return std::max<std::int64_t>(slots - slots / 4 - (slots % 4 != 0), 1);
  }

 private:
  /// What strides count: under a budget steps, or chunks, of which one may be shorter. Strides of
  /// fewer steps than a chunk has would drop checkpoints, and take as many as before.
  std::int64_t place(std::int64_t step) const { return most_ ? calls_ : step; }

  std::int64_t every_, most_;  ///< 0: any number
  std::int64_t calls_ = 0;     ///< of before(): steps, or chunks
  std::int64_t next_ = 0, taken_ = 0;
};

/// Drops every second one, the second one among them.
template <class T>
void thin(std::vector<T>& checkpoints) {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < checkpoints.size(); i += 2)
    checkpoints[kept++] = std::move(checkpoints[i]);
  checkpoints.resize(kept);
}

/// Of a checkpoint: which step it is, and of how many a unit consists.
inline constexpr std::int64_t kBytesOfWhich = 16;

/// How many checkpoints such a loop takes in so many units (steps, or chunks of `unit` steps),
/// those that it drops again counted. slots: of a budget.
std::int64_t checkpoints_taken(const LoopAttrs& attrs, std::int64_t slots, std::int64_t units,
                               std::int64_t unit);

/// The slots of a loop under a budget, whose state has so many bytes: half of the budget is that of
/// checkpoints, the other half that of steps that are computed again.
std::int64_t slots_of(const LoopAttrs& attrs, std::int64_t state_bytes);

}  // namespace reel
