#include "reel/trace/passes/loop_structure/join_loops.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "reel/core/base/str.h"
#include "reel/core/ops/control/loop.h"
#include "reel/trace/passes/support/remarks.h"
#include "reel/trace/passes/support/sub_graphs.h"

namespace reel {
namespace {

const LoopAttrs& loop_of(const OpRecord& record) { return get<LoopAttrs>(record.attrs.get()); }

/// Two loops of a graph, by record, and for each slice of the second the stack of the first that it
/// reads (-1: none).
struct Pair {
  std::size_t first, second;
  std::vector<int> stack_of;
  std::vector<std::uint8_t> waits;  ///< by record between them: it depends on the first loop
};

/// Returns, by slice of the second loop, the stack of the first that it reads. Returns an empty
/// vector if it reads none, or reads one with another element type.
std::vector<int> stacks_read(const Graph& graph, const OpRecord& first, const OpRecord& second) {
  const LoopAttrs &a = loop_of(first), &b = loop_of(second);
  const auto in = graph.inputs_of(second), out = graph.outputs_of(first);
  std::vector<int> result(b.slices, -1);
  bool any = false;
  for (int i = 0; i < b.slices; ++i)
    for (int k = 0; k < a.stacks; ++k) {
      if (in[b.first_slice() + i] != out[a.first_stack() + k]) continue;
      const TensorType& term = a.body.graph->types[a.body.graph->outputs[a.carries + k]];
      if (term != b.body.graph->types[b.body.graph->inputs[1 + b.carries + i]]) return {};
      result[i] = k;
      any = true;
    }
  return any ? result : std::vector<int>{};
}

/// The records that must move behind a loop that moves down: they read its outputs, or mention a
/// dim that those bind.
class Late {
 public:
  Late(const Graph& graph, std::size_t loop) : graph_(graph), values_(graph.types.size(), 0) {
    for (const ValueId v : graph.inputs) learn(v);
    for (std::size_t r = 0; r < loop; ++r)
      for (const ValueId v : graph.outputs_of(graph.records[r])) learn(v);
    add(graph.records[loop]);
  }
  bool has(ValueId v) const { return values_[v]; }
  bool mentions(const OpRecord& record) const {
    bool result = false;
    if (record.attrs)
      record.attrs->each_symbol(
          [&](const Dim& dim) { result = result || symbols_.count(dim.node()); });
    return result;
  }
  /// Returns true if the record depends on the loop. Requires calls in the order of records.
  bool visit(const OpRecord& record) {
    const auto in = graph_.inputs_of(record);
    const bool waits = mentions(record) ||
                       std::any_of(in.begin(), in.end(), [&](ValueId v) { return values_[v]; });
    if (waits)
      add(record);
    else
      for (const ValueId v : graph_.outputs_of(record)) learn(v);
    return waits;
  }

 private:
  void learn(ValueId v) {
    for_each_bound(graph_.types[v], [&](const Dim& dim) { known_.insert(dim.node()); });
  }
  void add(const OpRecord& record) {
    for (const ValueId v : graph_.outputs_of(record)) {
      values_[v] = 1;
      for_each_bound(graph_.types[v], [&](const Dim& dim) {
        if (!known_.count(dim.node())) symbols_.insert(dim.node());
      });
    }
  }

