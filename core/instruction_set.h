// core/instruction_set.h — instruction_set, the set of instructions that kernels use.
#pragma once

#include <string_view>

namespace reel {

/// Returns "sse42", "avx2" or "avx512": the instruction set whose kernels this process runs.
///
/// It is the best set that the processor and its operating system support. The environment variable
/// REEL_MAX_ISA, one of these names in either case, lowers it, and limits oneDNN to the same set:
/// REEL_MAX_ISA=avx2 runs on a processor with AVX-512 the kernels of one without. A set above that
/// of the processor changes nothing, and neither does an empty value. A lower ONEDNN_MAX_CPU_ISA
/// stays in force for oneDNN. The variable is read once, by the first op of the process.
/// Throws Error, here and in every op, if REEL_MAX_ISA has another value, or if oneDNN cannot be
/// limited because the program has called it before the first op. Thread-safe.
std::string_view instruction_set();

}  // namespace reel
