#include "reel/core/runtime/memory.h"

#include <array>
#include <atomic>
#include <ostream>

#include "reel/core/base/quantities.h"
#include "reel/core/ops/list/list.h"
#include "reel/eager/memory_counts.h"

namespace reel {
namespace {

struct Total {
  std::atomic<std::int64_t> current{0}, peak{0};
};
std::array<Total, MemoryCounts::kClasses + 1> totals;

void raise(std::atomic<std::int64_t>& peak, std::int64_t to) {
  std::int64_t before = peak.load(std::memory_order_relaxed);
  while (before < to && !peak.compare_exchange_weak(before, to, std::memory_order_relaxed)) {
  }
}

/// Returns the block that holds the counted data; null if they are not counted.
TensorBlock* counted(TensorBlock& block) {
  TensorBlock* const owner = block.storage ? block.storage.get() : &block;
  const bool is_counted = owner->kind == BlockKind::dense || owner->kind == BlockKind::promise;
  return is_counted ? owner : nullptr;
}

}  // namespace

constinit thread_local MemoryCounts memory_counts;

void MemoryCounts::publish() {
  for (int i = 0; i <= kClasses; ++i) {
    if (!now_[i] && !high_[i]) continue;
    Total& total = totals[static_cast<std::size_t>(i)];
    const std::int64_t before = total.current.fetch_add(now_[i], std::memory_order_relaxed);
    raise(total.peak, before + high_[i]);
    now_[i] = high_[i] = 0;
  }
}

Memory memory() {
  memory_counts.publish();
  const auto use = [](int i) {
    const Total& total = totals[static_cast<std::size_t>(i)];
    return MemoryUse{total.current.load(std::memory_order_relaxed),
                     total.peak.load(std::memory_order_relaxed)};
  };
  const auto of = [&](MemoryClass what) { return use(static_cast<int>(what)); };
  return {of(MemoryClass::values),  of(MemoryClass::saved),      of(MemoryClass::checkpoints),
          of(MemoryClass::buffers), of(MemoryClass::parameters), use(MemoryCounts::kAll)};
}

void reset_peak_memory() {
  memory_counts.publish();
  for (Total& total : totals)
    total.peak.store(total.current.load(std::memory_order_relaxed), std::memory_order_relaxed);
}

std::ostream& operator<<(std::ostream& out, const Memory& memory) {
  const auto line = [&](const char* name, const MemoryUse& use) {
    out << name << ": " << bytes_text(use.current) << ", at most " << bytes_text(use.peak) << '\n';
  };
  line("values", memory.values);
  line("saved", memory.saved);
  line("checkpoints", memory.checkpoints);
  line("buffers", memory.buffers);
  line("parameters", memory.parameters);
  line("all", memory.all);
  return out;
}

void count_as(const Tensor& tensor, MemoryClass what) {
  if (!tensor.is_defined()) return;
  if (tensor.block()->kind == BlockKind::list) {
    for (const Tensor& element : list_elements(tensor)) count_as(element, what);
    return;
  }
  TensorBlock* const block = counted(*tensor.ref().get());
  if (!block) return;
  // An exchange costs more than all else here, and most blocks are counted already.
  if (block->memory_class.load(std::memory_order_relaxed) == what) return;
  const MemoryClass before = block->memory_class.exchange(what, std::memory_order_relaxed);
  if (before != what && block->kind == BlockKind::dense)
    memory_counts.move(before, what, block->type.bytes());
}

void count_elements_made_since(std::uint64_t begin, const Tensor& list, MemoryClass what) {
  for (const Tensor& element : list_elements(list))
    if (element.is_defined()) count_as_made_since(begin, element, what);
}

void count_bytes(MemoryClass what, std::int64_t bytes) {
  memory_counts.add(what, bytes);
  memory_counts.publish();  // a thread frees its plans' memory after its counts are closed
}
void recount_bytes(MemoryClass from, MemoryClass to, std::int64_t bytes) {
  memory_counts.move(from, to, bytes);
}

}  // namespace reel
