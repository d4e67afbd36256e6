#include "reel/trace/passes/liveness.h"

#include <algorithm>
#include <functional>
#include <unordered_set>

namespace reel {

DimMakers dim_makers(const Graph& graph, const Dims& given) {
  DimMakers makers;
  std::unordered_set<const DimNode*> from_inputs;
  for (const ValueId v : graph.inputs)
    for_each_bound(graph.types[v], [&](const Dim& d) { from_inputs.insert(d.node()); });
  // Dims known around the graph are not made here, even if no input binds them any more.
  for (const Dim& d : graph.schedule().free_symbols) from_inputs.insert(d.node());
  for (const Dim& d : given) from_inputs.insert(d.node());
  for (std::size_t r = 0; r < graph.records.size(); ++r)
    for (const ValueId v : graph.outputs_of(graph.records[r]))
      for_each_bound(graph.types[v], [&](const Dim& d) {
        if (!from_inputs.count(d.node())) makers.emplace(d.node(), r);
      });
  return makers;
}

std::vector<std::uint8_t> used_outputs(const Graph& graph, std::size_t record,
                                       const std::vector<std::uint8_t>& values,
                                       const Symbols& symbols, const DimMakers& makers) {
  const auto out = graph.outputs_of(graph.records[record]);
  std::vector<std::uint8_t> result;
  std::unordered_set<const DimNode*> said;
  for (const ValueId v : out) {
    result.push_back(values[v]);
    if (values[v]) for_each_bound(graph.types[v], [&](const Dim& d) { said.insert(d.node()); });
  }
  for (std::size_t i = 0; i < out.size(); ++i)
    for_each_bound(graph.types[out[i]], [&](const Dim& d) {
      const auto maker = makers.find(d.node());
      const bool is_made_here = maker != makers.end() && maker->second == record;
      if (is_made_here && symbols.count(d.node()) && said.insert(d.node()).second) result[i] = 1;
    });
  return result;
}

Liveness liveness(const Graph& graph, const std::vector<std::uint8_t>& wanted, const Dims& given) {
  Liveness live{std::vector<std::uint8_t>(graph.types.size(), 0),
                std::vector<std::uint8_t>(graph.records.size(), 0),
                {}};
  const DimMakers makers = dim_makers(graph, given);
  for (std::size_t i = 0; i < graph.outputs.size(); ++i)
    if (wanted[i]) live.values[graph.outputs[i]] = 1;
  for (std::size_t r = graph.records.size(); r-- > 0;) {
    const OpRecord& record = graph.records[r];
    const std::vector<std::uint8_t> is_used =
        used_outputs(graph, r, live.values, live.symbols, makers);
    if (!has_effects(record) && std::none_of(is_used.begin(), is_used.end(), std::identity()))
      continue;
    live.records[r] = 1;
    const auto in = graph.inputs_of(record);
    if (record.op == &loop_op) {  // only the operands that the used outputs depend on
      const auto& attrs = get<LoopAttrs>(record.attrs.get());
      const LoopLiveness needed = loop_liveness(attrs, is_used, graph.types_of(in));
      for (const std::size_t i : live_inputs(attrs, needed)) live.values[in[i]] = 1;
      live.symbols.insert(needed.symbols.begin(), needed.symbols.end());
    } else {
      for (const ValueId v : in) live.values[v] = 1;
    }
    if (record.attrs)
      record.attrs->each_symbol([&](const Dim& d) { live.symbols.emplace(d.node(), d); });
  }
  return live;
}

namespace {

/// Returns true if the type binds a plain size that a live record mentions.
bool says_live_size(const Liveness& live, const TensorType& type) {
  bool result = false;
  for_each_bound(type, [&](const Dim& d) {
    result = result || (!d.is_named() && live.symbols.count(d.node()));
  });
  return result;
}

/// Adds the symbols around a loop for which symbols of its body or condition stand. The input that
/// bound a symbol inside may be dropped.
void add_outside(const Symbols& inside, DimEnv env, Symbols& outside) {
  for (const auto& [node, dim] : inside)
    if (env.knows(dim))
      for_each_symbol(env.resolve(dim), [&](const Dim& d) { outside.emplace(d.node(), d); });
}

/// Marks unread list elements as live if they alone bind a dim that the body mentions. Another loop
/// made such a dim in each iteration.
void keep_dims(Liveness& live, const LoopAttrs& attrs, const std::vector<TensorType>& types) {
  const Graph& body = *attrs.body.graph;
  const auto bind = [&](ValueId v) {
    for_each_bound(body.types[v], [&](const Dim& d) { live.symbols.erase(d.node()); });
  };
  for (std::size_t i = 0; i < body.inputs.size(); ++i) {
    const int slice = static_cast<int>(i) - 1 - attrs.carries;
    const bool is_element =
        slice >= 0 && slice < attrs.slices && types[attrs.first_slice() + slice].is_list();
    // Dims known outside need no input that binds them.
    if (live.values[body.inputs[i]] || !is_element) bind(body.inputs[i]);
  }
  for (const auto& [symbol, outside] : attrs.body.bindings) live.symbols.erase(symbol.node());
  for (int i = 0; i < attrs.slices; ++i) {
    const ValueId v = body.inputs[1 + attrs.carries + i];
    for_each_bound(body.types[v], [&](const Dim& d) {
      if (live.symbols.count(d.node())) live.values[v] = 1;
    });
    if (live.values[v]) bind(v);
  }
}

/// Marks one more carry as live if it alone binds a dim that iterations change and the body
/// mentions. Returns true if it did.
bool keeps_changing_dim(const LoopAttrs& attrs, const Liveness& live,
                        std::vector<std::uint8_t>& carry) {
  const Graph& body = *attrs.body.graph;
  for (const Dim& dim : changing_dims(attrs)) {
    int first = -1;
    bool is_kept = !live.symbols.count(dim.node());
    for (int i = 0; i < attrs.carries && !is_kept; ++i)
      for_each_bound(body.types[body.inputs[1 + i]], [&](const Dim& bound) {
        if (bound.node() != dim.node()) return;
        is_kept = is_kept || carry[i];
        if (first < 0) first = i;
      });
    if (is_kept || first < 0) continue;
    carry[first] = 1;
    return true;
  }
  return false;
}

}  // namespace

bool bound_says_all(const LoopAttrs& attrs, std::span<const TensorType> inputs) {
  if (!attrs.has_bound || attrs.is_full) return attrs.has_bound;
  for (std::size_t i = attrs.first_slice(); i < attrs.first_capture(); ++i)
    if (const Dim dim = leading_dim(inputs[i]); !dim.is_named() && !dim.has_size()) return false;
  return true;
}

LoopLiveness loop_liveness(const LoopAttrs& attrs, const std::vector<std::uint8_t>& is_used,
                           const std::vector<TensorType>& input_types) {
  const Graph& body = *attrs.body.graph;
  LoopLiveness result;
  std::vector<std::uint8_t>& carry = result.carry;
  carry.assign(is_used.begin(), is_used.begin() + attrs.carries);
  if (attrs.cond) {
    const Graph& cond = *attrs.cond.graph;
    const Liveness asked = liveness(cond, {1});
    result.cond_values = asked.values;
    for (int i = 0; i < attrs.carries; ++i) {
      const ValueId v = cond.inputs[1 + i];
      carry[i] = carry[i] || asked.values[v] || says_live_size(asked, cond.types[v]);
    }
    while (keeps_changing_dim(attrs, asked, carry)) {
    }
    add_outside(asked.symbols, cond_env(attrs, input_types), result.symbols);
  }
  Liveness& live = result.body;
  for (bool changed = true; changed;) {
    changed = false;
    std::vector<std::uint8_t> wanted(carry);
    for (int i = 0; i < attrs.stacks + attrs.sums; ++i)
      wanted.push_back(is_used[attrs.carries + i]);
    live = liveness(body, wanted);
    for (int i = 0; i < attrs.carries; ++i) {
      const ValueId v = body.inputs[1 + i];
      if (!carry[i] && (live.values[v] || says_live_size(live, body.types[v])))
        carry[i] = changed = true;
    }
    if (!changed) changed = keeps_changing_dim(attrs, live, carry);
  }
  add_outside(live.symbols, body_env(attrs, input_types), result.symbols);
  keep_dims(live, attrs, input_types);
  // If slices decide the trip count, one of them stays. A list may have fewer elements, so it stays
  // only if all slices are lists.
  const bool has_dense = first_dense_slice(attrs, input_types).has_value();
  bool any_counts = bound_says_all(attrs, input_types);
  int last = -1;  // slices that could decide the trip count
  for (int i = 0; i < attrs.slices; ++i) {
    const bool is_live = live.values[body.inputs[1 + attrs.carries + i]];
    result.slice.push_back(is_live);
    if (has_dense && input_types[attrs.first_slice() + i].is_list()) continue;
    any_counts = any_counts || is_live;
    last = i;
  }
  if (!any_counts && last >= 0) result.slice[last] = 1;
  return result;
}

std::vector<std::size_t> live_inputs(const LoopAttrs& attrs, const LoopLiveness& live) {
  std::vector<std::size_t> result;
  for (std::size_t i = 0; i < attrs.first_carry(); ++i) result.push_back(i);
  for (int i = 0; i < attrs.carries; ++i)
    if (live.carry[i]) result.push_back(attrs.first_carry() + i);
  for (int i = 0; i < attrs.slices; ++i)
    if (live.slice[i]) result.push_back(attrs.first_slice() + i);
  const auto captures = [&](const Graph& graph, const std::vector<std::uint8_t>& values,
                            const std::vector<int>& places) {
    for (std::size_t i = 0; i < places.size(); ++i)
      if (values[graph.inputs[graph.formal_count + i]])
        result.push_back(attrs.first_capture() + places[i]);
  };
  captures(*attrs.body.graph, live.body.values, attrs.body_captures);
  if (attrs.cond) captures(*attrs.cond.graph, live.cond_values, attrs.cond_captures);
  return result;
}

}  // namespace reel
