#include "reel/trace/executors/plan/base/held_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <new>
#include <set>
#include <utility>

#include "reel/core/base/thread_store.h"
#include "reel/core/runtime/huge_pages.h"
#include "reel/core/runtime/memory.h"
#include "reel/eager/regions.h"

namespace reel {

/// The sizes of allocations of the plans that were run on a thread last. It outlives the thread
/// while any of these plans lives.
struct PlanMemoryNeeds {
  std::mutex mutex;
  std::multiset<std::int64_t> bytes;
  std::atomic<bool> is_stale{false};  ///< another thread has destroyed such a plan
};

namespace {

/// Null before the first plan of this thread, and at its end.
constinit thread_local const PlanMemoryNeeds* needs_of_thread = nullptr;

constexpr std::int64_t kHeld = std::int64_t{1} << 30;

std::int64_t whole_lines(std::int64_t bytes) {
  return (std::max<std::int64_t>(bytes, 1) + 63) / 64 * 64;
}

/// Returns the capacity of an allocation for `bytes`, which are whole lines: room for batches four
/// times as long, as far as that is moderate. Small allocations share pages with other data; the
/// largest might not find twice their address space. A sanitizer shall see accesses behind the
/// bytes.
std::int64_t capacity_for(std::int64_t bytes) {
  constexpr std::int64_t kSmallest = 128 << 10, kRoom = 4, kModerate = std::int64_t{256} << 20;
  if (bytes < kSmallest || bytes > kHeld || kAllocatesEachBlock) return bytes;
  const auto class_of = [](std::int64_t of) {
    return static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(of)));
  };
  return std::max(class_of(bytes), std::min(class_of(kRoom * bytes), kModerate));
}

bool fits(const PlanMemory& memory, std::int64_t bytes) {
  return memory.data && memory.capacity() >= bytes && memory.capacity() <= 2 * capacity_for(bytes);
}

/// Counts the bytes of memory().buffers.
void set_bytes(PlanMemory& memory, std::int64_t bytes) {
  std::int64_t& counted = memory.data.get_deleter().bytes;
  count_bytes(MemoryClass::buffers, bytes - counted);
  counted = bytes;
}

/// Returns memory for at least `bytes`, counted as such.
PlanMemory reused(PlanMemory memory, std::int64_t bytes) {
  if (memory.bytes() < bytes) set_bytes(memory, bytes);
  return memory;
}

/// Gives the pages behind the first `bytes` back to the system.
void shrink(PlanMemory& memory, std::int64_t bytes) noexcept {
  static const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto address = reinterpret_cast<std::uintptr_t>(memory.data.get());
  const std::uintptr_t begin =
      (address + static_cast<std::uintptr_t>(bytes) + page - 1) / page * page;
  const std::uintptr_t end =
      (address + static_cast<std::uintptr_t>(memory.bytes()) + page - 1) / page * page;
  // The page at the end may hold other data if the capacity ends in it.
  const std::uintptr_t last =
      std::min(end, (address + static_cast<std::uintptr_t>(memory.capacity())) / page * page);
  if (begin < last) madvise(reinterpret_cast<void*>(begin), last - begin, MADV_DONTNEED);
  set_bytes(memory, bytes);
}

/// Returns new memory; without data if there is none.
PlanMemory allocate(std::int64_t bytes, std::int64_t capacity) {
  const auto size = static_cast<std::size_t>(capacity);
  const std::size_t alignment = alignment_of_block(size);
  PlanMemory memory{{static_cast<char*>(std::aligned_alloc(
                         alignment, (size + alignment - 1) / alignment * alignment)),
                     {capacity, 0}}};
  if (!memory.data) return memory;
  ask_for_huge_pages(memory.data.get(), size);
  set_bytes(memory, bytes);
  return memory;
}

/// Memory that plans gave back on a thread, most recent first. Giving back never fails, as the
/// array is preallocated.
class GivenBack {
 public:
  GivenBack() { needs_of_thread = needs_.get(); }
  ~GivenBack() { needs_of_thread = nullptr; }
  GivenBack(const GivenBack&) = delete;
  GivenBack& operator=(const GivenBack&) = delete;

