// trace/executors/chunks.h — Chunks, how a loop in chunks divides its steps.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "reel/core/ops/loop.h"
#include "reel/core/tensor.h"

namespace reel {

/// Chunks of equal size, of which the last may be shorter.
///
/// Where entries end one by one, each chunk has the lengths that are left of theirs in it. A plan
/// has one dim for all chunks of a size even so, whose lengths lie where it says (lies_in_plan) and
/// are those of the chunk that begins: show_lengths().
struct Chunks {
  Dim time;                ///< of all steps
  std::int64_t steps = 0;  ///< in all
  std::int64_t size = 1;   ///< steps of a chunk
  Dim dim, rest_dim;       ///< of the steps of a chunk, and of the last one
  // Where entries end one by one: what both dims show, and their nodes.
  Tensor lengths;
  Ref<DimNode> node, rest_node;

  std::int64_t count() const { return (steps + size - 1) / size; }
  std::int64_t first(std::int64_t chunk) const { return chunk * size; }
  std::int64_t steps_of(std::int64_t chunk) const { return std::min(size, steps - first(chunk)); }
  bool is_rest(std::int64_t chunk) const { return steps_of(chunk) != size; }
  bool has_rest() const { return steps % size != 0; }
  /// From now on the lengths of the dims are those of a chunk.
  void show_lengths(std::int64_t chunk) const;
  /// A dim of its own for a chunk, which may be kept.
  Dim made_dim(std::int64_t chunk) const;
};

/// What a step of a loop reads and writes, but for what it saves. inputs: types of the op's.
std::vector<TensorType> step_types(const LoopAttrs& attrs, std::span<const TensorType> inputs);

/// The chunks of a loop in chunks. inputs: types of the op's.
Chunks chunks_of(const LoopAttrs& attrs, std::span<const TensorType> inputs);

/// The dim of some of its steps, with the name it has, and what lies in them of its lengths.
Dim part_of_dim(const Dim& time, std::int64_t first, std::int64_t count);

/// A symbol for the dim of some of its steps, whose number only a run knows.
Dim part_symbol(const Dim& time);

/// So many steps are a chunk, when one of them reads and writes `step` bytes, and each chunk reads
/// and writes `matrices` bytes besides (sums, weights that no gradient's reads outside of the inner
/// loop):
/// what it makes is read again while it is in the second cache, or else it is much beside matrices
/// that are not, as far as that takes no more memory than it is worth. It depends on nothing else,
/// least of all on threads or on what is saved. has_loops: a step is many steps of a loop inside,
/// and few of it may be a chunk.
std::int64_t steps_of_chunk(std::int64_t step, std::int64_t matrices, bool has_loops = false);

}  // namespace reel
