// core/runtime/processor.h — names of the instruction sets, and the best one of this processor.
//
// processor_x86_64.cpp and processor_aarch64.cpp define the functions.
#pragma once

#include <cstddef>
#include <string_view>

#include "reel/core/runtime/isa_list.h"

namespace reel {

/// Names of the instruction sets of this architecture, the lowest first.
#define REEL_NAME_OF_ISA(isa, ...) #isa,
inline constexpr const char* kInstructionSets[] = {REEL_FOR_EACH_ISA(REEL_NAME_OF_ISA)};
#undef REEL_NAME_OF_ISA

/// Returns the place in kInstructionSets of the highest set that the processor and its operating
/// system support. Throws Error if they support none.
std::size_t best_instruction_set();

/// Limits libraries that select their own kernels to a set, given by its place in kInstructionSets.
/// Throws Error, which names `variable` as the cause of the limit, if a library can no longer be
/// limited.
void limit_libraries(std::size_t set, std::string_view variable);

}  // namespace reel
