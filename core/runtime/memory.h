// core/runtime/memory.h — memory, the bytes that tensors take, by purpose; MemoryError.
#pragma once

#include <cstdint>
#include <iosfwd>

#include "reel/core/base/errors.h"
#include "reel/core/base/visibility.h"
#include "reel/core/types/block.h"
#include "reel/core/types/tensor.h"

REEL_API_BEGIN
namespace reel {

/// There is no memory for a tensor or for a plan's buffers.
class MemoryError : public Error {
 public:
  using Error::Error;
};
/// Throws MemoryError. bytes: the size of the failed allocation.
[[noreturn]] void throw_no_memory(std::int64_t bytes);

/// Bytes of data: now, and the maximum since reset_peak_memory().
struct MemoryUse {
  std::int64_t current = 0, peak = 0;  ///< now, and the maximum since reset_peak_memory()
};

/// Bytes of tensors' data, by purpose. Each byte is counted once. Data in the memory of another
/// library, or in a file, are not counted.
struct Memory {
  MemoryUse values;       ///< arguments, results, and all that has no other class
  MemoryUse saved;        ///< saved for a gradient, by a tape or a loop
  MemoryUse checkpoints;  ///< states of loops that a Checkpoint saves
  /// Memory of plans, except residuals; also between calls, until the jitted function is
  /// destroyed.
  MemoryUse buffers;
  MemoryUse parameters;  ///< optimisers' parameters and moments
  MemoryUse all;         ///< of all classes together
};

/// Returns the bytes in use. Exact for this thread; for each other thread the last 64 KiB of
/// changes may be missing. Elements of tensors count; headers of 64 bytes, rounding up to size
/// classes, and freed allocations that wait for reuse are not counted.
///
///   reset_peak_memory();
///   step(model, batch);
///   std::cout << memory();
Memory memory();
/// Sets each peak to the current value.
void reset_peak_memory();
/// Prints a line for each class.
std::ostream& operator<<(std::ostream& out, const Memory& memory);

// ---- For code that retains tensors --------------------------------------------------------------

/// Assigns a class to the tensor's data, also to the data that it is a view of, and to the elements
/// of a list. A promise passes the class to the value that it stands for, if that is a result.
void count_as(const Tensor& tensor, MemoryClass what);
void count_elements_made_since(std::uint64_t begin, const Tensor& list, MemoryClass what);
/// Assigns a class to data that have none yet and were made on this thread after the block with the
/// id `begin`. Data from outside keep their class. For a list, applies to each element.
inline void count_as_made_since(std::uint64_t begin, const Tensor& tensor, MemoryClass what) {
  const TensorBlock& block = *tensor.block();
  if (block.kind == BlockKind::list) return count_elements_made_since(begin, tensor, what);
  const TensorBlock& owner = block.storage ? *block.storage : block;
  if (owner.memory_class.load(std::memory_order_relaxed) == MemoryClass::values &&
      is_id_since(owner.id, begin))
    count_as(tensor, what);
}
/// Counts memory outside of tensors. bytes: the change; negative if memory was freed.
void count_bytes(MemoryClass what, std::int64_t bytes);
/// Moves `bytes` from one class to another.
void recount_bytes(MemoryClass from, MemoryClass to, std::int64_t bytes);

}  // namespace reel
REEL_API_END
