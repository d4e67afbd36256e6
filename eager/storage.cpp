// Blocks: allocation, per-thread pools of freed ones, ids.
#include <algorithm>
#include <array>
#include <atomic>
#include <new>

#include "reel/core/base/errors.h"
#include "reel/core/base/str.h"
#include "reel/core/debugger/offsets.h"
#include "reel/core/runtime/allocation_limit.h"
#include "reel/core/runtime/memory.h"
#include "reel/core/types/block.h"
#include "reel/core/types/tensor.h"
#include "reel/eager/memory_counts.h"
#include "reel/eager/regions.h"

namespace reel {
namespace {

// A pool holds freed blocks of one size. Data of tensors up to 4 KiB take multiples of a cache
// line, then four sizes per power of two up to 256 MiB, plus the header: most tensors have such a
// size. A loop frees and allocates the same few sizes repeatedly. A pool makes that two pointer
// moves, and saves the system's page handling for large blocks.
constexpr std::size_t kHeader = sizeof(TensorBlock);
constexpr int kSmallBits = 12, kLargestBits = 28;
constexpr int kSmall = static_cast<int>(((std::size_t{1} << kSmallBits) + kHeader) / 64);
constexpr int kPools = kSmall + 4 * (kLargestBits - kSmallBits);
static_assert(kHeader % kCacheLine == 0);
constexpr std::uint8_t kNoPool = 255;
constexpr int kMaxSmallBlocks = 1 << 15;  // per pool of small blocks and thread
constexpr std::int64_t kMaxLargeBytes = std::int64_t{256} << 20;  // in all pools of large blocks

// Links the table of debuggers into every program, though only debuggers read it.
[[gnu::used, gnu::retain]] const DebuggerOffset* const table_of_debuggers = reel_debugger_offsets;

struct Freed {
  Freed* next;
};
struct Pool {
  Freed* first = nullptr;
  int room = 0;  // free places; 0 before the thread's pools open and after they close
};
struct Pools {
  std::array<Pool, kPools> pools{};
  std::int64_t large_bytes = 0;  // bytes in pools of large blocks
  bool opened = false;
  bool closed = false;  // at the end of the thread: blocks are no longer pooled, and counts are
                        // published at once
};
constinit thread_local Pools local{};

std::size_t pool_bytes(int pool) {
  if (pool < kSmall) return (pool + 1) * kCacheLine;
  const int power = kSmallBits + (pool - kSmall) / 4, quarter = (pool - kSmall) % 4;
  return kHeader + (static_cast<std::size_t>(5 + quarter) << (power - 2));
}

int pool_of(std::size_t bytes) {
  if (kAllocatesEachBlock) return kNoPool;
  if (bytes <= kSmall * kCacheLine) return static_cast<int>((bytes - 1) / kCacheLine);
  const std::size_t last = bytes - kHeader - 1;
  const int power = 63 - __builtin_clzll(last);
  if (power >= kLargestBits) return kNoPool;
  return kSmall + 4 * (power - kSmallBits) + static_cast<int>(last >> (power - 2) & 3);
}

void empty(Pool& pool, int number) {
  while (Freed* block = std::exchange(pool.first, pool.first ? pool.first->next : nullptr)) {
    give_memory_back(block);
    if (number >= kSmall) local.large_bytes -= static_cast<std::int64_t>(pool_bytes(number));
  }
}

struct Closer {
  ~Closer() {
    for (int number = 0; number < kPools; ++number) {
      empty(local.pools[number], number);
      local.pools[number].room = 0;
    }
    local.closed = true;
    memory_counts.publish();
  }
};
void open() {
  static thread_local Closer closer;
  local.opened = true;
  for (Pool& pool : local.pools) pool.room = kMaxSmallBlocks;
}

/// Adds a large block to the pools' bytes and enforces their limit. The age of pooled blocks is
/// unknown, so the largest are freed first.
void keep_large(int number) {
  local.large_bytes += static_cast<std::int64_t>(pool_bytes(number));
  if (local.large_bytes <= kMaxLargeBytes) return;
  for (int other = kPools - 1; other >= kSmall && local.large_bytes > kMaxLargeBytes / 2; --other) {
    Pool& pool = local.pools[other];
    const std::int64_t before = local.large_bytes;
    empty(pool, other);
    pool.room += static_cast<int>((before - local.large_bytes) /
                                  static_cast<std::int64_t>(pool_bytes(other)));
  }
}

std::atomic<std::uint64_t> next_thread{1};
constinit thread_local std::uint64_t last_id = 0;

[[gnu::always_inline]] inline void* allocate(std::size_t bytes, std::uint8_t& pool_number) {
  const std::size_t asked = bytes - sizeof(TensorBlock);
  const int number = pool_of(bytes);
  pool_number = static_cast<std::uint8_t>(number);
  if (number != kNoPool) {
    Pool& pool = local.pools[number];
    if (pool.first) {
      ++pool.room;
      if (number >= kSmall) local.large_bytes -= static_cast<std::int64_t>(pool_bytes(number));
      Freed* block = std::exchange(pool.first, pool.first->next);
      // Prefetch the next block, which may have been freed long ago.
      __builtin_prefetch(pool.first);
      __builtin_prefetch(reinterpret_cast<char*>(pool.first) + kCacheLine, 1);
      return block;
    }
    bytes = pool_bytes(number);
  }
  AllocationLimit::check(static_cast<std::int64_t>(asked));
  if (!local.opened) open();  // a thread that frees nothing must publish its allocations too
  void* memory = take_memory(bytes);
  if (!memory) throw_no_memory(static_cast<std::int64_t>(bytes));
  return memory;
}

[[gnu::always_inline]] inline void free_block(void* memory, std::uint8_t number) {
  if (!local.opened) open();  // a thread that only frees must publish its counts too
  if (number != kNoPool) {
    Pool& pool = local.pools[number];
    if (pool.room > 0) {
      pool.first = new (memory) Freed{pool.first};
      --pool.room;
      if (number >= kSmall) keep_large(number);
      return;
    }
  }
  if (local.closed) memory_counts.publish();
  give_memory_back(memory);
}

[[gnu::always_inline]] inline std::uint64_t next_id() {
  if (!last_id) last_id = next_thread++ << 44;
  return ++last_id;
}

[[gnu::always_inline]] inline TensorBlock* new_block(const TensorType& type,
                                                     std::size_t data_bytes) {
  std::uint8_t pool;
  void* memory = allocate(sizeof(TensorBlock) + data_bytes, pool);
  auto* block = new (memory) TensorBlock(type);
  block->pool = pool;
  block->id = next_id();
  return block;
}

}  // namespace

std::uint64_t next_block_id() { return next_id(); }

Ref<TensorBlock> allocate_block(const TensorType& type) {
  if (!type.is_known())
    throw ShapeError(str(type, " has an axis of unknown size; give every dim a size"));
  auto* block = new_block(type, static_cast<std::size_t>(type.bytes()));
  block->data = block + 1;
  memory_counts.add(MemoryClass::values, type.bytes());
  return Ref<TensorBlock>(block);
}

Ref<TensorBlock> allocate_view(const TensorType& type, const Ref<TensorBlock>& storage,
                               void* data) {
  auto* block = new_block(type, 0);
  block->kind = BlockKind::view;
  block->data = data;
  block->storage =
      storage->storage ? storage->storage : storage;  // never a chain: freeing must not recurse
  return Ref<TensorBlock>(block);
}

Ref<TensorBlock> allocate_foreign(const TensorType& type, void* data,
                                  Ref<const BlockAttachment> owner) {
  // A block without elements holds the owner. The tensor is a view of it, as views of the tensor
  // will be.
  static const auto& nothing = *new TensorType(boolean, {0});  // never destroyed
  const Ref<TensorBlock> holder(new_block(nothing, 0));
  holder->data = holder.get() + 1;
  holder->attachment = std::move(owner);
  return allocate_view(type, holder, data);
}

Ref<TensorBlock> allocate_placed(const TensorType& type, void* data) {
  auto* block = new_block(type, 0);
  block->kind = BlockKind::view;
  block->data = data;
  return Ref<TensorBlock>(block);
}

Ref<TensorBlock> allocate_list(const TensorType& type, Ref<const BlockAttachment> elements) {
  auto* block = new_block(type, 0);
  block->kind = BlockKind::list;
  block->attachment = std::move(elements);
  return Ref<TensorBlock>(block);
}

Ref<TensorBlock> allocate_steps(const TensorType& type, Ref<const BlockAttachment> steps) {
  auto* block = new_block(type, 0);
  block->kind = BlockKind::steps;
  block->attachment = std::move(steps);
  return Ref<TensorBlock>(block);
}

Ref<TensorBlock> allocate_promise(const TensorType& type, std::uint64_t builder,
                                  std::uint32_t value, Ref<const Recording> recording,
                                  const Op* maker) {
  auto* block = new_block(type, 0);
  block->kind = BlockKind::promise;
  block->builder = builder;
  block->value = value;
  block->attachment = std::move(recording);
  block->data = const_cast<Op*>(maker);
  return Ref<TensorBlock>(block);
}

void TensorBlock::destroy(TensorBlock* block) {
  const std::uint8_t pool = block->pool;
  if (block->kind == BlockKind::dense)
    memory_counts.add(block->memory_class.load(std::memory_order_relaxed), -block->type.bytes());
  block->~TensorBlock();
  free_block(block, pool);
}

}  // namespace reel
