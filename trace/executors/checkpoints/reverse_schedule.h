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

/// Decides which units (iterations or chunks) are run again, and from which checkpoint. Units are
/// recomputed one leaf, a run of consecutive units, at a time, the last leaf first.
///
/// Under Checkpoint::every a leaf is everything between two checkpoints. Under a budget it is as
/// much as half of the budget holds. If a gradient then requests several steps at once, a leaf is
/// one or more whole requests, so that each request is one run. These leaves may span checkpoints.
/// If the loop ran in chunks, a request may be several runs.
class ReverseSchedule {
 public:
  /// kept: the unit behind each checkpoint. units: their total number. `loop` must outlive this
  /// object.
  ReverseSchedule(const LoopAttrs& loop, std::vector<std::int64_t> kept, std::int64_t units,
                  bool is_in_chunks)
      : loop_(loop), kept_(std::move(kept)), units_(units), is_in_chunks_(is_in_chunks) {}

  struct Bytes {
    std::int64_t state, unit;  ///< bytes of a state, and of a unit's residuals
  };
  /// Returns the sizes behind a checkpoint. Called for budgets only.
  using Measure = std::function<Bytes(std::size_t checkpoint)>;

  /// Selects the run that ends at `end`: the end of the rest of a request, which begins at `begin`
  /// and has `together` units. Returns true if the run needs a state other than before: the one at
  /// checkpoint().
  bool find(std::int64_t begin, std::int64_t end, std::int64_t together, const Measure& measure);
  std::size_t checkpoint() const { return checkpoint_; }
  /// Returns the unit behind that checkpoint.
  std::int64_t first() const { return kept_[checkpoint_]; }
  /// Returns the runs that are needed before the leaf that ends at `end`; see Revolve.
  std::vector<Revolve::Advance> way_to(std::int64_t end);
  /// Returns how many states need memory, including the checkpoint itself.
  std::size_t states() const { return revolve_->checkpoints(); }
  /// Returns the first unit of the leaf that these runs lead to.
  std::int64_t begin_behind(const std::vector<Revolve::Advance>& advances) const {
    return advances.empty() ? std::max(revolve_->last_checkpoint(), first()) : advances.back().to;
  }
  std::span<const std::int64_t> kept() const { return kept_; }

 private:
  std::size_t checkpoint_before(std::int64_t unit) const;
  std::int64_t end_of_gap(std::size_t checkpoint) const {
    return checkpoint + 1 < kept_.size() ? kept_[checkpoint + 1] : units_;
  }
  /// Returns true if leaves are whole requests, which may begin before a checkpoint.
  bool is_over_gaps(std::int64_t together) const {
    return loop_.policy.bytes && !is_in_chunks_ && together > 1;
  }
  bool goes_on(std::int64_t begin, std::int64_t end, std::int64_t together) const;

  const LoopAttrs& loop_;
  std::vector<std::int64_t> kept_;
  std::int64_t units_;
  bool is_in_chunks_;
  std::size_t checkpoint_ = 0;
  std::int64_t leaf_ = 1, origin_ = 0;
  std::int64_t together_ = 0;       ///< units of a request that is one run; otherwise 0
  std::optional<Revolve> revolve_;  ///< over the units behind `origin_`
};

/// Returns true if each residual of the loop is one tensor, ordered by position.
///
/// inputs: types of the recompute op's inputs; the loop's inputs come first.
bool saves_in_one_buffer(const RecomputeAttrs& attrs, std::span<const TensorType> inputs);

}  // namespace reel
