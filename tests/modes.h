// tests/modes.h — InEveryMode, the fixture of tests that check a value or a gradient in every mode.
#pragma once

#include <gtest/gtest.h>

#include <cctype>
#include <optional>
#include <ostream>
#include <string>

#include "reel/reel.h"
#include "reel/tests/check.h"
#include "reel/tests/many_threads.h"

namespace reel {

/// One way to run a function. To add an executor to all tests, add a line here and one in
/// kEveryMode.
enum class RunMode {
  eager,
  interpreter,
  plan,
  chunks,     ///< a plan in which every loop that can runs in chunks of two iterations
  dataflow1,  ///< at most 1 iteration in flight; the next three: 2, 10 and 32
  dataflow2,
  dataflow10,
  dataflow32,
  dataflow_threads,  ///< at most ten iterations in flight, and every op may run on another thread
};
inline const auto kEveryMode = ::testing::Values(
    RunMode::eager, RunMode::interpreter, RunMode::plan, RunMode::chunks, RunMode::dataflow1,
    RunMode::dataflow2, RunMode::dataflow10, RunMode::dataflow32, RunMode::dataflow_threads);

inline std::ostream& operator<<(std::ostream& out, RunMode mode) {
  constexpr const char* kNames[] = {"eager",      "interpreter", "plan",
                                    "chunks",     "dataflow1",   "dataflow2",
                                    "dataflow10", "dataflow32",  "dataflow_threads"};
  return out << kNames[static_cast<int>(mode)];
}
inline std::string name_of_mode(const ::testing::TestParamInfo<RunMode>& info) {
  std::string name = ::testing::PrintToString(info.param);
  name[0] = static_cast<char>(std::toupper(name[0]));
  return name;
}
/// Returns the largest number of iterations in flight in the dataflow executor, and 0 in other
/// modes.
inline int parallel_iterations_of(RunMode mode) {
  switch (mode) {
    case RunMode::dataflow1:
      return 1;
    case RunMode::dataflow2:
      return 2;
    case RunMode::dataflow10:
    case RunMode::dataflow_threads:
      return 10;
    case RunMode::dataflow32:
      return 32;
    default:
      return 0;
  }
}
inline JitOptions options_of(RunMode mode) {
  const int in_flight = parallel_iterations_of(mode);
  JitOptions options{.executor = mode == RunMode::interpreter ? Executor::interpreter
                                 : in_flight > 0              ? Executor::dataflow
                                                              : Executor::plan,
                     .parallel_iterations = in_flight};
  if (mode == RunMode::chunks) options.passes.chunk_steps = 2;
  return options;
}

/// A function that runs in the mode chosen when the test runs.
template <class F>
class InMode {
 public:
  InMode(F f, RunMode mode) : f_(f), jitted_(jit(f, options_of(mode))), mode_(mode) {}

  template <class... Args>
  auto operator()(const Args&... args) const {
    using R = std::decay_t<std::invoke_result_t<const F&, const Args&...>>;
    if (mode_ == RunMode::eager) return R(f_(args...));
    std::optional<OnManyThreads> threads;
    if (mode_ == RunMode::dataflow_threads) threads.emplace();
    return R(jitted_(args...));
  }
  /// Returns the number of traces, or 1 in eager mode, where there is nothing to count.
  int trace_count() const { return mode_ == RunMode::eager ? 1 : jitted_.trace_count(); }

 private:
  F f_;
  Jitted<F> jitted_;
  RunMode mode_;
};

class InEveryMode : public ::testing::TestWithParam<RunMode> {
 protected:
  template <class F>
  InMode<F> run(F f) const {
    return {std::move(f), GetParam()};
  }
  bool is_eager() const { return GetParam() == RunMode::eager; }
  /// True if results have the same bits as in eager mode. Plans add in another order.
  bool is_exact() const {
    return is_eager() || GetParam() == RunMode::interpreter || is_dataflow();
  }
  /// True in the dataflow modes, which drop effects that no result depends on and run the others
  /// when their data arrives.
  bool is_dataflow() const { return parallel_iterations_of(GetParam()) > 0; }
};

#define REEL_IN_EVERY_MODE(Suite) \
  INSTANTIATE_TEST_SUITE_P(InEveryMode, Suite, kEveryMode, name_of_mode)

}  // namespace reel
