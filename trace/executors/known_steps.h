// trace/executors/known_steps.h — how often loops run, as far as their graphs tell.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "reel/core/known_number.h"
#include "reel/core/ops/loop.h"

namespace reel {

/// The number of a loop's steps, where dims with known sizes or a bound that is a known number
/// tell. types: of the graph's values, as far as they are known.
std::optional<std::int64_t> known_steps(const Graph& graph, const OpRecord& loop,
                                        std::span<const TensorType> types,
                                        const KnownNumbers& numbers = {});
/// The same of a loop whose inputs are those; inputs of another op may follow.
std::optional<std::int64_t> known_steps(const Graph& graph, const LoopAttrs& loop,
                                        std::span<const ValueId> inputs,
                                        std::span<const TensorType> types,
                                        const KnownNumbers& numbers = {});

/// How many tensors a value is that steps save: 1, or those of a list, where that is what a loop
/// has saved of each of its own steps, or its checkpoints.
std::optional<std::int64_t> known_tensors(const Graph& graph, ValueId v,
                                          std::span<const TensorType> types,
                                          const KnownNumbers& numbers = {});

/// How many checkpoints a loop has when it has run so many steps, where its state is known.
std::optional<std::int64_t> checkpoints_left(const LoopAttrs& loop, std::int64_t steps,
                                             std::span<const TensorType> inputs);

/// Which of the record's outputs it is.
std::size_t output_of(const Graph& graph, const OpRecord& maker, ValueId v);

}  // namespace reel
