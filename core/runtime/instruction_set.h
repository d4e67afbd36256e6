// core/runtime/instruction_set.h — instruction_set, the instruction set that kernels use.
#pragma once

#include <string_view>

#include "reel/core/base/visibility.h"

REEL_API_BEGIN
namespace reel {

/// Returns the instruction set of the kernels that this process runs: "sse42", "avx2" or "avx512"
/// on x86-64, "neon" on aarch64.
///
/// It is the best set that the processor and its operating system support. The environment variable
/// REEL_MAX_ISA, one of these names in either case, lowers it, and limits oneDNN to the same set. A
/// set above the processor's, and an empty value, have no effect. A lower ONEDNN_MAX_CPU_ISA stays
/// in force for oneDNN. The variable is read once, by the first op of the process.
///
/// Throws Error, here and in every op, if REEL_MAX_ISA has another value, or if an x86-64 processor
/// lacks SSE4.2. Throws Error also if oneDNN cannot be limited because the program called it before
/// the first op. Thread-safe.
std::string_view instruction_set();

}  // namespace reel
REEL_API_END
