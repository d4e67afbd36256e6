#include "reel/trace/passes/analysis/loop_time.h"

#include <algorithm>

#include "reel/core/ops/control/nested_step_types.h"
#include "reel/trace/passes/analysis/row_axes.h"

namespace reel {
namespace {

/// Returns true if iterations may change a plain size of a carry. A chunk would then return another
/// type than it takes.
bool changes_plain_sizes(const LoopAttrs& attrs, std::span<const TensorType> inputs) {
  const auto initial = operands_of(attrs, inputs).carries;
  const auto formals = body_inputs(attrs).carries;
  for (std::size_t i = 0; i < formals.size(); ++i) {
    const TensorType &formal = attrs.body.graph->types[formals[i]], &given = initial[i];
    for (int axis = 0; !formal.is_list() && axis < formal.rank(); ++axis) {
      const Dim& dim = formal.dims()[static_cast<std::size_t>(axis)];
      if (dim.is_symbol() && !dim.is_named() &&
          given.dims()[static_cast<std::size_t>(axis)].has_size())
        return true;
    }
  }
  return false;
}

}  // namespace

std::optional<Dim> loop_time_of(const LoopAttrs& attrs, std::span<const TensorType> inputs,
                                std::string& why) {
  const auto no = [&](const char* reason) {
    why = reason;
    return std::nullopt;
  };
  if (attrs.makes_lengths()) return no("a condition finishes its entries one by one");
  if (attrs.entries.dims.size() > 1) return no("its entries finish one by one along several dims");
  if (!attrs.trips.is_full)
    return no(
        "its trip count is unknown before it runs; scan, or fori_loop with numbers as bounds, "
        "knows "
        "it");
  if (!changing_dims(attrs).empty())
    return no("its carries change their dims from iteration to iteration");
  std::optional<Dim> time;
  const auto add = [&](const Dim& dim) {
    if (!time) time = dim;
    return *time == dim && (dim.is_named() || dim.has_size() || attrs.chunking.within_chunk);
  };
  for (const TensorType& slices : operands_of(attrs, inputs).slices)
    if (!slices.is_list() && !add(slices.dims()[0]))
      return no("its slices and stacks run along dims of their own");
  for (const LoopStack& stack : attrs.stacks)
    if (!stack.is_list && !add(stack.dim))
      return no("its slices and stacks run along dims of their own");
  if (!time)
    return no(attrs.slices.empty() && attrs.stacks.empty() ? "it has no slices and no stacks"
                                                           : "what it slices and stacks are lists");
  if (!attrs.has_entries() && time->is_ragged()) return no("the dim of its iterations is ragged");
  if (attrs.has_entries() && time->length_dims() != Dims{entry_dim(attrs, inputs)})
    return no("lengths of its entries differ from those of its slices and stacks");
  return time;
}

std::optional<Dim> divisible_loop_time_of(const LoopAttrs& attrs,
                                          std::span<const TensorType> inputs) {
  if (attrs.chunking.over_chunks || attrs.cond || attrs.trips.makes_dim ||
      attrs.trips.has_lengths != attrs.has_entries() || !first_dense_slice(attrs, inputs))
    return std::nullopt;
  if (std::any_of(attrs.carries.begin(), attrs.carries.end(),
                  [](const LoopCarry& carry) { return !carry.final_dims.empty(); }))
    return std::nullopt;
  if (changes_plain_sizes(attrs, inputs) || is_step_open(attrs, inputs)) return std::nullopt;
  std::string why;
  return loop_time_of(attrs, inputs, why);
}

}  // namespace reel
