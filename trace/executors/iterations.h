// trace/executors/iterations.h — Iterations, which iterations of a loop run, and for which entries.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>

#include "reel/core/cancellation.h"
#include "reel/core/ops.h"
#include "reel/core/ops/entries.h"
#include "reel/core/ops/loop.h"

namespace reel {

/// What counts the iterations of one run of a loop, for every executor.
class Iterations {
 public:
  /// in: inputs of the op.
  Iterations(const LoopAttrs& attrs, OpInputs in);

  /// How many there may be, INT64_MAX where only a condition or a list of slices tells. Lists may
  /// lower it before the first.
  std::int64_t limit;
  /// The same where it is a number of steps to reckon with: a condition may end a loop long before.
  std::optional<std::int64_t> expected() const {
    if ((attrs_.cond && !attrs_.is_reverse) || limit == std::numeric_limits<std::int64_t>::max())
      return std::nullopt;
    return limit;
  }
  /// How many have run.
  const std::int64_t& count() const { return count_; }
  /// Where this one is: the step that the body sees.
  std::int64_t step_at(std::int64_t position) const { return first_ + position; }
  /// The number of this one, for errors.
  std::int64_t number() const {
    const std::int64_t step = step_at(attrs_.is_reverse ? limit - 1 - count_ : count_);
    if (attrs_.counts_down == attrs_.is_reverse) return step;
    return (attrs_.has_chunk ? all_ : limit) - 1 - step;
  }

  /// Calls step(position, live) for each, unless the call is cancelled; live: which entries run,
  /// undefined where all do. ask(): the condition, a Tensor that is read before anything else is
  /// called.
  template <class Step, class Ask>
  void run(Step&& step, Ask&& ask);

  /// The next one alone, of a loop without entries or a condition, unless the call is cancelled.
  template <class Step>
  void run_next(Step&& step) {
    check_cancellation();
    step(attrs_.is_reverse ? limit - 1 - count_ : count_);
    ++count_;
  }

  /// Goes on behind so many iterations, which have run elsewhere.
  void skip(std::int64_t count) { count_ = count; }
  /// The same behind so many iterations. reached: of each entry, of a loop that makes_lengths().
  Iterations behind(std::int64_t count, const Tensor& reached = {}) const {
    Iterations result = *this;
    result.count_ = count;
    if (reached.is_defined()) result.reached_ = reached;
    return result;
  }
  /// Which entries run at a position, as far as lengths say; undefined where there are none.
  Tensor live_at(std::int64_t position) const;

  /// The dim that the loop makes, for as many iterations as ran.
  Dim made_dim() const;
  /// The output that tells others that dim.
  Tensor token(const Dim& made) const;
  /// How many iterations each entry ran, of a loop that has entries and a condition.
  const Tensor& reached() const { return reached_; }

 private:
  const LoopAttrs& attrs_;
  Tensor lengths_, reached_;
  std::int64_t count_ = 0;
  std::int64_t first_ = 0, all_ = 0;  ///< where the chunk begins that it runs over, steps in all
};

/// An integer scalar.
inline std::int64_t integer_of(const Tensor& t) {
  return t.dtype() == i64 ? *t.data<std::int64_t>() : *t.data<std::int32_t>();
}

template <class Step, class Ask>
void Iterations::run(Step&& step, Ask&& ask) {
  const bool has_entries = !attrs_.entry_dims.empty();
  if (attrs_.is_reverse) {
    for (; count_ < limit; ++count_) {
      check_cancellation();
      step(limit - 1 - count_, has_entries ? live_at(limit - 1 - count_) : Tensor());
    }
  } else if (!attrs_.is_scan) {
    for (; count_ < limit && (!attrs_.cond || *ask().template data<bool>()); ++count_) {
      check_cancellation();
      step(count_, Tensor());
    }
  } else {
    Tensor active;  // those whose condition held so far
    if (attrs_.cond) active = ones(attrs_.entry_dims, boolean);
    if (attrs_.cond && attrs_.cond_before_body) active = logical_and(active, ask());
    while (count_ < limit) {
      check_cancellation();
      Tensor live = has_entries ? live_at(count_) : Tensor();
      if (active.is_defined()) live = live.is_defined() ? logical_and(live, active) : active;
      if (live.is_defined() && !any_live(mask_padding(live))) break;
      step(count_, has_entries ? live : Tensor());
      ++count_;
      if (!attrs_.cond) continue;
      if (has_entries) reached_ = reached_ + cast(live, i32);
      active = logical_and(active, ask());
    }
  }
}

}  // namespace reel
