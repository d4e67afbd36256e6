#include "reel/trace/passes/loop_structure/join_loops.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "reel/core/base/str.h"
#include "reel/core/graph/graph_rewriter.h"
#include "reel/core/ops/control/effects.h"
#include "reel/core/ops/loop/loop.h"
#include "reel/core/ops/loop/loop_builder.h"
#include "reel/trace/passes/support/remarks.h"
#include "reel/trace/passes/support/sub_graphs.h"

namespace reel {
namespace {

const LoopAttrs& loop_of(const OpRecord& record) { return get<LoopAttrs>(record.attrs.get()); }

/// Two loops of a graph, by record, and for each slice of the second the stack of the first that it
/// reads, if any.
struct Pair {
  std::size_t first, second;
  std::vector<std::optional<std::size_t>> stack_of;
  std::vector<std::uint8_t> waits;  ///< by record between them: it depends on the first loop
};

/// Returns, by slice of the second loop, the stack of the first that it reads. Returns an empty
/// vector if it reads none, or reads one with another element type.
std::vector<std::optional<std::size_t>> stacks_read(const Graph& graph, const OpRecord& first,
                                                    const OpRecord& second) {
  const LoopAttrs &a = loop_of(first), &b = loop_of(second);
  const auto slices = operands_of(b, graph.inputs_of(second)).slices;
  const auto stacks = results_of(a, graph.outputs_of(first)).stacks;
  std::vector<std::optional<std::size_t>> result(slices.size());
  bool any = false;
  for (std::size_t i = 0; i < slices.size(); ++i)
    for (std::size_t k = 0; k < stacks.size(); ++k) {
      if (slices[i] != stacks[k]) continue;
      if (a.body.graph->types[body_outputs(a).stacks[k]] !=
          b.body.graph->types[body_inputs(b).slices[i]])
        return {};
      result[i] = k;
      any = true;
    }
  if (!any) result.clear();
  return result;
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
  if (a.keeps_few_steps() || b.keeps_few_steps() || b.has_windows())
    return false;                               // they run under policies of their own
  if (!b.name.ends_with(a.name)) return false;  // an error must name the loop it is in
  if (b.cond || !b.trips.has_bound || a.has_entries() || b.has_entries() || a.trips.makes_dim ||
      a.trips.is_reverse != b.trips.is_reverse || has_effects(second))
    return false;
  const auto in = graph.inputs_of(second);
  const auto operands = operands_of(b, in);
  if (*operands.bound != results_of(a, graph.outputs_of(first)).trips) return false;
  pair.stack_of = stacks_read(graph, first, second);
  if (pair.stack_of.empty()) return false;
  // Without a bound, the number of elements of a list would become the trip count.
  for (std::size_t i = 0; i < operands.slices.size(); ++i)
    if (!pair.stack_of[i] && !a.trips.has_bound && graph.types[operands.slices[i]].is_list())
      return false;
  Late late(graph, pair.first);
  for (std::size_t r = pair.first + 1; r < pair.second; ++r) {
    const OpRecord& record = graph.records[r];
    pair.waits.push_back(late.visit(record));
    if (has_effects(record) && (pair.waits.back() || has_effects(first))) return false;
  }
  if (late.mentions(second)) return false;
  for (std::size_t i = 1; i < in.size(); ++i) {
    const LoopLeaf leaf = operand_at(b, i);
    const bool is_read = leaf.is(LeafKind::slice) && pair.stack_of[leaf.index];
    if (!is_read && late.has(in[i])) return false;
  }
  return true;
}

/// Returns the trip count of a loop.
ValueId trips_of(const Graph& graph, const OpRecord& loop) {
  return results_of(loop_of(loop), graph.outputs_of(loop)).trips;
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
    counted_by.emplace(trips_of(graph, record), b);
  }
  return {};
}

/// Builds the loop that runs two loops in one.
class Joining {
 public:
  Joining(const Graph& graph, const Pair& pair)
      : graph_(graph),
        pair_(pair),
        a_(loop_of(graph.records[pair.first])),
        b_(loop_of(graph.records[pair.second])),
        right_(*b_.body.graph),
        body_(new Graph(*a_.body.graph)),
        place_(right_.types.size(), kNoValue),
        next_(a_) {}

