// core/runtime/detect_nan.h — DetectNan, which checks the result of every op of this thread.
#pragma once

#include "reel/core/base/errors.h"
#include "reel/core/base/visibility.h"
#include "reel/core/types/mode.h"
#include "reel/core/types/tensor.h"

REEL_API_BEGIN
namespace reel {

/// A value is NaN or infinite (check_numerics, DetectNan).
class NumericsError : public Error {
 public:
  using Error::Error;
};

/// Options of DetectNan.
struct DetectNanOptions {
  /// True: an infinity made from finite numbers is an error too, as in exp(100) of f32, 1 / 0 and
  /// log(0). Infinities that an op receives and passes on, as in masks of -inf, never are.
  bool infinities = true;
};

/// While it exists, every op that this thread computes throws a NumericsError if its result has a
/// NaN: in eager mode, in graphs of all executors, and in gradients.
///
///   {
///     DetectNan guard;
///     model = step(model, batch);  // throws at the first op that makes a NaN
///   }
///
/// The error names the op and its line, the loops and iterations, the first such index, and whether
/// the operands were finite. For an op of a gradient it names the op of the forward pass and that
/// op's line. Padding and finished entries of a scan may have any value.
///
/// Cost without a guard: a run of a plan reads one more word, an eager op none. With one, each op
/// reads its result once, nothing is overwritten in place, and a plan runs without the passes that
/// move or fuse ops. Not for measurements. A plan or dataflow run that finds a NaN runs again in
/// the interpreter, whose error names the iteration. Graphs that print run in the interpreter from
/// the beginning. JitOptions::detect_nan does the same for one function. Guards nest; the innermost
/// one counts.
class DetectNan {
 public:
  explicit DetectNan(DetectNanOptions options = {});
  ~DetectNan();
  DetectNan(const DetectNan&) = delete;
  DetectNan& operator=(const DetectNan&) = delete;

 private:
  DetectNanOptions options_;
  const DetectNanOptions* outer_;
};

namespace detail {

/// Sets the options that apply on this thread: the options of another thread's guard, or null for
/// ops that the library applies for itself, as passes do.
class NanCheckScope {
 public:
  explicit NanCheckScope(const DetectNanOptions* options) : outer_(thread_mode.nan_checks) {
    thread_mode.set_nan_checks(options);
  }
  ~NanCheckScope() { thread_mode.set_nan_checks(outer_); }
  NanCheckScope(const NanCheckScope&) = delete;
  NanCheckScope& operator=(const NanCheckScope&) = delete;

 private:
  const DetectNanOptions* outer_;
};

/// Gives checks the entries that run in an iteration of a scan. Finished entries compute on values
/// of a running one, which an error must not name.
class RunningEntries {
 public:
  /// running: booleans over entries, for each scan.
  explicit RunningEntries(Tensors running);
  ~RunningEntries();
  RunningEntries(const RunningEntries&) = delete;
  RunningEntries& operator=(const RunningEntries&) = delete;
  /// Returns the masks of all scans around.
  static Tensors masks();

 private:
  Tensors running_;
  RunningEntries* outer_;
};

}  // namespace detail

}  // namespace reel
REEL_API_END
