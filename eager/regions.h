// eager/regions.h — system memory for blocks, on huge pages.
#pragma once

#include <cstddef>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define REEL_WITH_ADDRESS_SANITIZER
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define REEL_WITH_ADDRESS_SANITIZER
#endif

namespace reel {

/// True if each block is an allocation of its own, of exactly its bytes. AddressSanitizer then
/// finds reads and writes behind a tensor and of freed tensors. It knows nothing of pools and
/// regions.
#ifdef REEL_WITH_ADDRESS_SANITIZER
inline constexpr bool kAllocatesEachBlock = true;
#else
inline constexpr bool kAllocatesEachBlock = false;
#endif

constexpr std::size_t kCacheLine = 64;

/// Returns `bytes` bytes aligned to a cache line; null if there is no memory. Thread-safe.
void* take_memory(std::size_t bytes);
/// Frees memory from take_memory(), on any thread. Thread-safe.
void give_memory_back(void* memory);

}  // namespace reel
