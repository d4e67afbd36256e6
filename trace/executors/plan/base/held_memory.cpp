#include "reel/trace/executors/plan/base/held_memory.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <mutex>
#include <new>
#include <set>
#include <utility>

#include "reel/core/base/thread_store.h"
#include "reel/core/runtime/huge_pages.h"
#include "reel/core/runtime/memory.h"

namespace reel {

/// The sizes of allocations of the plans that were run on a thread last. It outlives the thread
/// while one of them lives.
struct PlanMemoryNeeds {
  std::mutex mutex;
  std::multiset<std::int64_t> bytes;
  std::atomic<bool> is_stale{false};  ///< another thread has destroyed such a plan
};

namespace {

/// Null before the first plan of this thread, and at its end.
constinit thread_local const PlanMemoryNeeds* needs_of_thread = nullptr;

std::int64_t size_of_allocation(std::int64_t bytes) {
  return (std::max<std::int64_t>(bytes, 1) + 63) / 64 * 64;
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
    const auto fits = [&](const PlanMemory& m) {
      return m.data && m.bytes() >= bytes && m.bytes() <= 2 * bytes;
    };
    const auto found = std::find_if(allocations_.begin(), end(), fits);
    if (found == end()) return {};
    PlanMemory memory = std::move(*found);
    std::move(found + 1, end(), found);
    --count_;
    return memory;
  }
  /// Frees the oldest allocations while they and `bytes` more exceed kHeld.
  void make_room(std::int64_t bytes) {
    constexpr std::int64_t kHeld = std::int64_t{1} << 30;
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
  /// Keeps one allocation for each plan that needs one of this size.
  void free_unneeded() noexcept {
    const std::lock_guard lock(needs_->mutex);
    needs_->is_stale.store(false, std::memory_order_relaxed);
    auto kept = allocations_.begin();
    for (auto allocation = allocations_.begin(); allocation != end(); ++allocation) {
      const auto others = std::count_if(allocations_.begin(), kept, [&](const PlanMemory& other) {
        return other.bytes() == allocation->bytes();
      });
      if (static_cast<std::size_t>(others) >= needs_->bytes.count(allocation->bytes()))
        *allocation = {};
      else if (kept++ != allocation)
        *(kept - 1) = std::move(*allocation);
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
  bytes = size_of_allocation(bytes);
  if (GivenBack* const before = given_back()) {
    if (PlanMemory memory = before->take(bytes); memory.data) return memory;
    before->make_room(bytes);
  }
  const auto size = static_cast<std::size_t>(bytes);
  const std::size_t alignment = alignment_of_block(size);
  PlanMemory memory{{static_cast<char*>(std::aligned_alloc(
                         alignment, (size + alignment - 1) / alignment * alignment)),
                     {bytes}}};
  if (!memory.data) throw_no_memory(bytes);
  ask_for_huge_pages(memory.data.get(), size);
  count_bytes(MemoryClass::buffers, bytes);
  return memory;
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
  bytes = size_of_allocation(bytes);
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
