// frontend/saved_values.h — saved_values, what the gradient of a function would keep.
#pragma once

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <string>
#include <tuple>
#include <vector>

#include "reel/frontend/tree.h"

namespace reel {

/// One tensor, or list of tensors, that is kept from the forward run for the gradient.
struct KeptValue {
  /// That makes it: "dot", or of a loop's steps "scan \"encoder\": tanh", of those of a loop in
  /// its steps "scan \"encoder\": scan \"layer\": tanh".
  std::string op;
  std::string name;    ///< that checkpoint_name gave it; else empty
  TensorType type;     ///< of all steps, where a loop makes it
  std::int64_t count;  ///< tensors of that type in a list; 1 otherwise; -1: only a run tells
  std::int64_t bytes;  ///< of all; -1: only a run tells
  bool is_spilled;     ///< all but a window of it lies in a file
  /// Of `bytes`, those in memory at most at a time: all, or the window's and what is on its way to
  /// the file and back (in a plan that runs the loop in chunks of steps, blocks have whole chunks).
  /// -1: only a run tells.
  std::int64_t in_memory;
  /// That are written to the file at most; 0: none. Of checkpoints, those that are dropped later
  /// are, too. -1: only a run tells.
  std::int64_t in_file;
};

/// What a loop under a Checkpoint takes at most, at any time until its gradient is done, where that
/// goes step by step: eagerly, and by the interpreter. A plan that runs the loop in chunks has
/// whole chunks of steps in memory, one more than half of a budget holds, or two. Where only a run
/// tells how long the loop is, a budget is the bound: half of it for states, half for steps; or one
/// of each where that is more.
struct KeptByLoop {
  std::string loop;          ///< scan "encoder"
  std::int64_t checkpoints;  ///< bytes of states in memory, forwards and on the way back, and of
                             ///< which steps they are; -1: only a run tells
  std::int64_t steps;        ///< that are run again, and in memory, at a time; -1
  std::int64_t bytes;        ///< that these save, but for loops that a rule has run again; -1
  double runs;               ///< of a step, on average, the forward one included; -1
  bool has_arrays;           ///< `checkpoints` leaves out elements that steps put into arrays
};

struct KeptValues {
  std::vector<KeptValue> values;
  std::vector<KeptByLoop> loops;  ///< under a Checkpoint; not those inside of others
  /// Of all whose bytes are known; whether there are others.
  std::int64_t bytes() const;
  bool has_unknown() const;
  /// Of those, what is in memory at a time, and what may lie in files, at most.
  std::int64_t bytes_in_memory() const;
  std::int64_t bytes_in_files() const;
};
/// A line for each value, their sum (which says where there is more that only a run tells), and a
/// line for each loop.
std::ostream& operator<<(std::ostream& out, const KeptValues& kept);

namespace detail {
KeptValues find_kept(TreeLeaves arguments,
                     const std::function<TreeLeaves(const TreeLeaves&)>& function);
}  // namespace detail

/// What the gradient of f, with respect to all floating arguments and captured tensors, would keep
/// from the forward run: found by recording f, as jit does, and running nothing. Arguments
/// themselves, which are there anyway, are not counted. In eager mode a loop without a policy keeps
/// more: every tensor that an op's gradient reads.
///
///   std::cout << saved_values(loss)(model, batch);
///
/// f: a function of trees; returns a function of the same arguments -> KeptValues. Throws what
/// recording throws; TraceError inside a trace.
template <class F>
auto saved_values(F f) {
  return [f = std::move(f)]<class... Args>(const Args&... args) {
    const std::tuple<Args...> arguments(args...);
    return detail::find_kept(flatten(arguments), [&](const TreeLeaves& inside) {
      return flatten(std::apply(f, unflatten(arguments, inside)));
    });
  };
}

}  // namespace reel
