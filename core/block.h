// core/block.h — Block, what a Tensor points to: header and data in one allocation.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "reel/core/ref.h"
#include "reel/core/tensor_type.h"

namespace reel {

/// Something that hangs on a block and dies with it: the elements of a TensorArray, a packed copy
/// of a weight, the container of another library that data lie in.
struct BlockAttachment : RefCounted {
  virtual ~BlockAttachment() = default;
  static void destroy(const BlockAttachment* attachment) { delete attachment; }
};

struct Op;
/// The recording that a promise belongs to, as errors name it: the body of scan "encoder".
struct Recording : BlockAttachment {
  std::string place;
  explicit Recording(std::string place) : place(std::move(place)) {}
};

enum class BlockKind : std::uint8_t {
  dense,    ///< data follows the header
  view,     ///< data lies in another block
  list,     ///< a TensorArray; its elements are the attachment
  promise,  ///< a value of a graph that is being recorded
  steps,    ///< what a loop saved of all its steps, of which few are in memory (core/saved_steps.h)
};

/// What a block's data are for, as memory() counts them (core/memory.h).
enum class MemoryClass : std::uint8_t { values, saved, checkpoints, buffers, parameters };

/// One cache line of header. Allocated and freed by eager/storage.cpp.
struct alignas(64) TensorBlock : RefCounted {
  BlockKind kind = BlockKind::dense;
  std::uint8_t pool = 0;  ///< the size class it came from
  std::atomic<MemoryClass> memory_class = MemoryClass::values;
  std::uint32_t value = 0;  ///< promise: its number in the graph
  TensorType type;
  void* data = nullptr;                   ///< promise: the op that made it, if one did
  std::uint64_t id = 0;                   ///< unique over all blocks and threads; never reused
  Ref<TensorBlock> storage;               ///< view: who owns the data
  Ref<const BlockAttachment> attachment;  ///< promise: its Recording
  std::uint64_t builder = 0;              ///< promise: serial number of the GraphBuilder

  explicit TensorBlock(TensorType type) : type(std::move(type)) {}
  static void destroy(TensorBlock* block);
};
static_assert(sizeof(TensorBlock) == 64);

/// A block for a tensor of a known type, its data 64-byte aligned and uninitialised.
Ref<TensorBlock> allocate_block(const TensorType& type);
/// A block that shares storage, starting at `data`.
Ref<TensorBlock> allocate_view(const TensorType& type, const Ref<TensorBlock>& storage, void* data);
/// A block whose data, elements in row-major order, belong to `owner`. They are aligned as single
/// elements must be, no more.
Ref<TensorBlock> allocate_foreign(const TensorType& type, void* data,
                                  Ref<const BlockAttachment> owner);
/// A block whose data lie where a plan says, and may say anew: nobody else may keep it
/// (lies_in_plan tells).
Ref<TensorBlock> allocate_placed(const TensorType& type, void* data);
Ref<TensorBlock> allocate_list(const TensorType& type, Ref<const BlockAttachment> elements);
/// A block without data: who reads steps of it asks the attachment for them.
Ref<TensorBlock> allocate_steps(const TensorType& type, Ref<const BlockAttachment> steps);
/// maker: the op whose output it is, null for an input of the recording.
Ref<TensorBlock> allocate_promise(const TensorType& type, std::uint64_t builder,
                                  std::uint32_t value, Ref<const Recording> recording,
                                  const Op* maker);
/// Returns a sentence about a promise outside of its recording: the op that made it, and where.
std::string leak_text(const TensorBlock& promise);
/// The next id of this thread: ids made by one thread grow by one, and no two threads share any.
std::uint64_t next_block_id();
/// The id is of a block that was made on this thread after the one with the id `begin`.
inline bool is_id_since(std::uint64_t id, std::uint64_t begin) {
  return id > begin && id - begin < std::uint64_t{1} << 43;  // other threads' are further away
}

}  // namespace reel
