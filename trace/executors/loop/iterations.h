// trace/executors/loop/iterations.h — Iterations: counts a loop's iterations and tells which
// entries run.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>

#include "reel/core/ops.h"
#include "reel/core/ops/loop/entries.h"
#include "reel/core/ops/loop/loop.h"
#include "reel/core/runtime/cancellation.h"

namespace reel {

/// Counts the iterations of one run of a loop, for every executor.
class Iterations {
 public:
  /// in: inputs of the op.
  Iterations(const LoopAttrs& attrs, OpInputs in);

  /// Upper bound of the number of iterations; INT64_MAX if only a condition or a list of slices
  /// ends the loop. Lists may lower it before the first iteration.
  std::int64_t limit;
  /// Returns `limit` if it is the number of iterations to expect. Returns nothing if it is
  /// unbounded, or if a condition may end the loop long before.
  std::optional<std::int64_t> expected() const {
    if ((attrs_.cond && !attrs_.trips.is_reverse) ||
        limit == std::numeric_limits<std::int64_t>::max())
      return std::nullopt;
    return limit;
  }
  /// Returns the number of iterations that have run.
  const std::int64_t& count() const { return count_; }
  /// Returns the time step at a position: the index that the body reads.
  std::int64_t step_at(std::int64_t position) const { return first_ + position; }
  /// Returns the number of this iteration for error messages. Gradient loops count as the forward
  /// loop does.
  std::int64_t number() const {
    const std::int64_t step = step_at(attrs_.trips.is_reverse ? limit - 1 - count_ : count_);
    if (attrs_.is_gradient_loop == attrs_.trips.is_reverse) return step;
    return (attrs_.chunking.within_chunk ? all_ : limit) - 1 - step;
  }

  /// Calls step(position, running) for each iteration. Throws if the call is cancelled.
  ///
  /// running: mask of the running entries; undefined if all run.
  /// eval_condition(): evaluates the condition. The returned Tensor is read before any other call.
  template <class Step, class EvalCondition>
  void run(Step&& step, EvalCondition&& eval_condition);

  /// Calls step(position) for the next iteration only. Requires a loop without entries and without
  /// a condition. Throws if the call is cancelled.
  template <class Step>
  void run_next(Step&& step) {
    check_cancellation();
    step(attrs_.trips.is_reverse ? limit - 1 - count_ : count_);
    ++count_;
  }

  /// Continues behind the first `count` iterations, which ran elsewhere.
  void skip(std::int64_t count) { count_ = count; }
  /// Returns a copy that continues behind the first `count` iterations. reached: iterations of each
  /// entry so far, if the loop makes_lengths().
  Iterations behind(std::int64_t count, const Tensor& reached = {}) const {
    Iterations result = *this;
    result.count_ = count;
    if (reached.is_defined()) result.reached_ = reached;
    return result;
  }
  /// Returns the mask of entries that run at a position, as far as lengths tell; undefined if there
  /// are no lengths.
  Tensor running_at(std::int64_t position) const;

  /// Returns the dim that the loop makes. Its size is the number of iterations that ran.
  Dim made_dim() const;
  /// Returns the output (a token) that tells later ops that dim.
  Tensor token(const Dim& made) const;
  /// Returns how many iterations each entry ran, for a loop with entries and a condition.
  const Tensor& reached() const { return reached_; }

 private:
  const LoopAttrs& attrs_;
  Tensor lengths_, reached_;
  std::int64_t count_ = 0;
  std::int64_t first_ = 0, all_ = 0;  ///< first time step of the chunk; steps in all
};

/// Returns the value of an integer scalar, i64 or i32.
inline std::int64_t integer_of(const Tensor& t) {
  return t.dtype() == i64 ? *t.data<std::int64_t>() : *t.data<std::int32_t>();
}

template <class Step, class EvalCondition>
void Iterations::run(Step&& step, EvalCondition&& eval_condition) {
  const bool has_entries = attrs_.has_entries();
  if (attrs_.trips.is_reverse) {
    for (; count_ < limit; ++count_) {
      check_cancellation();
      step(limit - 1 - count_, has_entries ? running_at(limit - 1 - count_) : Tensor());
    }
  } else if (!attrs_.trips.is_scan) {
    for (; count_ < limit && (!attrs_.cond || *eval_condition().template data<bool>()); ++count_) {
      check_cancellation();
      step(count_, Tensor());
    }
  } else {
    Tensor active;  // entries for which the condition has held so far
    if (attrs_.cond) active = mask_padding(ones(attrs_.entries.dims, boolean));
    if (attrs_.cond && attrs_.trips.cond_before_body)
      active = logical_and(active, eval_condition());
    while (count_ < limit) {
      check_cancellation();
      Tensor running = has_entries ? running_at(count_) : Tensor();
      if (active.is_defined())
        running = running.is_defined() ? logical_and(running, active) : active;
      if (running.is_defined() && !any_running(running)) break;
      step(count_, has_entries ? running : Tensor());
      ++count_;
      if (!attrs_.cond) continue;
      if (has_entries) reached_ = reached_ + cast(running, i32);
      active = logical_and(active, eval_condition());
    }
  }
}

}  // namespace reel
