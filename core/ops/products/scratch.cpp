#include "reel/core/ops/products/scratch.h"

#include <array>
#include <utility>

#include "reel/core/base/thread_store.h"

namespace reel {

// Creating a type allocates a small object, so the latest are cached: loops request the same ones
// in every step. The cache is searched, not hashed: the low bits of matrix sizes are often equal.
TensorType type_of_bytes(std::int64_t bytes) {
  struct Kept {
    std::int64_t bytes = -1;
    TensorType type{boolean, {0}};
  };
  struct All {
    std::array<Kept, 16> kept;
    std::size_t oldest = 0;
  };
  All* const all = ThreadStore<All, Kept>::get();
  if (!all) return TensorType(boolean, {bytes});
  for (const Kept& kept : all->kept)
    if (kept.bytes == bytes) return kept.type;
  Kept made{bytes, TensorType(boolean, {bytes})};
  return (all->kept[all->oldest++ % all->kept.size()] = std::move(made)).type;
}

}  // namespace reel
