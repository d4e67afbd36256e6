// tests/fuzz/checks.h — check, which compares the results of a program in all modes.
#pragma once

#include <optional>
#include <string>

#include "reel/tests/fuzz/program/program.h"

namespace reel::fuzz {

/// A failed check. Findings of one kind may have one cause, so shrinking keeps the kind.
struct Finding {
  std::string kind, message;
};

/// Numbers of programs, and of comparisons with differences.
struct Statistics {
  int programs = 0, compared_with_differences = 0, second_compared = 0;
};

/// Returns the first failed check of a program; empty if all pass. kind: runs only the checks that
/// can give findings of this kind, which takes less time.
std::optional<Finding> check(const Program& program, Statistics* statistics = nullptr,
                             const std::string& kind = {});

}  // namespace reel::fuzz
