#include "reel/core/runtime/instruction_set.h"

#include <strings.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <optional>
#include <string>

#include "reel/core/base/errors.h"
#include "reel/core/base/str.h"
#include "reel/core/runtime/processor.h"

namespace reel {
namespace {

constexpr const char* kVariable = "REEL_MAX_ISA";

/// Returns the highest set that the environment allows; nullopt if it sets no limit.
std::optional<std::size_t> set_of_environment() {
  const char* const given = std::getenv(kVariable);
  if (!given || !*given) return std::nullopt;
  constexpr std::size_t kCount = std::size(kInstructionSets);
  std::string names;
  for (std::size_t set = 0; set < kCount; ++set) {
    const char* const name = kInstructionSets[set];
    if (::strcasecmp(given, name) == 0) return set;
    names += str(names.empty() ? "" : set == kCount - 1 ? " and " : ", ", name);
  }
  throw Error(str(kVariable, '=', given, " is no instruction set of Reel: there ",
                  kCount == 1 ? "is " : "are ", names));
}

}  // namespace

std::string_view instruction_set() {
  static const std::string_view chosen = []() -> std::string_view {
    const std::size_t best = best_instruction_set();
    const std::optional<std::size_t> most = set_of_environment();
    if (!most) return kInstructionSets[best];
    const std::size_t lower = std::min(*most, best);
    limit_libraries(lower, kVariable);
    return kInstructionSets[lower];
  }();
  return chosen;
}

}  // namespace reel
