// Allocation functions that hide the libraries' own in a test program, so that they can fail.
#include "reel/tests/failing_memory.h"

#include <dlfcn.h>
#include <tbb/scalable_allocator.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <new>

namespace {

std::atomic<bool> is_counting{false}, fails_for_good{false};
std::atomic<long> left{0};

/// Counts an allocation, and returns true if it must fail.
bool fails_now() {
  if (!is_counting.load(std::memory_order_relaxed)) return false;
  const long before = left.fetch_sub(1, std::memory_order_relaxed);
  return before == 1 || (before < 1 && fails_for_good.load(std::memory_order_relaxed));
}

void* allocate(std::size_t bytes) {
  if (fails_now()) throw std::bad_alloc();
  if (void* memory = std::malloc(bytes ? bytes : 1)) return memory;
  throw std::bad_alloc();
}

}  // namespace

[[gnu::noinline]] void* operator new(std::size_t bytes) { return allocate(bytes); }
[[gnu::noinline]] void* operator new[](std::size_t bytes) { return allocate(bytes); }
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete[](void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
namespace {
template <class Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}
}  // namespace

namespace rml {
void* pool_aligned_malloc(MemoryPool* pool, std::size_t bytes, std::size_t alignment) {
  static auto* const allocate = next<void*(MemoryPool*, std::size_t, std::size_t)>(
      "_ZN3rml19pool_aligned_mallocEPNS_10MemoryPoolEmm");
  return fails_now() ? nullptr : allocate(pool, bytes, alignment);
}
MemPoolError pool_create_v1(std::intptr_t id, const MemPoolPolicy* policy, MemoryPool** pool) {
  static auto* const create = next<MemPoolError(std::intptr_t, const MemPoolPolicy*, MemoryPool**)>(
      "_ZN3rml14pool_create_v1ElPKNS_13MemPoolPolicyEPPNS_10MemoryPoolE");
  return fails_now() ? NO_MEMORY : create(id, policy, pool);
}
}  // namespace rml
extern "C" void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
  static auto* const allocate = next<void*(std::size_t, std::size_t)>("aligned_alloc");
  return fails_now() ? nullptr : allocate(alignment, bytes);
}
extern "C" int posix_memalign(void** memory, std::size_t alignment, std::size_t bytes) {
  static auto* const allocate = next<int(void**, std::size_t, std::size_t)>("posix_memalign");
  return fails_now() ? ENOMEM : allocate(memory, alignment, bytes);
}
#endif

namespace reel {

FailingMemory::FailingMemory(long n, Fails fails) {
  left = n;
  fails_for_good = fails == Fails::for_good;
  is_counting = true;
}
FailingMemory::~FailingMemory() { is_counting = false; }
bool FailingMemory::has_failed() const { return left < 1; }

}  // namespace reel