  const Graph& graph_;
  std::vector<std::uint8_t> values_;
  std::unordered_set<const DimNode*> known_, symbols_;
};

bool can_join(const Graph& graph, Pair& pair) {
  const OpRecord &first = graph.records[pair.first], &second = graph.records[pair.second];
  const LoopAttrs &a = loop_of(first), &b = loop_of(second);
  if (a.keeps_few_steps() || b.keeps_few_steps() || b.recomputes())
    return false;                               // they run under policies of their own
  if (!b.name.ends_with(a.name)) return false;  // an error must name the loop it is in
  if (b.cond || !b.has_bound || !a.entry_dims.empty() || !b.entry_dims.empty() || a.makes_dim ||
      a.is_reverse != b.is_reverse || has_effects(second))
    return false;
  const auto in = graph.inputs_of(second);
  if (in[0] != graph.outputs_of(first)[a.trips_output()]) return false;
  pair.stack_of = stacks_read(graph, first, second);
  if (pair.stack_of.empty()) return false;
  // Without a bound, the number of elements of a list would become the trip count.
  for (int i = 0; i < b.slices; ++i)
    if (pair.stack_of[i] < 0 && !a.has_bound && graph.types[in[b.first_slice() + i]].is_list())
      return false;
  Late late(graph, pair.first);
  for (std::size_t r = pair.first + 1; r < pair.second; ++r) {
    const OpRecord& record = graph.records[r];
    pair.waits.push_back(late.visit(record));
    if (has_effects(record) && (pair.waits.back() || has_effects(first))) return false;
  }
  if (late.mentions(second)) return false;
  for (std::size_t i = 1; i < in.size(); ++i) {
    const int slice = static_cast<int>(i) - static_cast<int>(b.first_slice());
    const bool is_read = slice >= 0 && slice < b.slices && pair.stack_of[slice] >= 0;
    if (!is_read && late.has(in[i])) return false;
  }
  return true;
}

std::optional<Pair> find_pair(const Graph& graph) {
  std::unordered_map<ValueId, std::size_t> counted_by;  // by trip count
  for (std::size_t b = 0; b < graph.records.size(); ++b) {
    const OpRecord& record = graph.records[b];
    if (record.op != &loop_op) continue;
    const auto in = graph.inputs_of(record);
    // The second loop's bound is the trip count of the first one.
    if (const auto first = in.empty() ? counted_by.end() : counted_by.find(in[0]);
        first != counted_by.end()) {
      Pair pair{first->second, b, {}, {}};
      if (can_join(graph, pair)) return pair;
    }
    counted_by.emplace(graph.outputs_of(record)[loop_of(record).trips_output()], b);
  }
  return {};
}

template <class T>
void append(std::vector<T>& to, const std::vector<T>& from, std::size_t begin, std::size_t count) {
  to.insert(to.end(), from.begin() + begin, from.begin() + begin + count);
}

/// Returns cond with additional carries, which it does not read.
SubGraph with_more_carries(const SubGraph& cond, int carries, const std::vector<TensorType>& more) {
  Ref<Graph> graph(new Graph(*cond.graph));
  std::vector<ValueId> added;
  for (const TensorType& type : more) added.push_back(graph->add_value(type));
  graph->inputs.insert(graph->inputs.begin() + 1 + carries, added.begin(), added.end());
  graph->formal_count += added.size();
  graph->seal();
  DimEnv names = cond.env();
  return make_sub_graph(graph, names);
}

/// Appends the record that runs both loops in one.
void append_joined(Graph& to, const Graph& graph, const Pair& pair) {
  const OpRecord &first = graph.records[pair.first], &second = graph.records[pair.second];
  const LoopAttrs &a = loop_of(first), &b = loop_of(second);
  const Graph &left = *a.body.graph, &right = *b.body.graph;
  const auto to_vector = [](std::span<const ValueId> values) {
    return std::vector<ValueId>(values.begin(), values.end());
  };
  const std::vector<ValueId> in_a = to_vector(graph.inputs_of(first)),
                             in_b = to_vector(graph.inputs_of(second)),
                             out_a = to_vector(graph.outputs_of(first)),
                             out_b = to_vector(graph.outputs_of(second));

  Ref<Graph> body(new Graph(left));
  std::vector<ValueId> place(right.types.size(), ~0u);
  place[right.inputs[0]] = left.inputs[0];
  for (int i = 0; i < b.slices; ++i)
    if (pair.stack_of[i] >= 0)
      place[right.inputs[1 + b.carries + i]] = left.outputs[a.carries + pair.stack_of[i]];
  for (int i = 0; i < b.slices; ++i)  // slices of the same tensor are equal
    for (int k = 0; k < a.slices; ++k) {
      const ValueId theirs = right.inputs[1 + b.carries + i], ours = left.inputs[1 + a.carries + k];
      if (in_b[b.first_slice() + i] == in_a[a.first_slice() + k] &&
          right.types[theirs] == left.types[ours])
        place[theirs] = ours;
    }
  std::vector<std::uint8_t> is_new(right.types.size(), 0);
  for (const ValueId v : right.inputs)
    if (place[v] == ~0u) {
      place[v] = body->add_value(right.types[v]);
      is_new[v] = 1;
    }

  LoopAttrs next = a;
  next.origin = {};
  if (a.chunk_cost_types.empty() || b.chunk_cost_types.empty())
    next.chunk_cost_types.clear();  // the body shows it
  else
    append(next.chunk_cost_types, b.chunk_cost_types, 0, b.chunk_cost_types.size());
  LoopRemarks remarks(a.remarks);
  remarks.say(LoopRemark::Kind::joined, str(b.name, ", which reads what it stacks"));
  next.remarks = remarks.finish();
  next.carries += b.carries;
  next.stacks += b.stacks;
  next.sums += b.sums;
  std::vector<ValueId> inputs, outputs;
  // Inputs of the op and of the body, and fills, in the same order.
  append(inputs, in_a, 0, a.first_slice());
  append(inputs, in_b, b.first_carry(), b.carries);
  append(inputs, in_a, a.first_slice(), a.slices);
  body->inputs.clear();
  append(body->inputs, left.inputs, 0, 1 + a.carries);
  next.fills.assign(a.fills.begin(), a.fills.begin() + a.carries);
  append(next.fills, b.fills, 0, b.carries);
  append(next.fills, a.fills, a.carries, a.slices);
  std::vector<TensorType> more;
  for (int i = 0; i < b.carries; ++i) {
    body->inputs.push_back(place[right.inputs[1 + i]]);
    more.push_back(right.types[right.inputs[1 + i]]);
  }
  append(body->inputs, left.inputs, 1 + a.carries, a.slices);
  for (int i = 0; i < b.slices; ++i) {
    if (!is_new[right.inputs[1 + b.carries + i]]) continue;
    ++next.slices;
    inputs.push_back(in_b[b.first_slice() + i]);
    body->inputs.push_back(place[right.inputs[1 + b.carries + i]]);
    next.fills.push_back(b.fills[b.carries + i]);
  }
  body->formal_count = body->inputs.size();
  append(body->inputs, left.inputs, left.formal_count, left.capture_count());
  for (std::size_t i = right.formal_count; i < right.inputs.size(); ++i)
    body->inputs.push_back(place[right.inputs[i]]);
  const std::size_t captures_a = in_a.size() - a.first_capture();
  append(inputs, in_a, a.first_capture(), captures_a);
  append(inputs, in_b, b.first_capture(), in_b.size() - b.first_capture());
  append(next.fills, a.fills, a.carries + a.slices, captures_a);
  append(next.fills, b.fills, b.carries + b.slices, in_b.size() - b.first_capture());
  for (const int capture : b.body_captures)
    next.body_captures.push_back(capture + static_cast<int>(captures_a));

  for (const OpRecord& record : right.records) {
    std::vector<ValueId> in, out;
    for (const ValueId v : right.inputs_of(record)) in.push_back(place[v]);
    for (const ValueId v : right.outputs_of(record))
      out.push_back(place[v] = body->add_value(right.types[v]));
    body->append(record, record.attrs, in, out);
  }
  // Outputs: carries, stacks and sums of both.
  body->outputs.clear();
  std::size_t from_a = 0, from_b = 0;
  for (const auto& [count_a, count_b] :
       {std::pair{a.carries, b.carries}, {a.stacks, b.stacks}, {a.sums, b.sums}}) {
    append(outputs, out_a, from_a, count_a);
    append(outputs, out_b, from_b, count_b);
    append(body->outputs, left.outputs, from_a, count_a);
    for (int i = 0; i < count_b; ++i) body->outputs.push_back(place[right.outputs[from_b + i]]);
    from_a += count_a;
    from_b += count_b;
  }
  append(outputs, out_a, from_a, out_a.size() - from_a);
  next.adds_finished_to_running.assign(body->outputs.size(), 0);
  next.stack_kinds.insert(next.stack_kinds.end(), b.stack_kinds.begin(), b.stack_kinds.end());
  next.stack_dims.insert(next.stack_dims.end(), b.stack_dims.begin(), b.stack_dims.end());
  body->seal();
  DimEnv names = a.body.env();
  for (const auto& [symbol, actual] : b.body.bindings)
    if (!names.knows(symbol)) names.bind(symbol, actual);
  next.body = make_sub_graph(body, names);
  if (a.cond) next.cond = with_more_carries(a.cond, a.carries, more);
  to.append(loop_op, make_attrs(std::move(next)), inputs, outputs);
}

}  // namespace

Ref<Graph> join_loops(const Graph& graph) {
  const std::optional<Pair> pair = find_pair(graph);
  Ref<Graph> result(new Graph(graph));
  result->records.clear();
  result->operands.clear();
  const auto take = [&](std::size_t r) {
    const OpRecord& record = graph.records[r];
    result->append(record, with_sub_graphs(record, join_loops), graph.inputs_of(record),
                   graph.outputs_of(record));
  };
  const auto waits = [&](std::size_t r) {
    return pair && r > pair->first && r < pair->second && pair->waits[r - pair->first - 1];
  };
  for (std::size_t r = 0; r < graph.records.size(); ++r) {
    if (pair && r == pair->second) {
      const InheritProvenance scope(graph.records[pair->first]);
      append_joined(*result, graph, *pair);
      for (std::size_t late = pair->first + 1; late < pair->second; ++late)
        if (waits(late)) take(late);
    } else if (!waits(r) && !(pair && r == pair->first)) {
      take(r);
    }
  }
  if (pair) {
    // Both trip counts are equal.
    const OpRecord &first = graph.records[pair->first], &second = graph.records[pair->second];
    const ValueId count = graph.outputs_of(first)[loop_of(first).trips_output()],
                  same = graph.outputs_of(second)[loop_of(second).trips_output()];
    std::replace(result->outputs.begin(), result->outputs.end(), same, count);
    for (const OpRecord& record : result->records)
      for (ValueId& v : result->inputs_of(record))
        if (v == same) v = count;
  }
  result->seal();
  return result;
}

}  // namespace reel
