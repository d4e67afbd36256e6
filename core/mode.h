// core/mode.h — what is active on this thread: a trace, tapes, a scan with ended entries.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "reel/core/op.h"

namespace reel {

/// A tape, as the door sees it: told of every op that is applied while it is active.
class Recorder {
 public:
  virtual ~Recorder() = default;
  virtual void record(const Op& op, const AttrsRef& attrs, OpInputs inputs,
                      std::span<const Tensor> outputs) = 0;
  /// Cotangents of the tensor would lead to something that is watched.
  virtual bool is_tracked(const Tensor& tensor) const = 0;
  /// Its cotangent may be given as rows (Vjp::takes_rows).
  virtual bool takes_rows(const Tensor& tensor) const = 0;
  /// Marks where a loop of eager mode begins, where each iteration begins, and where the loop ends.
  enum class Mark { loop_begins, iteration_begins, loop_ends };
  /// loop: of one that begins, what errors of its gradient call it; empty: nothing. iteration: of
  /// one that begins, its number.
  virtual void mark(Mark what, const std::string& loop, std::int64_t iteration) = 0;

  Recorder* outer = nullptr;  ///< the tape that was active before this one
};

/// Replaces what an op of a scan's body reads from outside, for entries that have ended (eager mode
/// only).
class EntryScope {
 public:
  virtual ~EntryScope() = default;
  virtual Tensor visible(const Tensor& input) = 0;
  /// The dim that stands in the body for one from outside: it is the same to who compares them.
  virtual Dim visible(const Dim& dim) = 0;
  /// It is such a dim.
  virtual bool shows(const Dim& dim) const = 0;
};

struct ThreadMode {
  GraphBuilder* builder = nullptr;  ///< the innermost trace; null in eager mode
  Recorder* tape = nullptr;         ///< the innermost tape that was opened inside it
  EntryScope* entries = nullptr;
  /// Where not 0, what is recorded belongs where this was the newest block id, before loops and
  /// branches that began since then.
  std::uint64_t belongs_at = 0;
};
inline constinit thread_local ThreadMode thread_mode;

inline bool is_tracing() { return thread_mode.builder != nullptr; }

/// Sets the mode for a scope, and sets it back however the scope is left.
class ModeScope {
 public:
  explicit ModeScope(ThreadMode next) : before_(thread_mode) { thread_mode = next; }
  ~ModeScope() { thread_mode = before_; }
  ModeScope(const ModeScope&) = delete;
  ModeScope& operator=(const ModeScope&) = delete;

 private:
  ThreadMode before_;
};

/// Marks a loop on all active tapes.
inline void mark_tapes(Recorder::Mark what, const std::string& loop = {},
                       std::int64_t iteration = 0) {
  for (Recorder* tape = thread_mode.tape; tape; tape = tape->outer)
    tape->mark(what, loop, iteration);
}

}  // namespace reel
