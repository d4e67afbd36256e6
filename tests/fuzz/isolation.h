// tests/fuzz/isolation.h — checks in child processes, which may crash or never end.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "reel/tests/fuzz/checks.h"
#include "reel/tests/fuzz/rules/rule.h"

namespace reel::fuzz {

using Checks = std::function<std::optional<Finding>(const Program&, Statistics*)>;

/// Limit of processor time for a program, far above the time that any needs.
inline constexpr int kSeconds = 60;

/// Runs the checks of a program in a child process. A crash, or more than `seconds` of processor
/// time, is a finding too.
std::optional<Finding> check_isolated(const Program& program, const Checks& checks,
                                      int seconds = kSeconds);

/// A program with a finding.
struct Found {
  std::uint64_t seed;
  Finding finding;
};

/// Checks the programs of seeds first to first + count - 1 in one child process; after a crash, the
/// rest in another. Calls report(found) for each finding. Returns the sum of all statistics. May be
/// called from several threads at once.
Statistics check_many(std::uint64_t first, int count, const Rules& rules, const Checks& checks,
                      const std::function<void(const Found&)>& report);

}  // namespace reel::fuzz
