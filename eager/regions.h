// eager/regions.h — memory of blocks, from the system on huge pages.
#pragma once

#include <cstddef>

namespace reel {

/// So many bytes that begin at a cache line; null where there are none.
void* take_memory(std::size_t bytes);
void give_memory_back(void* memory);

}  // namespace reel
