// eager/regions.h — system memory for blocks, on huge pages.
#pragma once

#include <cstddef>

namespace reel {

/// Returns `bytes` bytes aligned to a cache line; null if there is no memory. Thread-safe.
void* take_memory(std::size_t bytes);
/// Frees memory from take_memory(), on any thread. Thread-safe.
void give_memory_back(void* memory);

}  // namespace reel
