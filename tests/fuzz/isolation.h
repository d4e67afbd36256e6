// tests/fuzz/isolation.h — checks in processes of their own, which may crash or never end.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "reel/tests/fuzz/checks.h"
#include "reel/tests/fuzz/rule.h"

namespace reel::fuzz {

using Checks = std::function<std::optional<Finding>(const Program&, Statistics*)>;

/// Far more of the processor than any program takes.
inline constexpr int kSeconds = 60;

/// What checks say of a program; a crash or a run of more than so many seconds is a finding, too.
std::optional<Finding> check_isolated(const Program& program, const Checks& checks,
                                      int seconds = kSeconds);

/// A program with a finding.
struct Found {
  std::uint64_t seed;
  Finding finding;
};

/// Programs first, first + 1, ... first + count - 1, all in one process for as long as that lives.
/// Calls report(found) for each finding; gives what has been looked at.
Statistics check_many(std::uint64_t first, int count, const Rules& rules, const Checks& checks,
                      const std::function<void(const Found&)>& report);

}  // namespace reel::fuzz
