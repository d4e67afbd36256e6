// tests/fuzz/checks.h — what must hold of every program, in every mode.
#pragma once

#include <optional>
#include <string>

#include "reel/tests/fuzz/program.h"

namespace reel::fuzz {

/// What does not hold. Findings of one kind may have one cause: a program is made smaller as long
/// as its kind stays.
struct Finding {
  std::string kind, message;
};

/// What has been looked at.
struct Statistics {
  int programs = 0, compared_with_differences = 0, second_compared = 0;
};

/// The first thing that does not hold of a program. kind: asks for findings of that kind only,
/// which takes less time.
std::optional<Finding> check(const Program& program, Statistics* statistics = nullptr,
                             const std::string& kind = {});

}  // namespace reel::fuzz
