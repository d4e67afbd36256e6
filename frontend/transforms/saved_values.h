// frontend/transforms/saved_values.h — saved_values, a report of the residuals of a function.
#pragma once

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <string>
#include <tuple>
#include <vector>

#include "reel/core/base/visibility.h"
#include "reel/frontend/tree/tree.h"

REEL_API_BEGIN
namespace reel {

/// One residual: a tensor or list of tensors that the forward run saves for the gradient.
struct KeptValue {
  /// The op that makes it: "dot"; in a loop "scan \"encoder\": tanh"; in a loop within a loop "scan
  /// \"encoder\": scan \"layer\": tanh".
  std::string op;
  std::string name;    ///< the name from checkpoint_name, or empty
  TensorType type;     ///< of all iterations together, if a loop makes it
  std::int64_t count;  ///< tensors of this type in a list, otherwise 1; -1: known only during a run
  std::int64_t bytes;  ///< in total; -1: known only during a run
  bool is_spilled;     ///< true: stored in a file, except for a window
  /// The largest part of `bytes` that is in memory at a time. For a spilled value: the window and
  /// the data on the way to the file and back; if a plan runs the loop in chunks, blocks hold whole
  /// chunks. -1: known only during a run.
  std::int64_t in_memory;
  /// The most bytes written to the file; 0: none. Includes checkpoints that are dropped later. -1:
  /// known only during a run.
  std::int64_t in_file;
};

/// The largest memory of a loop under a Checkpoint until its gradient is done, if the gradient runs
/// iteration by iteration: in eager mode and in the interpreter.
///
/// A plan that runs the loop in chunks holds whole chunks of iterations: one more than fits into
/// half of a budget, or two. If the trip count is known only during a run, the budget is the bound:
/// half of it for states, half for residuals. Each half holds at least one state, or one
/// iteration's residuals.
struct KeptByLoop {
  std::string loop;          ///< as in: scan "encoder"
  std::int64_t checkpoints;  ///< bytes of states in memory, forwards and backwards, and of their
                             ///< iteration numbers; -1: known only during a run
  std::int64_t steps;  ///< iterations recomputed, and in memory, at a time; -1: known only during a
                       ///< run
  std::int64_t bytes;  ///< bytes of their residuals, except for loops that a rule recomputes; -1 as
                       ///< above
  double runs;         ///< average runs of an iteration, with the forward one; -1 as above
  bool has_arrays;     ///< true: `checkpoints` excludes elements that iterations put into arrays
};

/// The values that a function's gradient needs; print them with <<.
struct KeptValues {
  std::vector<KeptValue> values;
  std::vector<KeptByLoop> loops;  ///< loops under a Checkpoint, without nested ones
  /// Returns the sum of the known sizes.
  std::int64_t bytes() const;
  /// Returns true if a size is known only during a run.
  bool has_unknown() const;
  /// Return the largest part of bytes() that is in memory at a time, or in files.
  std::int64_t bytes_in_memory() const;
  std::int64_t bytes_in_files() const;
};
/// Prints a line for each value, their sum (with a remark if some sizes are known only during a
/// run), and a line for each loop.
std::ostream& operator<<(std::ostream& out, const KeptValues& kept);

namespace detail {
KeptValues find_residuals(TreeLeaves arguments,
                          const std::function<TreeLeaves(const TreeLeaves&)>& function);
}  // namespace detail

/// Returns a function of the same arguments that reports the residuals of f, for the gradient with
/// respect to all floating arguments and captured tensors. Records f, as jit does, and runs
/// nothing.
///
/// The arguments themselves are not counted, since the caller holds them anyway. In eager mode a
/// loop without a policy saves more: every tensor that an op's gradient reads.
///
///   std::cout << saved_values(loss)(model, batch);
///
/// f: a function of trees. The returned function returns KeptValues. Throws the exceptions of
/// recording f; TraceError inside a trace.
template <class F>
auto saved_values(F f) {
  return [f = std::move(f)]<class... Args>(const Args&... args) {
    const std::tuple<Args...> arguments(args...);
    return detail::find_residuals(flatten(arguments), [&](const TreeLeaves& inside) {
      return flatten(std::apply(f, unflatten(arguments, inside)));
    });
  };
}

}  // namespace reel
REEL_API_END
