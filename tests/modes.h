// tests/modes.h — InEveryMode, the base of tests that claim a value or a gradient: they run in
// every mode.
#pragma once

#include <gtest/gtest.h>

#include <cctype>
#include <ostream>
#include <string>

#include "reel/reel.h"
#include "reel/tests/check.h"

namespace reel {

/// One way to run a function. Another executor joins all tests by one more line here and in
/// kEveryMode.
enum class RunMode {
  eager,
  interpreter,
  plan,
  chunks,    ///< a plan that takes two steps of a loop at a time wherever it can
  dataflow,  ///< with 1, 2, 10 or 32 iterations in flight at most, as the test's name says
};
inline const auto kEveryMode = ::testing::Values(RunMode::eager, RunMode::interpreter,
                                                 RunMode::plan, RunMode::chunks, RunMode::dataflow);

inline std::ostream& operator<<(std::ostream& out, RunMode mode) {
  constexpr const char* kNames[] = {"eager", "interpreter", "plan", "chunks", "dataflow"};
  return out << kNames[static_cast<int>(mode)];
}
inline std::string name_of_mode(const ::testing::TestParamInfo<RunMode>& info) {
  std::string name = ::testing::PrintToString(info.param);
  name[0] = static_cast<char>(std::toupper(name[0]));
  return name;
}
/// One of the numbers of iterations in flight that the dataflow executor is tested with: the same
/// for a test in every run, and all of them among its neighbours.
inline int parallel_iterations_of_test() {
  constexpr int kBounds[] = {1, 2, 10, 32};
  const ::testing::TestInfo* test = ::testing::UnitTest::GetInstance()->current_test_info();
  unsigned hash = 0;
  for (const char c : std::string(test ? test->name() : "")) hash = hash * 31 + c;
  return kBounds[hash / 7 % 4];
}
inline JitOptions options_of(RunMode mode) {
  JitOptions options{.executor = mode == RunMode::interpreter ? Executor::interpreter
                                 : mode == RunMode::dataflow  ? Executor::dataflow
                                                              : Executor::plan};
  if (mode == RunMode::chunks) options.passes.chunk_steps = 2;
  if (mode == RunMode::dataflow) options.parallel_iterations = parallel_iterations_of_test();
  return options;
}

/// A function that runs in a mode chosen when the test runs.
template <class F>
class InMode {
 public:
  InMode(F f, RunMode mode) : f_(f), jitted_(jit(f, options_of(mode))), mode_(mode) {}

  template <class... Args>
  auto operator()(const Args&... args) const {
    using R = std::decay_t<std::invoke_result_t<const F&, const Args&...>>;
    return mode_ == RunMode::eager ? R(f_(args...)) : R(jitted_(args...));
  }
  /// Of the traced form; 1 in eager mode, where there is nothing to count.
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
  /// To the bit what eager mode gives; plans add up in another order.
  bool is_exact() const {
    return is_eager() || GetParam() == RunMode::interpreter || is_dataflow();
  }
  /// Effects that nothing needs are dropped, and others happen when data reaches them.
  bool is_dataflow() const { return GetParam() == RunMode::dataflow; }
};

#define REEL_IN_EVERY_MODE(Suite) \
  INSTANTIATE_TEST_SUITE_P(InEveryMode, Suite, kEveryMode, name_of_mode)

}  // namespace reel
