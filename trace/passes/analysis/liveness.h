// trace/passes/analysis/liveness.h — finds the values and records that some outputs of a graph
// depend on.
#pragma once

#include <unordered_map>
#include <vector>

#include "reel/core/ops/loop/loop.h"

namespace reel {

using Symbols = std::unordered_map<const DimNode*, Dim>;

/// Live values and records, by index. Records with effects are always live.
struct Liveness {
  std::vector<std::uint8_t> values, records;
  Symbols symbols;  ///< mentioned by live records
};

/// Returns the values and records that the wanted outputs depend on. Looks into loops: a loop's
/// operand is live only if a live output of the loop depends on it. Rings of carries that feed only
/// each other are dead.
///
/// wanted: by output of the graph.   given: dims that are known around the graph.
Liveness liveness(const Graph& graph, const std::vector<std::uint8_t>& wanted,
                  const Dims& given = {});

/// Maps each dim to the record that makes it, the first with the dim in its outputs. Dims of inputs
/// are left out, as are dims known around the graph: its free symbols and `given`.
using DimMakers = std::unordered_map<const DimNode*, std::size_t>;
DimMakers dim_makers(const Graph& graph, const Dims& given = {});
/// Returns, by output of a record, whether it is live, or alone binds a dim that live records
/// mention.
std::vector<std::uint8_t> used_outputs(const Graph& graph, std::size_t record,
                                       const std::vector<std::uint8_t>& values,
                                       const Symbols& symbols, const DimMakers& makers);

/// Returns true if the bound alone decides the trip count. Returns false if slices run along a
/// plain axis of unknown size: a scan with max_seq_len may reach its end before the bound.
///
/// inputs: types of the op's inputs.
bool bound_says_all(const LoopAttrs& attrs, std::span<const TensorType> inputs);

/// The leaves of a loop that its used outputs depend on.
struct LoopLiveness {
  std::vector<std::uint8_t> carry, slice;
  Liveness body;
  std::vector<std::uint8_t> cond_values;
  Symbols symbols;  ///< of the graph around, mentioned by live records of body and condition
};
LoopLiveness loop_liveness(const LoopAttrs& attrs, const std::vector<std::uint8_t>& is_used,
                           const std::vector<TensorType>& input_types);
/// Returns the op's inputs that are live: bound, lengths and chunk, then live carries, slices and
/// captures.
std::vector<std::size_t> live_inputs(const LoopAttrs& attrs, const LoopLiveness& live);

}  // namespace reel
