// core/memory.h — memory, how many bytes tensors take, by what they are for; MemoryError.
#pragma once

#include <cstdint>
#include <iosfwd>

#include "reel/core/block.h"
#include "reel/core/errors.h"
#include "reel/core/tensor.h"

namespace reel {

/// There is no memory for a tensor, or for what a plan works in.
class MemoryError : public Error {
 public:
  using Error::Error;
};
/// bytes: of all that was asked for at once.
[[noreturn]] void throw_no_memory(std::int64_t bytes);

/// Bytes of data: now, and the most there were at a time since reset_peak_memory.
struct MemoryUse {
  std::int64_t current = 0, peak = 0;
};

/// What the data of tensors take, by what they are for. Each byte is counted once; what lies in the
/// memory of another library, or in a file, is not.
struct Memory {
  MemoryUse values;       ///< arguments, results, and what no other line has
  MemoryUse saved;        ///< kept for a gradient, by a tape or a loop
  MemoryUse checkpoints;  ///< states of loops that a Checkpoint keeps
  MemoryUse buffers;  ///< of plans, those held for the next call too; but for what is saved there
  MemoryUse parameters;  ///< what an optimiser has updated or was made for, and its moments
  MemoryUse all;
};

/// What this thread has allocated and freed is in it to the byte, of other threads all but the last
/// 64 KiB of each. A tensor counts with its elements; headers of 64 bytes, the rounding of sizes to
/// those that memory comes in, and freed blocks that wait for the next tensor come on top of it.
///
///   reset_peak_memory();
///   step(model, batch);
///   std::cout << memory();
Memory memory();
/// Peaks are what is there now.
void reset_peak_memory();
/// A line for each class.
std::ostream& operator<<(std::ostream& out, const Memory& memory);

// ---- For those who keep tensors -----------------------------------------------------------------

/// From here on the tensor's data, those that it is a view of, and a list's elements are of this
/// class. A promise hands it to the value that it stands for, where that is a result.
void count_as(const Tensor& tensor, MemoryClass what);
void count_elements_made_since(std::uint64_t begin, const Tensor& list, MemoryClass what);
/// The same for what has no class yet, and was made on this thread since a block had the id
/// `begin`: what somebody handed in stays what it was. Of a list, element by element.
inline void count_as_made_since(std::uint64_t begin, const Tensor& tensor, MemoryClass what) {
  const TensorBlock& block = *tensor.block();
  if (block.kind == BlockKind::list) return count_elements_made_since(begin, tensor, what);
  const TensorBlock& owner = block.storage ? *block.storage : block;
  if (owner.memory_class.load(std::memory_order_relaxed) == MemoryClass::values &&
      is_id_since(owner.id, begin))
    count_as(tensor, what);
}
/// Memory that is no tensor's: so many more bytes, fewer where negative.
void count_bytes(MemoryClass what, std::int64_t bytes);
/// So many bytes that were counted as one class are of another one from here on.
void recount_bytes(MemoryClass from, MemoryClass to, std::int64_t bytes);

}  // namespace reel
