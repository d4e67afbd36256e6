#include "reel/trace/passes/cleanup/drop_dead.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "reel/core/graph/graph_rewriter.h"
#include "reel/core/ops/control/cond.h"
#include "reel/core/ops/loop/loop.h"
#include "reel/core/ops/loop/loop_builder.h"
#include "reel/trace/passes/analysis/liveness.h"
#include "reel/trace/passes/support/sub_graphs.h"

namespace reel {
namespace {

/// A loop without its dead leaves, and the remaining operands and results.
struct Pruned {
  AttrsRef attrs;
  std::vector<ValueId> inputs, outputs;
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

/// Returns a copy with the live records only. If the input that binds a dim is gone, a dead record
/// with the dim in its outputs would pass for its maker.
Ref<Graph> with_live_records(const Graph& graph, const std::vector<std::uint8_t>& is_live) {
  GraphRewriter to(graph);
  for (std::size_t r = 0; r < graph.records.size(); ++r)
    if (is_live[r]) to.keep(graph.records[r]);
  return to.finish();
}

/// Adds captures that the body or condition reads, each once.
class LiveCaptures {
 public:
  LiveCaptures(LoopBuilder<ValueId>& to, const LoopAttrs& attrs, std::span<const ValueId> operands)
      : to_(to), attrs_(attrs), operands_(operands), index_(operands.size()) {}
  /// Returns the new index of a capture.
  std::size_t keep(int capture) {
    const auto c = static_cast<std::size_t>(capture);
    if (!index_[c]) index_[c] = to_.add_capture(operands_[c], attrs_.captures[c]);
    return *index_[c];
  }

 private:
  LoopBuilder<ValueId>& to_;
  const LoopAttrs& attrs_;
  std::span<const ValueId> operands_;
  std::vector<std::optional<std::size_t>> index_;  ///< by capture, if kept
};

/// is_used: by result of the loop, a record of `around`.
Pruned prune(const Graph& around, const OpRecord& record,
             const std::vector<std::uint8_t>& is_used) {
  const auto& attrs = get<LoopAttrs>(record.attrs.get());
  const auto in = around.inputs_of(record), out = around.outputs_of(record);
  const std::vector<TensorType> types = around.types_of(in);
  const LoopLiveness needed = loop_liveness(attrs, is_used, types);
  const auto operands = operands_of(attrs, in);
  const auto results = results_of(attrs, out);
  const auto used = results_of(attrs, is_used);
  const auto formals = body_inputs(attrs);
  const auto terms = body_outputs(attrs);

  LoopBuilder<ValueId> next(attrs);
  Pruned result;
  next.set_trip_operands(operands);
  for (std::size_t i = 0; i < formals.carries.size(); ++i) {
    if (!needed.carry[i]) continue;
    next.add_carry(formals.carries[i], terms.carries[i], operands.carries[i], attrs.carries[i],
                   attrs.cond ? cond_inputs(attrs).carries[i] : 0);
    result.outputs.push_back(results.carries[i]);
  }
  for (std::size_t i = 0; i < formals.slices.size(); ++i)
    if (needed.slice[i]) next.add_slice(formals.slices[i], operands.slices[i], attrs.slices[i]);
  for (std::size_t i = 0; i < terms.stacks.size(); ++i) {
    if (!used.stacks[i]) continue;
    next.add_stack(terms.stacks[i], attrs.stacks[i]);
    result.outputs.push_back(results.stacks[i]);
  }
  for (std::size_t i = 0; i < terms.sums.size(); ++i) {
    if (!used.sums[i]) continue;
    next.add_sum(terms.sums[i], attrs.sums[i]);
    result.outputs.push_back(results.sums[i]);
  }
  result.outputs.insert(result.outputs.end(), &results.trips, out.data() + out.size());

  LiveCaptures captures(next, attrs, operands.captures);
  for (std::size_t i = 0; i < formals.captures.size(); ++i)
    if (needed.body.values[formals.captures[i]])
      next.read_in_body(captures.keep(attrs.body_captures[i]), formals.captures[i]);
  const Ref<Graph> body = with_live_records(*attrs.body.graph, needed.body.records);
  next.connect_body(*body, formals.position);
  body->seal();
  DimEnv names = body_env(attrs, types);
  next.attrs().body =
      make_sub_graph(without_dead(*body, nullptr, dims_given(*attrs.body.graph)), names);
  if (attrs.cond) {
    const auto asked = cond_inputs(attrs);
    for (std::size_t i = 0; i < asked.captures.size(); ++i)
      if (needed.cond_values[asked.captures[i]])
        next.read_in_cond(captures.keep(attrs.cond_captures[i]), asked.captures[i]);
    Ref<Graph> cond(new Graph(*attrs.cond.graph));
    next.connect_cond(*cond, asked.trips);
    cond->seal();
    DimEnv env = cond_env(attrs, types);
    next.attrs().cond =
        make_sub_graph(without_dead(*cond, nullptr, dims_given(*attrs.cond.graph)), env);
  }
  result.inputs = next.operands();
  result.attrs = make_attrs(std::move(next.attrs()));
  return result;
}

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

bool has_dead_records(const Graph& graph) {
  const Liveness alive =
      liveness(graph, std::vector<std::uint8_t>(graph.outputs.size(), 1), dims_given(graph));
  return std::ranges::find(alive.records, 0) != alive.records.end();
}

/// Returns the attributes of a record other than a loop. Branches without dead records stay the
/// same objects, by which merge_equal() knows equal conds.
AttrsRef with_live_branches(const OpRecord& record) {
  if (record.op != &cond_op) return record.attrs;
  const auto& cond = get<CondAttrs>(record.attrs.get());
  if (!has_dead_records(*cond.on_true.graph) && !has_dead_records(*cond.on_false.graph))
    return record.attrs;
  return with_all_sub_graphs(record, [](const Graph& branch) {
    return without_dead(branch, nullptr, dims_given(branch));
  });
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
    keeps[r] = 1;
    if (record.op != &loop_op) {
      for (const ValueId v : graph.inputs_of(record)) live[v] = 1;
      continue;
    }
    const std::vector<std::uint8_t> is_used = used_outputs(graph, r, live, whole.symbols, makers);
    Pruned pruned = prune(graph, record, is_used);
    for (const ValueId v : pruned.inputs) live[v] = 1;
    loops.emplace(r, std::move(pruned));
  }

  keep_binding_captures(graph, whole.symbols, live);

  GraphRewriter to(graph);
  to.to().inputs.clear();
  for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
    if (i >= graph.formal_count && kept_captures) {
      if (!live[graph.inputs[i]]) continue;
      kept_captures->push_back(static_cast<int>(i - graph.formal_count));
    }
    to.to().inputs.push_back(graph.inputs[i]);
  }
  for (std::size_t r = 0; r < graph.records.size(); ++r) {
    if (!keeps[r]) continue;
    const OpRecord& record = graph.records[r];
    if (const auto loop = loops.find(r); loop != loops.end())
      to.keep(record, loop->second.attrs, loop->second.inputs, loop->second.outputs);
    else
      to.keep(record, with_live_branches(record));
  }
  return to.finish();
}

}  // namespace

Ref<Graph> drop_dead(const Graph& graph, std::vector<int>* kept_captures) {
  return without_dead(graph, kept_captures, {});
}

}  // namespace reel
