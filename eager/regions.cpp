// A oneTBB memory pool with regions on huge pages.
//
// The tape of an eager loop is hundreds of MiB in blocks of some KiB, which are written and read
// once per pass. With pages of 4 KiB, a virtual machine may look up each page anew: 2000 steps of a
// GRU of 16 rows took 1.8 s, 500 steps took 0.06 s.
#include "reel/eager/regions.h"

#include <sys/mman.h>
#include <tbb/scalable_allocator.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <utility>

#include "reel/core/runtime/huge_pages.h"

namespace reel {
namespace {

#ifdef REEL_WITH_ADDRESS_SANITIZER
void* allocate(std::size_t bytes) {
  void* memory = nullptr;
  return posix_memalign(&memory, kCacheLine, bytes) == 0 ? memory : nullptr;
}
void free(void* memory) { std::free(memory); }
#elif defined(__SANITIZE_THREAD__)
// Debian's oneTBB is not instrumented: memory passed through it between threads would be reported
// as a race.
void* allocate(std::size_t bytes) {
  return std::aligned_alloc(kCacheLine, (bytes + kCacheLine - 1) / kCacheLine * kCacheLine);
}
void free(void* memory) { std::free(memory); }
#else
// The largest page that a kernel of the architecture may use: regions are unmapped in whole pages.
#ifdef __aarch64__
constexpr std::size_t kPage = 65536;
#else
constexpr std::size_t kPage = 4096;
#endif
/// Regions for small blocks have a little over 1 MiB. They share an area of this size; otherwise
/// about half of every second huge page would be unused.
constexpr std::size_t kArea = std::size_t{32} << 20;

class Regions {
 public:
  /// Regions that fill some huge pages get pages of their own, to be returned as a whole.
  void* take(std::size_t& bytes) {
    if (alignment_of_block(bytes) == kHugePage) return map_huge_pages(bytes);
    const std::lock_guard lock(mutex_);
    if (static_cast<std::size_t>(end_ - next_) < bytes) {
      auto* area = static_cast<char*>(map_huge_pages(kArea));
      if (!area) return nullptr;
      if (next_ != end_) munmap(next_, static_cast<std::size_t>(end_ - next_));
      next_ = area;
      end_ = area + kArea;
    }
    return std::exchange(next_, next_ + bytes);
  }

 private:
  std::mutex mutex_;
  char *next_ = nullptr, *end_ = nullptr;
};

rml::MemoryPool* make_pool() {
  static Regions& regions = *new Regions;
  const auto take = [](std::intptr_t, std::size_t& bytes) { return regions.take(bytes); };
  const auto give_back = [](std::intptr_t, void* region, std::size_t bytes) {
    return munmap(region, bytes);
  };
  const rml::MemPoolPolicy policy(take, give_back, kPage);
  rml::MemoryPool* pool = nullptr;
  return rml::pool_create_v1(0, &policy, &pool) == rml::POOL_OK ? pool : nullptr;
}
/// Null until a pool could be made. Never destroyed: tensors may outlive static objects.
constinit std::atomic<rml::MemoryPool*> the_pool{nullptr};

/// Makes the pool if there is none. Returns null if there is no memory for it; the next call tries
/// again.
[[gnu::noinline]] rml::MemoryPool* pool_made_now() {
  static constinit std::mutex mutex;
  const std::lock_guard lock(mutex);
  rml::MemoryPool* pool = the_pool.load(std::memory_order_relaxed);
  if (!pool) the_pool.store(pool = make_pool(), std::memory_order_release);
  return pool;
}
rml::MemoryPool* pool() {
  rml::MemoryPool* const pool = the_pool.load(std::memory_order_acquire);
  return pool ? pool : pool_made_now();
}
void* allocate(std::size_t bytes) {
  rml::MemoryPool* const from = pool();
  return from ? rml::pool_aligned_malloc(from, bytes, kCacheLine) : nullptr;
}
void free(void* memory) { rml::pool_free(pool(), memory); }
#endif

}  // namespace

void* take_memory(std::size_t bytes) { return allocate(bytes); }
void give_memory_back(void* memory) { free(memory); }

}  // namespace reel

#ifdef REEL_WITH_ADDRESS_SANITIZER
/// Sets options of the sanitizer: if a block is too large, a MemoryError is thrown.
extern "C" [[gnu::visibility("default")]] const char* __asan_default_options() {
  return "allocator_may_return_null=1";
}
#endif