  void append_to(Graph& to) {
    const OpRecord &first = graph_.records[pair_.first], &second = graph_.records[pair_.second];
    const auto in_a = operands_of(a_, graph_.inputs_of(first)),
               in_b = operands_of(b_, graph_.inputs_of(second));
    place_inputs(in_a.slices, in_b.slices);
    inline_graph(*body_, right_, place_);
    next_.set_trip_operands(in_a);
    if (a_.cond) cond_ = Ref<Graph>(new Graph(*a_.cond.graph));
    add_inputs(false, in_a);
    add_inputs(true, in_b);
    add_outputs(false);
    add_outputs(true);
    set_attrs();
    to.append(loop_op, make_attrs(std::move(next_.attrs())), next_.operands(),
              outputs(graph_.outputs_of(first), graph_.outputs_of(second)));
  }

 private:
  /// Finds the values of the first body that the second body's inputs stand for, and adds the other
  /// inputs.
  void place_inputs(std::span<const ValueId> slices_a, std::span<const ValueId> slices_b) {
    const Graph& left = *a_.body.graph;
    const auto ours = body_inputs(a_), theirs = body_inputs(b_);
    place_[theirs.position] = ours.position;
    for (std::size_t i = 0; i < slices_b.size(); ++i) {
      if (const auto stack = pair_.stack_of[i])
        place_[theirs.slices[i]] = body_outputs(a_).stacks[*stack];
      for (std::size_t k = 0; k < slices_a.size(); ++k)  // slices of the same tensor are equal
        if (slices_b[i] == slices_a[k] &&
            right_.types[theirs.slices[i]] == left.types[ours.slices[k]])
          place_[theirs.slices[i]] = ours.slices[k];
    }
    for (const ValueId v : theirs.slices) is_shared_.push_back(place_[v] != kNoValue);
    for (const ValueId v : right_.inputs)
      if (place_[v] == kNoValue) place_[v] = body_->add_value(right_.types[v]);
  }
  /// Returns the number that a value of the first or second body has in the new body.
  ValueId placed(bool is_second, ValueId v) const { return is_second ? place_[v] : v; }
  /// Adds carries, slices and captures of the first or second loop.
  void add_inputs(bool is_second, const LoopOperands<const ValueId>& operands) {
    const LoopAttrs& attrs = is_second ? b_ : a_;
    const auto formals = body_inputs(attrs);
    const auto terms = body_outputs(attrs);
    for (std::size_t i = 0; i < formals.carries.size(); ++i) {
      ValueId in_cond = 0;
      if (cond_)  // it does not read the second loop's carries
        in_cond = is_second ? cond_->add_value(right_.types[formals.carries[i]])
                            : cond_inputs(a_).carries[i];
      LoopCarry carry = attrs.carries[i];
      carry.adds_finished = false;
      next_.add_carry(placed(is_second, formals.carries[i]), placed(is_second, terms.carries[i]),
                      operands.carries[i], std::move(carry), in_cond);
    }
    for (std::size_t i = 0; i < formals.slices.size(); ++i)
      if (!is_second || !is_shared_[i])
        next_.add_slice(placed(is_second, formals.slices[i]), operands.slices[i], attrs.slices[i]);
    std::vector<std::size_t> captures;
    for (std::size_t i = 0; i < operands.captures.size(); ++i)
      captures.push_back(next_.add_capture(operands.captures[i], attrs.captures[i]));
    for (std::size_t i = 0; i < formals.captures.size(); ++i)
      next_.read_in_body(captures[static_cast<std::size_t>(attrs.body_captures[i])],
                         placed(is_second, formals.captures[i]));
    if (!attrs.cond) return;
    const auto asked = cond_inputs(attrs).captures;
    for (std::size_t i = 0; i < asked.size(); ++i)
      next_.read_in_cond(captures[static_cast<std::size_t>(attrs.cond_captures[i])], asked[i]);
  }
  void add_outputs(bool is_second) {
    const LoopAttrs& attrs = is_second ? b_ : a_;
    const auto terms = body_outputs(attrs);
    for (std::size_t i = 0; i < terms.stacks.size(); ++i) {
      LoopStack stack = attrs.stacks[i];
      stack.adds_finished = false;
      next_.add_stack(placed(is_second, terms.stacks[i]), stack);
    }
    for (const ValueId v : terms.sums) next_.add_sum(placed(is_second, v), {});
  }
  /// Sets all attributes except the leaves.
  void set_attrs() {
    LoopAttrs& next = next_.attrs();
    next.debug.origin = {};
    std::vector<TensorType>& types = next.chunking.cost_types;
    const std::vector<TensorType>& more = b_.chunking.cost_types;
    if (types.empty() || more.empty())
      types.clear();  // the body shows them
    else
      types.insert(types.end(), more.begin(), more.end());
    LoopRemarks remarks(a_.debug.remarks);
    remarks.say(LoopRemark::Kind::joined, str(b_.name, ", which reads its stacks"));
    next.debug.remarks = remarks.finish();
    next_.connect_body(*body_, body_inputs(a_).position);
    body_->seal();
    DimEnv names = a_.body.env();
    for (const auto& [symbol, actual] : b_.body.bindings)
      if (!names.knows(symbol)) names.bind(symbol, actual);
    next.body = make_sub_graph(body_, names);
    if (!cond_) return;
    next_.connect_cond(*cond_, cond_inputs(a_).trips);
    cond_->seal();
    DimEnv env = a_.cond.env();
    next.cond = make_sub_graph(cond_, env);
  }
  /// Returns the results: carries, stacks and sums of both loops, then the others of the first.
  std::vector<ValueId> outputs(std::span<const ValueId> first,
                               std::span<const ValueId> second) const {
    const auto a = results_of(a_, first), b = results_of(b_, second);
    std::vector<ValueId> result;
    for (const auto& leaves : {a.carries, b.carries, a.stacks, b.stacks, a.sums, b.sums})
      result.insert(result.end(), leaves.begin(), leaves.end());
    result.insert(result.end(), &a.trips, first.data() + first.size());
    return result;
  }

