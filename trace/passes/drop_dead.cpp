#include "reel/trace/passes/drop_dead.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "reel/core/ops/loop.h"

namespace reel {
namespace {

/// Liveness of values and records, given which outputs are wanted.
struct Liveness {
  std::vector<std::uint8_t> values, records;
  std::unordered_set<const DimNode*> symbols;  ///< that live records mention
  std::vector<ValueId> brought;                ///< values that live on as they bring such a symbol
};

Liveness liveness(const Graph& graph, const std::vector<std::uint8_t>& wanted) {
  Liveness live{std::vector<std::uint8_t>(graph.types.size(), 0),
                std::vector<std::uint8_t>(graph.records.size(), 0),
                {},
                {}};
  // A symbol is brought by the first value whose type has it.
  std::unordered_map<const DimNode*, ValueId> binder;
  std::unordered_set<const DimNode*> from_inputs;
  for (const ValueId v : graph.inputs)
    for_each_bound(graph.types[v], [&](const Dim& d) { from_inputs.insert(d.node()); });
  for (std::size_t r = 0; r < graph.records.size(); ++r)
    for (const ValueId v : graph.outputs_of(graph.records[r]))
      for_each_bound(graph.types[v], [&](const Dim& d) {
        if (!from_inputs.count(d.node())) binder.emplace(d.node(), v);
      });
  for (std::size_t i = 0; i < graph.outputs.size(); ++i)
    if (wanted[i]) live.values[graph.outputs[i]] = 1;
  std::unordered_map<ValueId, std::vector<const DimNode*>> binds;
  for (const auto& [symbol, v] : binder) binds[v].push_back(symbol);
  for (std::size_t r = graph.records.size(); r-- > 0;) {
    const OpRecord& record = graph.records[r];
    const auto out = graph.outputs_of(record);
    for (const ValueId v : out) {
      const auto symbols = binds.find(v);
      if (symbols == binds.end() ||
          std::none_of(symbols->second.begin(), symbols->second.end(),
                       [&](const DimNode* d) { return live.symbols.count(d); }))
        continue;
      live.values[v] = 1;
      live.brought.push_back(v);
    }
    const bool is_live = has_effects(record) || std::any_of(out.begin(), out.end(), [&](ValueId v) {
                           return live.values[v];
                         });
    if (!is_live) continue;
    live.records[r] = 1;
    for (const ValueId v : graph.inputs_of(record)) live.values[v] = 1;
    if (record.attrs)
      record.attrs->each_symbol([&](const Dim& d) { live.symbols.insert(d.node()); });
  }
  return live;
}

/// Elements of lists that nobody reads live too where they alone say what a dim is that the body
/// mentions: one that was born in each iteration of another loop.
void keep_dims(Liveness& live, const LoopAttrs& attrs, const std::vector<TensorType>& types) {
  const Graph& body = *attrs.body.graph;
  const auto bind = [&](ValueId v) {
    for_each_bound(body.types[v], [&](const Dim& d) { live.symbols.erase(d.node()); });
  };
  for (std::size_t i = 0; i < body.inputs.size(); ++i) {
    const int slice = static_cast<int>(i) - 1 - attrs.carries;
    const bool is_element =
        slice >= 0 && slice < attrs.slices && types[attrs.first_slice() + slice].is_list();
    // What is known outside goes without saying.
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

/// Keeps one more carry if that alone says what a dim is that iterations change and the body
/// mentions.
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

/// A loop without the parts that nobody needs, and where its remaining inputs and outputs were
/// before.
struct Pruned {
  LoopAttrs attrs;
  std::vector<std::size_t> inputs, outputs;
};

Pruned prune(const LoopAttrs& attrs, const std::vector<std::uint8_t>& is_used,
             const std::vector<TensorType>& input_types) {
  const Graph& body = *attrs.body.graph;
  std::vector<std::uint8_t> carry(attrs.carries);
  for (int i = 0; i < attrs.carries; ++i) carry[i] = is_used[i];
  std::vector<std::uint8_t> cond_live;
  if (attrs.cond) {
    cond_live = liveness(*attrs.cond.graph, {1}).values;
    for (int i = 0; i < attrs.carries; ++i)
      carry[i] = carry[i] || cond_live[attrs.cond.graph->inputs[1 + i]];
  }
  Liveness live;
  for (bool changed = true; changed;) {
    changed = false;
    std::vector<std::uint8_t> wanted(carry);
    for (int i = 0; i < attrs.stacks + attrs.sums; ++i)
      wanted.push_back(is_used[attrs.carries + i]);
    live = liveness(body, wanted);
    for (int i = 0; i < attrs.carries; ++i)
      if (!carry[i] && live.values[body.inputs[1 + i]]) carry[i] = changed = true;
    if (!changed) changed = keeps_changing_dim(attrs, live, carry);
  }

  keep_dims(live, attrs, input_types);

  Pruned result{attrs, {}, {}};
  LoopAttrs& next = result.attrs;
  Ref<Graph> graph(new Graph(body));
  graph->inputs = {body.inputs[0]};
  graph->outputs.clear();
  next.fills.clear();
  next.collects.clear();
  next.last_dims.clear();
  const auto keep_output = [&](int i) {
    graph->outputs.push_back(body.outputs[i]);
    next.collects.push_back(attrs.collects_output(i));
  };
  next.stack_kinds.clear();
  next.stack_dims.clear();
  for (std::size_t i = 0; i < attrs.first_carry(); ++i) result.inputs.push_back(i);
  next.carries = next.slices = next.stacks = next.sums = 0;
  std::vector<ValueId> cond_inputs;
  if (attrs.cond) cond_inputs.push_back(attrs.cond.graph->inputs[0]);
  for (int i = 0; i < attrs.carries; ++i) {
    if (!carry[i]) continue;
    ++next.carries;
    graph->inputs.push_back(body.inputs[1 + i]);
    keep_output(i);
    if (attrs.cond) cond_inputs.push_back(attrs.cond.graph->inputs[1 + i]);
    next.fills.push_back(attrs.fills[i]);
    if (!attrs.last_dims.empty()) next.last_dims.push_back(attrs.last_dims[i]);
    result.inputs.push_back(attrs.first_carry() + i);
    result.outputs.push_back(i);
  }
  for (int i = 0; i < attrs.slices; ++i) {
    const bool counts_iterations = !attrs.has_bound && i == attrs.slices - 1 && next.slices == 0;
    if (!live.values[body.inputs[1 + attrs.carries + i]] && !counts_iterations) continue;
    ++next.slices;
    graph->inputs.push_back(body.inputs[1 + attrs.carries + i]);
    next.fills.push_back(attrs.fills[attrs.carries + i]);
    result.inputs.push_back(attrs.first_slice() + i);
  }
  for (int i = 0; i < attrs.stacks; ++i) {
    if (!is_used[attrs.carries + i]) continue;
    ++next.stacks;
    keep_output(attrs.carries + i);
    next.stack_kinds.push_back(attrs.stack_kinds[i]);
    if (!attrs.makes_dim) next.stack_dims.push_back(attrs.stack_dims[i]);
    result.outputs.push_back(attrs.first_stack() + i);
  }
  for (int i = 0; i < attrs.sums; ++i) {
    if (!is_used[attrs.first_sum() + i]) continue;
    ++next.sums;
    keep_output(attrs.carries + attrs.stacks + i);
    result.outputs.push_back(attrs.first_sum() + i);
  }
  for (std::size_t i = attrs.trips_output(); i < is_used.size(); ++i) result.outputs.push_back(i);
  graph->formal_count = graph->inputs.size();

  // Captures: those that either graph still reads, numbered anew.
  const std::size_t capture_count = input_types.size() - attrs.first_capture();
  std::vector<int> place(capture_count, -1);
  const auto keep = [&](int capture) {
    if (place[capture] < 0) {
      place[capture] =
          static_cast<int>(result.inputs.size() - attrs.first_carry()) - next.carries - next.slices;
      next.fills.push_back(attrs.fills[attrs.carries + attrs.slices + capture]);
      result.inputs.push_back(attrs.first_capture() + capture);
    }
    return place[capture];
  };
  next.body_captures.clear();
  next.cond_captures.clear();
  for (std::size_t i = 0; i < attrs.body_captures.size(); ++i) {
    const ValueId v = body.inputs[body.formal_count + i];
    if (!live.values[v]) continue;
    graph->inputs.push_back(v);
    next.body_captures.push_back(keep(attrs.body_captures[i]));
  }
  DimEnv names = body_env(attrs, input_types);
  graph->seal();
  next.body = make_sub_graph(drop_dead(*graph), names);
  if (attrs.cond) {
    const Graph& cond = *attrs.cond.graph;
    Ref<Graph> asks(new Graph(cond));
    asks->inputs = cond_inputs;
    asks->formal_count = cond_inputs.size();
    for (std::size_t i = 0; i < attrs.cond_captures.size(); ++i) {
      const ValueId v = cond.inputs[cond.formal_count + i];
      if (!cond_live[v]) continue;
      asks->inputs.push_back(v);
      next.cond_captures.push_back(keep(attrs.cond_captures[i]));
    }
    asks->seal();
    DimEnv env = attrs.cond.env();
    next.cond = make_sub_graph(drop_dead(*asks), env);
  }
  return result;
}

}  // namespace

Ref<Graph> drop_dead(const Graph& graph, std::vector<int>* kept_captures) {
  // Loops are pruned from the end backwards, since what a later loop does not read an earlier one
  // need not make.
  std::vector<std::uint8_t> live(graph.types.size(), 0);
  for (const ValueId v : graph.outputs) live[v] = 1;
  const Liveness whole = liveness(graph, std::vector<std::uint8_t>(graph.outputs.size(), 1));
  for (const ValueId v : whole.brought) live[v] = 1;
  std::unordered_map<std::size_t, Pruned> loops;
  std::vector<std::uint8_t> keeps(graph.records.size(), 0);
  for (std::size_t r = graph.records.size(); r-- > 0;) {
    const OpRecord& record = graph.records[r];
    if (!whole.records[r]) continue;
    const auto in = graph.inputs_of(record), out = graph.outputs_of(record);
    if (record.op != &loop_op) {
      keeps[r] = 1;
      for (const ValueId v : in) live[v] = 1;
      continue;
    }
    keeps[r] = 1;
    std::vector<std::uint8_t> is_used;
    std::vector<TensorType> types;
    std::unordered_set<const DimNode*> brought;
    for (const ValueId v : out) {
      is_used.push_back(live[v]);
      if (live[v]) for_each_bound(graph.types[v], [&](const Dim& d) { brought.insert(d.node()); });
    }
    // An output that alone says what a dim is that somebody mentions is used too.
    for (std::size_t i = 0; i < out.size(); ++i)
      for_each_bound(graph.types[out[i]], [&](const Dim& d) {
        if (whole.symbols.count(d.node()) && brought.insert(d.node()).second) is_used[i] = 1;
      });
    for (const ValueId v : in) types.push_back(graph.types[v]);
    Pruned pruned = prune(get<LoopAttrs>(record.attrs.get()), is_used, types);
    for (const std::size_t i : pruned.inputs) live[in[i]] = 1;
    loops.emplace(r, std::move(pruned));
  }

  Ref<Graph> result(new Graph);
  result->name = graph.name;
  result->types = graph.types;
  result->formal_count = graph.formal_count;
  for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
    if (i >= graph.formal_count && kept_captures) {
      if (!live[graph.inputs[i]]) continue;
      kept_captures->push_back(static_cast<int>(i - graph.formal_count));
    }
    result->inputs.push_back(graph.inputs[i]);
  }
  result->outputs = graph.outputs;
  for (std::size_t r = 0; r < graph.records.size(); ++r) {
    if (!keeps[r]) continue;
    const OpRecord& record = graph.records[r];
    const auto in = graph.inputs_of(record), out = graph.outputs_of(record);
    const auto loop = loops.find(r);
    if (loop == loops.end()) {
      result->append(*record.op, record.attrs, in, out);
      continue;
    }
    std::vector<ValueId> inputs, outputs;
    for (const std::size_t i : loop->second.inputs) inputs.push_back(in[i]);
    for (const std::size_t i : loop->second.outputs) outputs.push_back(out[i]);
    result->append(*record.op, make_attrs(std::move(loop->second.attrs)), inputs, outputs);
  }
  result->seal();
  return result;
}

}  // namespace reel
