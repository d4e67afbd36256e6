// trace/plan_counts.h — PlanCounts: how often plans of a graph were prepared, for explain().
#pragma once

#include <cstdint>
#include <string>

#include "reel/core/base/quantities.h"
#include "reel/core/base/str.h"

namespace reel {

/// How often plans of a graph were prepared, and how long that took.
struct PlanCounts {
  struct Count {
    std::int64_t times = 0, nanoseconds = 0;
  };
  Count made, resized, bound;

  /// kept, bytes: the plans of now. Returns a line for explain(); empty if there was one plan only.
  std::string text(std::size_t kept, std::int64_t bytes) const {
    if (made.times + resized.times < 2) return {};
    const auto part = [](const Count& of, const char* verb) {
      return str(of.times, ' ', verb, " in ",
                 time_text(static_cast<double>(of.nanoseconds) * 1e-9));
    };
    return str("plans for other sizes: ", part(made, "made"), ", ", part(resized, "resized"), ", ",
               part(bound, "bound to other dims"), "; ", kept, kept == 1 ? " holds " : " hold ",
               bytes_text(bytes));
  }
};

}  // namespace reel
