// tests/fuzz/checks.h — check, which compares the results of a program in all modes.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "reel/tests/fuzz/finding.h"
#include "reel/tests/fuzz/program/program.h"

namespace reel::fuzz {

/// Numbers of programs, of comparisons with differences, and of relations.
struct Statistics {
  int programs = 0, compared_with_differences = 0, second_compared = 0, relations = 0;
  /// Called with the name of a relation before its runs, which may crash.
  std::function<void(const std::string&)> begins = {};
};

/// Returns the first failed check of a program; empty if all pass. kind: runs only the checks that
/// can give findings of this kind, which takes less time.
std::optional<Finding> check(const Program& program, Statistics* statistics = nullptr,
                             const std::string& kind = {});

}  // namespace reel::fuzz