  const Graph& graph_;
  const Pair& pair_;
  const LoopAttrs &a_, &b_;
  const Graph& right_;  ///< the second loop's body
  Ref<Graph> body_, cond_;
  std::vector<ValueId> place_;           ///< by value of the second body, its value in body_
  std::vector<std::uint8_t> is_shared_;  ///< by slice of the second loop: the first has its value
  LoopBuilder<ValueId> next_;
};

}  // namespace

Ref<Graph> join_loops(const Graph& graph) {
  const std::optional<Pair> pair = find_pair(graph);
  GraphRewriter to(graph);
  const auto take = [&](std::size_t r) {
    const OpRecord& record = graph.records[r];
    to.keep(record, with_sub_graphs(record, join_loops));
  };
  const auto waits = [&](std::size_t r) {
    return pair && r > pair->first && r < pair->second && pair->waits[r - pair->first - 1];
  };
  if (pair)  // both trip counts are equal
    to.replace(trips_of(graph, graph.records[pair->second]),
               trips_of(graph, graph.records[pair->first]));
  for (std::size_t r = 0; r < graph.records.size(); ++r) {
    if (pair && r == pair->second) {
      const InheritProvenance scope(graph.records[pair->first]);
      Joining(graph, *pair).append_to(to.to());
      for (std::size_t late = pair->first + 1; late < pair->second; ++late)
        if (waits(late)) take(late);
    } else if (!waits(r) && !(pair && r == pair->first)) {
      take(r);
    }
  }
  return to.finish();
}

}  // namespace reel
