// trace/executors/plan/loop/unfit_output.h — first_unfit_output: whether a loop's body has types
// that a plan can run.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "reel/core/ops/loop/loop.h"

namespace reel {

/// Returns the number of the first output of a body that a planned loop cannot take: a carry that
/// comes back with another type than it went in, or with one that only a run tells, or a stack or
/// sum of such a type. Returns nothing if there is none. Lists and checkpoints may have any type.
///
/// carried: types of the carries. is_known(k), type(k): of output k of the body.
template <class IsKnown, class Type>
std::optional<std::size_t> first_unfit_output(const LoopAttrs& loop,
                                              std::span<const TensorType> carried,
                                              const IsKnown& is_known, const Type& type) {
  const Graph& body = *loop.body.graph;
  for (std::size_t k = 0; k < body.outputs.size(); ++k) {
    const LoopLeaf leaf = body_output_at(loop, k);
    if (leaf.is(LeafKind::carry)) {
      if (carried[leaf.index].is_list()) continue;
      if (!is_known(k) || !(type(k) == carried[leaf.index])) return k;
      continue;
    }
    const bool is_checkpoint = leaf.is(LeafKind::stack) && loop.stacks[leaf.index].is_checkpoint();
    const bool is_list = leaf.is(LeafKind::stack) && loop.stacks[leaf.index].is_list;
    if (!is_known(k) && !is_list && !is_checkpoint) return k;
  }
  return std::nullopt;
}

}  // namespace reel
