#include "reel/core/runtime/instruction_set.h"

#include <dnnl.h>
#include <strings.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <string>

#include "reel/core/base/errors.h"
#include "reel/core/base/str.h"

namespace reel {
namespace {

constexpr const char* kVariable = "REEL_MAX_ISA";

/// A set, and oneDNN's set that has no further instructions. Each includes the sets before it.
struct Set {
  const char* name;
  dnnl_cpu_isa_t onednn;
  const char* onednn_name;
};
constexpr Set kSets[] = {{"sse42", dnnl_cpu_isa_sse41, "SSE41"},
                         {"avx2", dnnl_cpu_isa_avx2, "AVX2"},
                         {"avx512", dnnl_cpu_isa_avx512_core, "AVX512_CORE"}};

const Set& set_of_processor() {
  __builtin_cpu_init();  // also checks whether the operating system saves the registers
  const bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (has_avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
    return kSets[2];
  if (has_avx2) return kSets[1];
  if (__builtin_cpu_supports("sse4.2")) return kSets[0];
  throw Error("Reel needs a processor with SSE4.2");
}

/// Returns the highest set that the environment allows; null if it sets no limit.
const Set* set_of_environment() {
  const char* const given = std::getenv(kVariable);
  if (!given || !*given) return nullptr;
  for (const Set& set : kSets)
    if (::strcasecmp(given, set.name) == 0) return &set;
  std::string names;
  for (const Set& set : kSets)
    names += str(names.empty() ? "" : &set == std::end(kSets) - 1 ? " and " : ", ", set.name);
  throw Error(str(kVariable, '=', given, " is no instruction set of Reel: there are ", names));
}

/// Returns true if the environment limits oneDNN to `set` or less. oneDNN forgets this limit if
/// another is set by a call.
bool is_limited_by_environment(const Set& set) {
  const char* given = std::getenv("ONEDNN_MAX_CPU_ISA");
  if (!given) given = std::getenv("DNNL_MAX_CPU_ISA");
  if (!given) return false;
  if (::strcasecmp(given, "AVX") == 0) return &set != &kSets[0];
  return std::any_of(std::begin(kSets), &set + 1,
                     [&](const Set& lower) { return ::strcasecmp(given, lower.onednn_name) == 0; });
}

void limit_onednn(const Set& set) {
  if (!is_limited_by_environment(set)) dnnl_set_max_cpu_isa(set.onednn);
  const unsigned used = dnnl_get_effective_cpu_isa();
  if (used & ~static_cast<unsigned>(set.onednn))
    throw Error(str(kVariable, '=', set.name,
                    " cannot limit oneDNN, which was called before the first op of Reel: set "
                    "ONEDNN_MAX_CPU_ISA=",
                    set.onednn_name, " as well"));
}

}  // namespace

std::string_view instruction_set() {
  static const char* const chosen = [] {
    const Set& best = set_of_processor();
    const Set* const most = set_of_environment();
    if (!most) return best.name;
    const Set& lower = std::min(*most, best, [](const Set& a, const Set& b) { return &a < &b; });
    limit_onednn(lower);
    return lower.name;
  }();
  return chosen;
}

}  // namespace reel
