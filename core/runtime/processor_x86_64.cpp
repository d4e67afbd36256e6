#include <dnnl.h>
#include <strings.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>

#include "reel/core/base/errors.h"
#include "reel/core/base/str.h"
#include "reel/core/runtime/processor.h"

namespace reel {
namespace {

/// For each set, oneDNN's set that has no further instructions.
struct OneDnnSet {
  dnnl_cpu_isa_t isa;
  const char* name;
};
constexpr OneDnnSet kOneDnnSets[] = {{dnnl_cpu_isa_sse41, "SSE41"},
                                     {dnnl_cpu_isa_avx2, "AVX2"},
                                     {dnnl_cpu_isa_avx512_core, "AVX512_CORE"}};
static_assert(std::size(kOneDnnSets) == std::size(kInstructionSets));

/// Returns true if the environment limits oneDNN to `set` or less. oneDNN forgets this limit if
/// another is set by a call.
bool is_limited_by_environment(std::size_t set) {
  const char* given = std::getenv("ONEDNN_MAX_CPU_ISA");
  if (!given) given = std::getenv("DNNL_MAX_CPU_ISA");
  if (!given) return false;
  if (::strcasecmp(given, "AVX") == 0) return set != 0;
  return std::any_of(kOneDnnSets, kOneDnnSets + set + 1,
                     [&](const OneDnnSet& lower) { return ::strcasecmp(given, lower.name) == 0; });
}

}  // namespace

std::size_t best_instruction_set() {
  __builtin_cpu_init();  // also checks whether the operating system saves the registers
  const bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (has_avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl"))
    return 2;
  if (has_avx2) return 1;
  if (__builtin_cpu_supports("sse4.2")) return 0;
  throw Error("Reel needs a processor with SSE4.2");
}

void limit_libraries(std::size_t set, std::string_view variable) {
  const OneDnnSet& onednn = kOneDnnSets[set];
  if (!is_limited_by_environment(set)) dnnl_set_max_cpu_isa(onednn.isa);
  const unsigned used = dnnl_get_effective_cpu_isa();
  if (used & ~static_cast<unsigned>(onednn.isa))
    throw Error(str(variable, '=', kInstructionSets[set],
                    " cannot limit oneDNN, which was called before the first op of Reel: set "
                    "ONEDNN_MAX_CPU_ISA=",
                    onednn.name, " as well"));
}

}  // namespace reel
