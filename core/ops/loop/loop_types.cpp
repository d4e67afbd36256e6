#include "reel/core/ops/loop/loop_types.h"

#include <algorithm>
#include <unordered_set>

#include "reel/core/dims/dim_facts.h"
#include "reel/core/ops/loop/loop_views.h"

namespace reel {

TensorType slice_type(const TensorType& slices) {
  if (slices.is_list()) return slices.element();
  return slices.with(Dims(slices.dims().begin() + 1, slices.dims().end()));
}

TensorType chunk_type(const TensorType& slices, const Dim& chunk) {
  if (slices.is_list()) return slices;
  Dims dims = slices.dims();
  dims[0] = chunk;
  return slices.with(dims);
}

std::optional<std::size_t> first_dense_slice(const LoopAttrs& attrs,
                                             std::span<const TensorType> inputs) {
  const auto slices = operands_of(attrs, inputs).slices;
  for (std::size_t i = 0; i < slices.size(); ++i)
    if (!slices[i].is_list()) return i;
  return std::nullopt;
}

LoopAttrs make_chunk_loop(const LoopAttrs& attrs, const Dim& chunk) {
  LoopAttrs result = attrs;
  result.chunking.within_chunk = true;
  result.trips.has_bound = false;
  if (!attrs.trips.makes_dim)
    for (LoopStack& stack : result.stacks) stack.dim = chunk;
  return result;
}

TensorType remove_chunk_dim(const LoopAttrs& attrs, const TensorType& term) {
  return attrs.chunking.over_chunks ? slice_type(term) : term;
}

TensorType element_of_stack(const LoopAttrs& attrs, std::size_t stack, const TensorType& term) {
  return attrs.stacks[stack].is_checkpoint() ? term : remove_chunk_dim(attrs, term);
}

bool makes_dim(const Graph& graph, const Dim& dim) {
  bool result = false;
  for_each_symbol(dim, [&](const Dim& symbol) {
    if (symbol.has_size() || contains(graph.schedule().free_symbols, symbol)) return;
    bool is_given = false;
    for (const ValueId v : graph.inputs)
      for_each_bound(graph.types[v], [&](const Dim& given) {
        is_given = is_given || given.node() == symbol.node();
      });
    result = result || !is_given;
  });
  return result;
}

Dims changing_dims(const LoopAttrs& attrs) {
  const Graph& body = *attrs.body.graph;
  Dims result;
  std::unordered_set<const DimNode*> found;
  const auto before = body_inputs(attrs).carries, behind = body_outputs(attrs).carries;
  for (std::size_t i = 0; i < before.size(); ++i) {
    const Dims &in = body.types[before[i]].dims(), &out = body.types[behind[i]].dims();
    for (std::size_t axis = 0; axis < in.size() && axis < out.size(); ++axis)
      if (in[axis].is_symbol() && in[axis].is_named() && !(in[axis] == out[axis]))
        for_each_operand(in[axis], [&](const Dim& dim) {
          if (dim.is_symbol() && found.insert(dim.node()).second) result.push_back(dim);
        });
  }
  // The lengths of one dim may run over another, which then comes first.
  std::stable_sort(result.begin(), result.end(), [](const Dim& a, const Dim& b) {
    return a.length_dims().size() < b.length_dims().size();
  });
  return result;
}

std::vector<std::uint8_t> carries_with_changing_dims(const LoopAttrs& attrs) {
  const Graph& body = *attrs.body.graph;
  std::unordered_set<const DimNode*> changing;
  for (const Dim& dim : changing_dims(attrs)) changing.insert(dim.node());
  const auto carries = body_inputs(attrs).carries;
  std::vector<std::uint8_t> result(carries.size());
  for (std::size_t i = 0; i < result.size(); ++i)
    for_each_symbol(body.types[carries[i]],
                    [&](const Dim& dim) { result[i] |= changing.count(dim.node()) != 0; });
  return result;
}

DimEnv body_env(const LoopAttrs& attrs, std::span<const TensorType> inputs) {
  const Graph& body = *attrs.body.graph;
  const auto given = operands_of(attrs, inputs);
  const auto formal = body_inputs(attrs);
  DimEnv env;
  for (std::size_t i = 0; i < given.carries.size(); ++i)
    env.bind(body.types[formal.carries[i]], given.carries[i]);
  for (std::size_t i = 0; i < given.slices.size(); ++i) {
    const TensorType slice = slice_type(given.slices[i]);
    const TensorType inside = remove_chunk_dim(attrs, body.types[formal.slices[i]]);
    if (slice.rank() == inside.rank()) env.bind(inside, slice);
  }
  // Captures are bound last: the lengths of an outer dim may run over dims of arguments, under the
  // names that these have outside the trace.
  for (std::size_t i = 0; i < formal.captures.size(); ++i)
    env.bind(body.types[formal.captures[i]],
             given.captures[static_cast<std::size_t>(attrs.body_captures[i])]);
  for (const auto& [symbol, actual] : attrs.body.bindings) env.bind(symbol, actual);
  return env;
}

DimEnv cond_env(const LoopAttrs& attrs, std::span<const TensorType> inputs) {
  const Graph& cond = *attrs.cond.graph;
  const auto given = operands_of(attrs, inputs);
  const auto formal = cond_inputs(attrs);
  DimEnv env = attrs.cond.env();
  for (std::size_t i = 0; i < given.carries.size(); ++i)
    env.bind(cond.types[formal.carries[i]], given.carries[i]);
  for (std::size_t i = 0; i < formal.captures.size(); ++i)
    env.bind(cond.types[formal.captures[i]],
             given.captures[static_cast<std::size_t>(attrs.cond_captures[i])]);
  return env;
}

}  // namespace reel
