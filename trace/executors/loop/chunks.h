// trace/executors/loop/chunks.h — Chunks: how a chunked loop divides its time steps.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "reel/core/ops/loop/loop.h"
#include "reel/core/types/tensor.h"

namespace reel {

/// Chunks of equal size; the last one may be shorter.
///
/// If entries finish one by one, each chunk has its own lengths: the part of each entry's length
/// that lies in the chunk. A plan still uses one dim for all chunks of a size. The plan places the
/// lengths of the dim (lies_in_plan), and show_lengths() writes the next chunk's lengths there.
struct Chunks {
  Dim time;                ///< dim of all time steps
  std::int64_t steps = 0;  ///< time steps in all
  std::int64_t size = 1;   ///< time steps of a chunk
  Dim dim, rest_dim;       ///< of the time steps of a chunk; of the last, shorter chunk
  // If entries finish one by one: the lengths that both dims show, and the nodes of these dims.
  Tensor lengths;
  Ref<DimNode> node, rest_node;

  std::int64_t count() const { return (steps + size - 1) / size; }
  std::int64_t first(std::int64_t chunk) const { return chunk * size; }
  std::int64_t steps_of(std::int64_t chunk) const { return std::min(size, steps - first(chunk)); }
  bool is_rest(std::int64_t chunk) const { return steps_of(chunk) != size; }
  bool has_rest() const { return steps % size != 0; }
  /// Writes the lengths of a chunk into the lengths that `dim` and `rest_dim` show.
  void show_lengths(std::int64_t chunk) const;
  /// Returns a new dim for a chunk, with lengths of its own: the dim stays valid for later chunks.
  Dim made_dim(std::int64_t chunk) const;
};

/// Returns the types of the values that an iteration reads and writes: its slices, and its stacks
/// without residuals. inputs: types of the op's inputs.
std::vector<TensorType> step_types(const LoopAttrs& attrs, std::span<const TensorType> inputs);

/// Returns the chunks of a chunked loop, or the chunks that a loop would be given. inputs: types of
/// the op's inputs.
Chunks chunks_of(const LoopAttrs& attrs, std::span<const TensorType> inputs);

/// Returns a dim for `count` time steps from `first` on, with the name of `time` and the part of
/// its lengths that lies in them.
Dim part_of_dim(const Dim& time, std::int64_t first, std::int64_t count);

/// Returns a symbol for the dim of some of the time steps; only a run knows their number.
Dim part_symbol(const Dim& time);

/// Returns the number of time steps of a chunk.
///
/// step: bytes that one time step reads and writes.
/// matrices: further bytes that each chunk reads and writes: sums, and weights that ops beside the
/// inner loop read, except in a gradient loop.
/// has_loops: the body has loops, so that a time step is many inner iterations and a chunk may be
/// small.
///
/// A chunk's values fit the second-level cache, to be read again from there. If the matrices do not
/// fit it, chunks grow until their values are large beside the matrices, limited by the memory that
/// they take. The result depends on nothing else, in particular neither on threads nor on
/// residuals.
std::int64_t steps_of_chunk(std::int64_t step, std::int64_t matrices, bool has_loops = false);

}  // namespace reel
