// core/block.h — Block, what a Tensor points to: header and data in one allocation.
#pragma once

#include <cstddef>
#include <cstdint>

#include "reel/core/ref.h"
#include "reel/core/tensor_type.h"

namespace reel {

/// Something that hangs on a block and dies with it: the elements of a TensorArray, a packed copy of a weight.
struct Attachment : RefCounted {
  virtual ~Attachment() = default;
  static void destroy(const Attachment* attachment) { delete attachment; }
};

enum class BlockKind : std::uint8_t {
  dense,    ///< data follows the header
  view,     ///< data lies in another block
  list,     ///< a TensorArray; its elements are the attachment
  promise,  ///< a value of a graph that is being recorded
};

/// One cache line of header. Allocated and freed by eager/storage.cpp.
struct alignas(64) Block : RefCounted {
  BlockKind kind = BlockKind::dense;
  std::uint8_t pool = 0;         ///< the size class it came from
  std::uint32_t value = 0;       ///< promise: its number in the graph
  TensorType type;
  void* data = nullptr;
  std::uint64_t id = 0;          ///< unique over all blocks and threads; never reused
  Ref<Block> storage;            ///< view: who owns the data
  Ref<const Attachment> attachment;
  std::uint64_t builder = 0;     ///< promise: serial number of the GraphBuilder

  explicit Block(TensorType type) : type(std::move(type)) {}
  static void destroy(Block* block);
};
static_assert(sizeof(Block) == 64);

/// A block for a tensor of a known type, its data 64-byte aligned and uninitialised.
Ref<Block> allocate_block(const TensorType& type);
/// A block that shares storage, starting at `data`.
Ref<Block> allocate_view(const TensorType& type, const Ref<Block>& storage, void* data);
Ref<Block> allocate_list(const TensorType& type, Ref<const Attachment> elements);
Ref<Block> allocate_promise(const TensorType& type, std::uint64_t builder, std::uint32_t value);
/// The next id of this thread: ids made by one thread grow by one, and no two threads share any.
std::uint64_t next_block_id();

}  // namespace reel
