#include "reel/core/runtime/processor.h"

namespace reel {

// Every processor of the architecture has NEON with doubles and fused multiply-adds.
std::size_t best_instruction_set() { return 0; }

// With a single set there is no lower limit, and Reel links no library with kernels of its own.
void limit_libraries(std::size_t, std::string_view) {}

}  // namespace reel
