// trace/passes/liveness.h — what of a graph is needed for some of its outputs, through loops.
#pragma once

#include <unordered_map>
#include <vector>

#include "reel/core/ops/loop.h"

namespace reel {

using Symbols = std::unordered_map<const DimNode*, Dim>;

/// By value and by record; records with effects always live.
struct Liveness {
  std::vector<std::uint8_t> values, records;
  Symbols symbols;  ///< that live records mention
};

/// wanted: by output of the graph. Of what a loop takes lives only what its live outputs need: a
/// ring of carries that feed only each other does not, nested ones included.
Liveness liveness(const Graph& graph, const std::vector<std::uint8_t>& wanted,
                  const Dims& given = {});

/// Which record makes a dim: the first whose outputs have it. Inputs bring theirs along; what is
/// mentioned before anything makes it is known around the graph, and so are those `given`.
using DimMakers = std::unordered_map<const DimNode*, std::size_t>;
DimMakers dim_makers(const Graph& graph, const Dims& given = {});
/// Which outputs of a record live, or alone say what a dim is that live records mention.
std::vector<std::uint8_t> used_outputs(const Graph& graph, std::size_t record,
                                       const std::vector<std::uint8_t>& values,
                                       const Symbols& symbols, const DimMakers& makers);

/// The bound alone ends the loop. It does not know the length of slices along a plain axis of
/// unknown size, which a scan with max_seq_len may reach before it. inputs: types of the op's.
bool bound_says_all(const LoopAttrs& attrs, std::span<const TensorType> inputs);

/// What a loop needs for those of its outputs that are used.
struct LoopLiveness {
  std::vector<std::uint8_t> carry, slice;
  Liveness body;
  std::vector<std::uint8_t> cond_values;
  Symbols symbols;  ///< of around the loop, that live parts of its body and condition mention
};
LoopLiveness loop_liveness(const LoopAttrs& attrs, const std::vector<std::uint8_t>& is_used,
                           const std::vector<TensorType>& input_types);
/// Which inputs of the op that makes: bound and lengths, carries, slices, captures.
std::vector<std::size_t> live_inputs(const LoopAttrs& attrs, const LoopLiveness& live);

}  // namespace reel
