// core/types/mode.h — ThreadMode, the active context of this thread: trace, tapes, and a scan with
// finished entries.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "reel/core/base/ref.h"
#include "reel/core/base/visibility.h"
#include "reel/core/types/fwd.h"
#include "reel/core/types/tensor.h"

REEL_API_BEGIN
namespace reel {

struct DetectNanOptions;
struct OpInput;

/// A tape as bind() sees it: informed of every op that is applied while it is active.
class Recorder {
 public:
  virtual ~Recorder() = default;
  /// Records an application of an op. Called after the op has run.
  virtual void record(const Op& op, const Ref<const Attrs>& attrs, std::span<const OpInput> inputs,
                      std::span<const Tensor> outputs) = 0;
  /// Returns true if cotangents of the tensor would reach a watched tensor.
  virtual bool is_tracked(const Tensor& tensor) const = 0;
  /// Returns true if the cotangent may be given as table rows (Vjp::takes_rows).
  virtual bool takes_rows(const Tensor& tensor) const = 0;
  /// Marks the begin of an eager loop, the begin of each iteration, and the end of the loop.
  enum class Mark { loop_begins, iteration_begins, loop_ends };
  /// loop: for loop_begins, the loop's name in errors of its gradient; may be empty. iteration: for
  /// iteration_begins, its number.
  virtual void mark(Mark what, const std::string& loop, std::int64_t iteration) = 0;

  Recorder* outer = nullptr;  ///< the tape that was active before this one
};

/// Replaces tensors and dims from outside that ops in a scan's body read, if entries have finished.
/// Eager mode only.
class EntryScope {
 public:
  virtual ~EntryScope() = default;
  virtual Tensor visible(const Tensor& input) = 0;
  /// Returns the dim that stands in the body for a dim from outside. Both compare equal.
  virtual Dim visible(const Dim& dim) = 0;
  /// Returns true if the dim stands for one from outside.
  virtual bool shows(const Dim& dim) const = 0;
};

struct ThreadMode {
  GraphBuilder* builder = nullptr;  ///< the innermost trace; null in eager mode
  Recorder* tape = nullptr;         ///< the innermost tape opened inside that trace
  EntryScope* entries = nullptr;
  /// If not 0, recorded ops belong to the moment when this was the newest block id, before loops
  /// and branches that began later.
  std::uint64_t belongs_at = 0;
};
/// The mode, and the options of this thread's innermost DetectNan, which a ModeScope leaves in
/// place. One object, since each object of a thread costs bind() a call if the library is a shared
/// one.
struct ThreadContext : ThreadMode {
  const DetectNanOptions* nan_checks = nullptr;  ///< null: results are not checked
  /// True if neither a trace nor finished entries change the inputs of an op, and its results need
  /// no check. One word, so that bind() pays for none of the three.
  bool is_plain = true;

  void set(const ThreadMode& mode) {
    static_cast<ThreadMode&>(*this) = mode;
    is_plain = !builder && !entries && !nan_checks;
  }
  void set_nan_checks(const DetectNanOptions* options) {
    nan_checks = options;
    is_plain = !builder && !entries && !nan_checks;
  }
};
inline constinit thread_local ThreadContext thread_mode;

inline bool is_tracing() { return thread_mode.builder != nullptr; }

/// Returns the dim as ops must see it. While tracing: its symbol, because attributes hold symbols.
/// In a scan with finished entries: the dim that these read. Otherwise: the dim itself.
Dim canonical(const Dim& dim);
Dims canonical(const Dims& dims);

/// Sets this thread's mode; the destructor restores the previous mode.
class ModeScope {
 public:
  explicit ModeScope(const ThreadMode& next) : before_(thread_mode) { thread_mode.set(next); }
  ~ModeScope() { thread_mode.set(before_); }
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
REEL_API_END
