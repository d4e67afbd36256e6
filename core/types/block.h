// core/types/block.h — TensorBlock, the object that a Tensor points to: header and data in one
// allocation.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "reel/core/base/ref.h"
#include "reel/core/base/visibility.h"
#include "reel/core/types/tensor_type.h"

REEL_API_BEGIN
namespace reel {

/// An object owned by a block: the elements of a TensorArray, a packed copy of a weight, or the
/// container of another library that holds the data.
struct BlockAttachment : RefCounted {
  virtual ~BlockAttachment() = default;
  static void destroy(const BlockAttachment* attachment) { delete attachment; }
};

struct Op;
/// The recording that a promise belongs to, as errors name it: the body of scan "encoder".
struct Recording : BlockAttachment {
  std::string place;
  explicit Recording(std::string named) : place(std::move(named)) {}
};

enum class BlockKind : std::uint8_t {
  dense,    ///< data follows the header
  view,     ///< data lies in another block
  list,     ///< a TensorArray; its elements are the attachment
  promise,  ///< a value of a graph that is being recorded
  steps,    ///< residuals of a loop for all iterations; few are in memory
            ///< (core/runtime/residual_source.h)
};

/// The purpose of a block's data, as memory() counts them (core/runtime/memory.h).
enum class MemoryClass : std::uint8_t { values, saved, checkpoints, buffers, parameters };

/// The header of a tensor, one cache line. Allocated and freed by eager/storage.cpp.
struct alignas(64) TensorBlock : RefCounted {
  BlockKind kind = BlockKind::dense;
  std::uint8_t pool = 0;  ///< the allocator's size class
  std::atomic<MemoryClass> memory_class = MemoryClass::values;
  std::uint32_t value = 0;  ///< promise: its value number in the graph
  TensorType type;
  void* data = nullptr;                   ///< promise: the op that made it; null for an input
  std::uint64_t id = 0;                   ///< unique over all blocks and threads; never reused
  Ref<TensorBlock> storage;               ///< view: the block that owns the data
  Ref<const BlockAttachment> attachment;  ///< promise: its Recording
  std::uint64_t builder = 0;              ///< promise: serial number of the GraphBuilder

  explicit TensorBlock(TensorType of) : type(std::move(of)) {}
  static void destroy(TensorBlock* block);
};
static_assert(sizeof(TensorBlock) == 64);

/// Returns a block with uninitialised data, aligned to 64 bytes. Requires a type with known sizes.
/// Throws MemoryError.
Ref<TensorBlock> allocate_block(const TensorType& type);
/// Returns a block that shares `storage`; its data start at `data`.
Ref<TensorBlock> allocate_view(const TensorType& type, const Ref<TensorBlock>& storage, void* data);
/// Returns a block with data that `owner` owns, elements in row-major order. Requires only
/// the alignment of single elements.
Ref<TensorBlock> allocate_foreign(const TensorType& type, void* data,
                                  Ref<const BlockAttachment> owner);
/// Returns a block with data in a plan's memory, which the plan may overwrite. Code outside
/// the plan must not keep it (lies_in_plan() detects such tensors).
Ref<TensorBlock> allocate_placed(const TensorType& type, void* data);
Ref<TensorBlock> allocate_list(const TensorType& type, Ref<const BlockAttachment> elements);
/// Returns a block without data; iterations are read through the attachment.
Ref<TensorBlock> allocate_steps(const TensorType& type, Ref<const BlockAttachment> steps);
/// Returns a promise, a value of a recording. maker: the op that made it; null for an input of
/// the recording.
Ref<TensorBlock> allocate_promise(const TensorType& type, std::uint64_t builder,
                                  std::uint32_t value, Ref<const Recording> recording,
                                  const Op* maker);
/// Returns a sentence about a promise used outside its recording: the op that made it, and where.
std::string leak_text(const TensorBlock& promise);
/// Returns the next id of this thread. Ids of one thread grow by one; no two threads share an id.
std::uint64_t next_block_id();
/// Returns true if block `id` was made on this thread after the block with the id `begin`.
inline bool is_id_since(std::uint64_t id, std::uint64_t begin) {
  return id > begin && id - begin < std::uint64_t{1} << 43;  // other threads' ids are further away
}

}  // namespace reel
REEL_API_END
