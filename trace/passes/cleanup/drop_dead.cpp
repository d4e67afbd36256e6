#include "reel/trace/passes/cleanup/drop_dead.h"

#include <unordered_map>
#include <unordered_set>

#include "reel/core/ops/control/loop.h"
#include "reel/trace/passes/analysis/liveness.h"

namespace reel {
namespace {

/// A loop without its dead leaves, and the former places of its remaining inputs and outputs.
struct Pruned {
  LoopAttrs attrs;
  std::vector<std::size_t> inputs, outputs;
};

/// Returns the dims that inputs of a body or condition bind, or graphs around it. They stay known
/// inside even if those inputs are dropped.
Dims dims_given(const Graph& graph) {
  Dims dims = graph.schedule().free_symbols;
  for (const ValueId v : graph.inputs)
    for_each_bound(graph.types[v], [&](const Dim& d) { dims.push_back(d); });
  return dims;
}

/// drop_dead with dims `given` that are known from outside, even if no input binds them.
Ref<Graph> without_dead(const Graph& graph, std::vector<int>* kept_captures, const Dims& given);

Pruned prune(const LoopAttrs& attrs, const std::vector<std::uint8_t>& is_used,
             const std::vector<TensorType>& input_types) {
  const Graph& body = *attrs.body.graph;
  const LoopLiveness needed = loop_liveness(attrs, is_used, input_types);
  const std::vector<std::uint8_t>&carry = needed.carry, &cond_live = needed.cond_values;
  const Liveness& live = needed.body;

  Pruned result{attrs, {}, {}};
  LoopAttrs& next = result.attrs;
  Ref<Graph> graph(new Graph(body));
  // Leave out dead records. If the input that binds a dim is gone, a dead record with the dim in
  // its outputs would pass for its maker.
  OpRecords kept;
  for (std::size_t r = 0; r < body.records.size(); ++r)
    if (live.records[r])
      kept.append(body.records[r], body.records[r].attrs, body.inputs_of(body.records[r]),
                  body.outputs_of(body.records[r]));
  static_cast<OpRecords&>(*graph) = std::move(kept);
  graph->inputs = {body.inputs[0]};
  graph->outputs.clear();
  next.fills.clear();
  next.adds_finished_to_running.clear();
  next.last_dims.clear();
  const auto keep_output = [&](int i) {
    graph->outputs.push_back(body.outputs[i]);
    next.adds_finished_to_running.push_back(attrs.output_adds_finished(i));
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
    if (!needed.slice[i]) continue;
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

  // Captures that either graph still reads, renumbered.
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
  next.body = make_sub_graph(without_dead(*graph, nullptr, dims_given(body)), names);
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
    DimEnv env = cond_env(attrs, input_types);
    next.cond = make_sub_graph(without_dead(*asks, nullptr, dims_given(cond)), env);
  }
  return result;
}

}  // namespace

namespace {

/// Marks captures as live that no record reads, if they alone bind a symbol that live records
/// mention.
void keep_binding_captures(const Graph& graph, const Symbols& mentioned,
                           std::vector<std::uint8_t>& live) {
  std::unordered_set<const DimNode*> bound;
  const auto bind = [&](ValueId v) {
    for_each_bound(graph.types[v], [&](const Dim& symbol) { bound.insert(symbol.node()); });
  };
  const std::span inputs(graph.inputs);
  for (const ValueId v : inputs.first(graph.formal_count)) bind(v);
  const auto captures = inputs.subspan(graph.formal_count);
  for (const ValueId v : captures)
    if (live[v]) bind(v);
  for (const ValueId v : captures) {
    if (live[v]) continue;
    for_each_bound(graph.types[v], [&](const Dim& symbol) {
      if (mentioned.count(symbol.node()) && !bound.count(symbol.node())) live[v] = 1;
    });
    if (live[v]) bind(v);
  }
}

Ref<Graph> without_dead(const Graph& graph, std::vector<int>* kept_captures, const Dims& given) {
  // Prune loops from the end: a value that a later loop does not read need not be made by an
  // earlier one.
  std::vector<std::uint8_t> live(graph.types.size(), 0);
  for (const ValueId v : graph.outputs) live[v] = 1;
  const DimMakers makers = dim_makers(graph, given);
  const Liveness whole = liveness(graph, std::vector<std::uint8_t>(graph.outputs.size(), 1), given);
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
    const std::vector<std::uint8_t> is_used = used_outputs(graph, r, live, whole.symbols, makers);
    Pruned pruned = prune(get<LoopAttrs>(record.attrs.get()), is_used, graph.types_of(in));
    for (const std::size_t i : pruned.inputs) live[in[i]] = 1;
    loops.emplace(r, std::move(pruned));
  }

  keep_binding_captures(graph, whole.symbols, live);

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
      result->append(record, record.attrs, in, out);
      continue;
    }
    std::vector<ValueId> inputs, outputs;
    for (const std::size_t i : loop->second.inputs) inputs.push_back(in[i]);
    for (const std::size_t i : loop->second.outputs) outputs.push_back(out[i]);
    result->append(record, make_attrs(std::move(loop->second.attrs)), inputs, outputs);
  }
  result->seal();
  return result;
}

}  // namespace

Ref<Graph> drop_dead(const Graph& graph, std::vector<int>* kept_captures) {
  return without_dead(graph, kept_captures, {});
}

}  // namespace reel
