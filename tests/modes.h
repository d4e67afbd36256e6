// tests/modes.h — InEveryMode, the base of tests that claim a value or a gradient: they run in
// every mode.
#pragma once

#include <gtest/gtest.h>

#include <ostream>
#include <string>

#include "reel/reel.h"
#include "reel/tests/check.h"

namespace reel {

/// One way to run a function. Another executor joins all tests by one more line here and in
/// kEveryMode.
enum class RunMode { eager, interpreter, plan };
inline const auto kEveryMode =
    ::testing::Values(RunMode::eager, RunMode::interpreter, RunMode::plan);

inline std::ostream& operator<<(std::ostream& out, RunMode mode) {
  return out << (mode == RunMode::eager ? "eager" : mode == RunMode::plan ? "plan" : "interpreter");
}
inline std::string name_of_mode(const ::testing::TestParamInfo<RunMode>& info) {
  return info.param == RunMode::eager  ? "Eager"
         : info.param == RunMode::plan ? "Plan"
                                       : "Interpreter";
}

/// A function that runs in a mode chosen when the test runs.
template <class F>
class InMode {
 public:
  InMode(F f, RunMode mode)
      : f_(f),
        jitted_(
            jit(f, {.executor = mode == RunMode::plan ? Executor::plan : Executor::interpreter})),
        mode_(mode) {}

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
};

#define REEL_IN_EVERY_MODE(Suite) \
  INSTANTIATE_TEST_SUITE_P(InEveryMode, Suite, kEveryMode, name_of_mode)

}  // namespace reel