  /// Returns an allocation that fits; one without data if there is none.
  PlanMemory take(std::int64_t bytes) {
    if (needs_->is_stale.load(std::memory_order_relaxed)) free_unneeded();
    const auto found = std::find_if(allocations_.begin(), end(),
                                    [&](const PlanMemory& memory) { return fits(memory, bytes); });
    if (found == end()) return {};
    PlanMemory memory = std::move(*found);
    std::move(found + 1, end(), found);
    --count_;
    return memory;
  }
  /// Frees the oldest allocations while they and `bytes` more exceed kHeld.
  void make_room(std::int64_t bytes) {
    std::int64_t held = bytes;
    for (auto allocation = allocations_.begin(); allocation != end(); ++allocation)
      held += allocation->bytes();
    while (held > kHeld && count_) {
      held -= allocations_[count_ - 1].bytes();
      drop_oldest();
    }
  }
  void clear() {
    while (count_) drop_oldest();
  }
  /// Keeps, of each capacity, as many allocations as there are plans that need it. The most recent
  /// allocations serve the plans with the largest needs.
  void free_unneeded() noexcept {
    const std::lock_guard lock(needs_->mutex);
    needs_->is_stale.store(false, std::memory_order_relaxed);
    auto kept = allocations_.begin();
    for (auto allocation = allocations_.begin(); allocation != end(); ++allocation) {
      const std::int64_t capacity = allocation->capacity();
      const auto has_capacity = [&](std::int64_t need) { return capacity_for(need) == capacity; };
      const auto others = std::count_if(allocations_.begin(), kept, [&](const PlanMemory& other) {
        return other.capacity() == capacity;
      });
      // The needs of one capacity are neighbours.
      auto need = std::find_if(needs_->bytes.rbegin(), needs_->bytes.rend(), has_capacity);
      for (auto i = others; i > 0 && need != needs_->bytes.rend(); --i) ++need;
      if (need == needs_->bytes.rend() || !has_capacity(*need)) {
        *allocation = {};
        continue;
      }
      if (allocation->bytes() > *need) shrink(*allocation, *need);
      if (kept != allocation) *kept = std::move(*allocation);
      ++kept;
    }
    count_ = static_cast<std::size_t>(kept - allocations_.begin());
  }
  const std::shared_ptr<PlanMemoryNeeds>& needs() const { return needs_; }
  void put(PlanMemory memory) {
    make_room(count_ ? memory.bytes() : 0);
    if (count_ == allocations_.size()) drop_oldest();
    std::move_backward(allocations_.begin(), end(), end() + 1);
    allocations_[0] = std::move(memory);
    ++count_;
  }

 private:
  using Allocations = std::array<PlanMemory, 256>;
  Allocations::iterator end() { return allocations_.begin() + static_cast<std::ptrdiff_t>(count_); }
  void drop_oldest() { allocations_[--count_] = {}; }

  Allocations allocations_;
  std::size_t count_ = 0;
  std::shared_ptr<PlanMemoryNeeds> needs_ = std::make_shared<PlanMemoryNeeds>();
};
GivenBack* given_back() { return ThreadStore<GivenBack, PlanMemory>::get(); }

}  // namespace

void FreePlanMemory::operator()(char* memory) const {
  std::free(memory);
  count_bytes(MemoryClass::buffers, -bytes);
}

void ResidualShare::take(std::int64_t bytes) {
  recount_bytes(MemoryClass::buffers, MemoryClass::saved, bytes - bytes_);
  bytes_ = bytes;
}

PlanMemory take_plan_memory(std::int64_t bytes) {
  bytes = whole_lines(bytes);
  GivenBack* const held = given_back();
  if (held) {
    if (PlanMemory memory = held->take(bytes); memory.data) return reused(std::move(memory), bytes);
    held->make_room(bytes);
  }
  const std::int64_t capacity = capacity_for(bytes);
  PlanMemory memory = allocate(bytes, capacity);
  if (!memory.data && capacity > bytes) memory = allocate(bytes, bytes);
  if (!memory.data && held) {
    held->clear();
    memory = allocate(bytes, bytes);
  }
  if (!memory.data) throw_no_memory(bytes);
  return memory;
}

PlanMemory take_plan_memory(std::int64_t bytes, PlanMemory before) {
  if (fits(before, whole_lines(bytes))) return reused(std::move(before), whole_lines(bytes));
  before = {};
  return take_plan_memory(bytes);
}

void give_back(PlanMemory memory) {
  GivenBack* const others = given_back();
  if (memory.data && others) others->put(std::move(memory));
}

void free_held_plan_memory() {
  if (GivenBack* const held = given_back()) held->clear();
}

void free_unneeded_plan_memory() noexcept {
  if (needs_of_thread) given_back()->free_unneeded();
}

PlanMemoryNeed::~PlanMemoryNeed() {
  if (!of_thread_) return;
  const std::lock_guard lock(of_thread_->mutex);
  of_thread_->bytes.erase(of_thread_->bytes.find(bytes_));
}

void PlanMemoryNeed::set(std::int64_t bytes) {
  bytes = whole_lines(bytes);
  if (of_thread_ && of_thread_.get() == needs_of_thread && bytes == bytes_) return;
  GivenBack* const held = given_back();
  if (!held) return;  // at the end of the thread
  PlanMemoryNeed now;
  {
    const std::lock_guard lock(held->needs()->mutex);
    held->needs()->bytes.insert(bytes);
  }
  now.of_thread_ = held->needs();
  now.bytes_ = bytes;
  swap(now);
}

void PlanMemoryNeed::note_end() const {
  if (of_thread_ && of_thread_.get() != needs_of_thread)
    of_thread_->is_stale.store(true, std::memory_order_relaxed);
}

void PlanMemoryNeed::swap(PlanMemoryNeed& other) noexcept {
  std::swap(of_thread_, other.of_thread_);
  std::swap(bytes_, other.bytes_);
}

}  // namespace reel
