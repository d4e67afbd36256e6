// trace/executors/chunks.h — Chunks, how a loop in chunks divides its steps.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "reel/core/ops/loop.h"

namespace reel {

/// Chunks of equal size, of which the last may be shorter.
struct Chunks {
  std::int64_t steps = 0;  ///< in all
  std::int64_t size = 1;   ///< steps of a chunk
  Dim dim, rest_dim;       ///< of the steps of a chunk, and of the last one

  std::int64_t count() const { return (steps + size - 1) / size; }
  std::int64_t first(std::int64_t chunk) const { return chunk * size; }
  std::int64_t steps_of(std::int64_t chunk) const { return std::min(size, steps - first(chunk)); }
  bool is_rest(std::int64_t chunk) const { return steps_of(chunk) != size; }
  bool has_rest() const { return steps % size != 0; }
  const Dim& dim_of(std::int64_t chunk) const { return is_rest(chunk) ? rest_dim : dim; }
};

/// The chunks of a loop in chunks. inputs: types of the op's.
Chunks chunks_of(const LoopAttrs& attrs, std::span<const TensorType> inputs);

/// So many steps are a chunk, when one of them reads and writes `step` bytes, and each chunk reads
/// and writes `matrices` bytes besides (weights that it reads outside of the inner loop, sums):
/// what it makes is read again while it is in the second cache, or else it is much beside matrices
/// that are not. It depends on nothing else, least of all on threads or on what is saved.
std::int64_t steps_of_chunk(std::int64_t step, std::int64_t matrices);

}  // namespace reel
