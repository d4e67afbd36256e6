// trace/executors/checkpoints/known_steps.h — trip counts of loops, as far as their graphs tell.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "reel/core/graph/known_number.h"
#include "reel/core/ops/loop/loop.h"

namespace reel {

/// Returns the loop's number of time steps if a dim of known size, or a bound that is a known
/// number, determines it.
///
/// types: types of the graph's values, as far as they are known.
std::optional<std::int64_t> known_steps(const Graph& graph, const OpRecord& loop,
                                        std::span<const TensorType> types,
                                        const KnownNumbers& numbers = {});
/// Returns the same for a loop with the given inputs. `inputs` may have further elements.
std::optional<std::int64_t> known_steps(const Graph& graph, const LoopAttrs& loop,
                                        std::span<const ValueId> inputs,
                                        std::span<const TensorType> types,
                                        const KnownNumbers& numbers = {});

/// Returns how many tensors one residual is in each iteration: 1, or the length of a list. Lists
/// are known only if an inner loop saved one element per iteration, or its checkpoints.
std::optional<std::int64_t> known_tensors(const Graph& graph, ValueId v,
                                          std::span<const TensorType> types,
                                          const KnownNumbers& numbers = {});

/// Returns how many checkpoints a loop has after `steps` iterations; nothing if the size of its
/// state is unknown.
std::optional<std::int64_t> checkpoints_left(const LoopAttrs& loop, std::int64_t steps,
                                             std::span<const TensorType> inputs);

/// Returns k such that v is output k of `maker`. Requires that `maker` makes v.
std::size_t output_of(const Graph& graph, const OpRecord& maker, ValueId v);

}  // namespace reel
