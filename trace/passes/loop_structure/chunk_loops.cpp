#include "reel/trace/passes/loop_structure/chunk_loops.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>

#include "reel/core/graph/graph_rewriter.h"
#include "reel/core/op/facts.h"
#include "reel/core/ops/control/cond.h"
#include "reel/core/ops/control/effects.h"
#include "reel/core/ops/control/nested_step_types.h"
#include "reel/core/ops/control/recompute.h"
#include "reel/trace/executors/loop/chunks.h"
#include "reel/trace/passes/analysis/loop_time.h"
#include "reel/trace/passes/hoisting/loop_fission.h"
#include "reel/trace/passes/support/append_typed.h"

namespace reel {
namespace {

/// Returns the size of equal chunks along a plain dim: the largest divisor of `steps` that is at
/// most `wanted` and above half of it.
std::optional<std::int64_t> equal_chunks(std::int64_t steps, std::int64_t wanted) {
  for (std::int64_t size = wanted; 2 * size > wanted; --size)
    if (steps % size == 0) return size;
  return std::nullopt;
}

/// Returns the dim of the time steps of a loop that can be chunked; nothing for an inner loop,
/// which runs over a chunk already.
std::optional<Dim> chunkable_time_of(const LoopAttrs& attrs, std::span<const TensorType> inputs) {
  return attrs.chunking.within_chunk ? std::nullopt : divisible_loop_time_of(attrs, inputs);
}

/// Rewrites one loop into a chunked loop.
class Chunking {
 public:
  /// is_pipelined: this loop and another can be pipelined, as one takes the other's stacks as
  /// slices.
  /// is_inside: the loop is part of another loop's body.
  Chunking(const LoopAttrs& attrs, std::vector<TensorType> inputs, int steps, bool is_pipelined,
           bool is_inside, const DimChanges& renames)
      : attrs_(attrs),
        inputs_(std::move(inputs)),
        steps_(steps),
        is_pipelined_(is_pipelined),
        is_inside_(is_inside),
        renames_(renames) {}

  /// Determines the dim of a chunk's time steps. Returns false if the loop stays unchanged.
  bool prepare() {
    const std::optional<Dim> time = chunkable_time_of(attrs_, inputs_);
    if (!time || !takes_checkpoints_of_inputs()) return false;
    if (!steps_ && !is_pipelined_ && !must_have_chunks()) {
      // Packing changes only orders of sums, which do not matter for this test.
      if (!LoopFission(as_chunks(), inputs_, *time, renames_, LoopFission::Leaves::all,
                       Packs::large)
               .would_change_anything())
        return false;
    }
    const auto size =
        time->is_named() ? std::nullopt : equal_chunks(time->size(), wanted(time->size()));
    chunk_ = size ? Dim(*size) : part_symbol(*time);
    if (size) steps_ = static_cast<int>(*size);
    return !time->has_size() || has_chunks(time->size(), size ? *size : wanted(time->size()));
  }

  /// Returns the attributes of the chunked loop, which takes inputs(). Requires prepare().
  LoopAttrs make() const {
    LoopAttrs next = attrs_;
    next.body = make_sub_graph(body());
    if (attrs_.trips.has_lengths) next.captures.push_back({});
    next.cond_captures.clear();
    next.body_captures.resize(next.captures.size());
    std::iota(next.body_captures.begin(), next.body_captures.end(), 0);
    next.trips.has_bound = next.trips.has_lengths = false;
    next.entries = {};  // the loop inside handles finished entries
    for (LoopCarry& carry : next.carries) carry.adds_finished = false;
    for (LoopStack& stack : next.stacks) stack.adds_finished = false;
    for (LoopSum& sum : next.sums) sum.adds_finished = false;
    next.chunking.over_chunks = true;
    next.chunking.steps = steps_;
    next.chunking.is_pipelined = is_pipelined_;
    next.debug.origin = {};
    return next;
  }

  /// Returns the operands of the chunked loop. Compared with `in` they lack the bound, and end with
  /// the lengths, which the loop inside takes from this capture.
  std::vector<ValueId> inputs(std::span<const ValueId> in) const {
    const auto operands = operands_of(attrs_, in);
    std::vector<ValueId> result;
    for (const auto& leaves : {operands.carries, operands.slices, operands.captures})
      result.insert(result.end(), leaves.begin(), leaves.end());
    if (operands.lengths) result.push_back(*operands.lengths);
    return result;
  }

 private:
  /// Returns true if the loop is chunked even if nothing leaves it. Whether something leaves may
  /// depend on the residuals that a policy or rule keeps, in this loop or in loops inside. A
  /// gradient's sums are then always added up chunk by chunk. The bits of products depend on row
  /// blocks; under a policy the time steps of a chunk are cut into row blocks, without one all time
  /// steps are.
  bool must_have_chunks() const {
    const Graph& body = *attrs_.body.graph;
    if (attrs_.is_gradient_loop && has_loops(body)) return true;
    const bool adds_up = attrs_.is_gradient_loop && !attrs_.sums.empty();
    return (adds_up || attrs_.has_windows() || attrs_.keeps_few_steps()) && has_products(body);
  }
  static bool has_products(const Graph& graph) {
    return std::any_of(graph.records.begin(), graph.records.end(), [](const OpRecord& record) {
      if (record.op != &cond_op) return is_product(*record.op) && record.recompute == Recompute::no;
      const auto& attrs = get<CondAttrs>(record.attrs.get());
      return has_products(*attrs.on_true.graph) || has_products(*attrs.on_false.graph);
    });
  }
  /// Fewer than two chunks are not worth it, with two exceptions. Under policies, checkpoints are
  /// taken before chunks, and chunks are recomputed. An inner loop must sum up its whole run first,
  /// with and without a policy; batch_across_iterations then moves sums of chunks out, not single
  /// terms.
  bool has_chunks(std::int64_t steps, std::int64_t size) const {
    return size < steps ||
           (steps > 0 && (is_inside_ || attrs_.has_windows() || attrs_.keeps_few_steps()));
  }
  std::int64_t wanted(std::int64_t all) const {
    LoopAttrs in_steps = attrs_;
    in_steps.chunking.steps = steps_;
    in_steps.chunking.is_pipelined = is_pipelined_;
    return std::min(all, chunks_of(in_steps, inputs_).size);
  }

  /// Builds the chunked loop's body: the loop over the time steps of a chunk.
  Ref<Graph> body() const {
    Ref<Graph> graph(new Graph);
    graph->name = attrs_.name;
    const auto add_input = [&](const TensorType& type) {
      graph->inputs.push_back(graph->add_value(type));
    };
    add_input(TensorType(i64, {2}));
    const auto operands = operands_of(attrs_, inputs_);
    for (const TensorType& type : operands.carries) add_input(type);
    for (const TensorType& type : operands.slices) add_input(chunk_type(type, chunk_));
    graph->formal_count = graph->inputs.size();
    for (const TensorType& type : operands.captures) add_input(type);
    std::vector<ValueId> inside = graph->inputs;
    if (operands.lengths) {
      add_input(*operands.lengths);
      inside.insert(inside.begin(), graph->inputs.back());
    }
    const LoopAttrs steps = make_chunk_loop(as_chunks(), chunk_);
    const AttrsRef attrs = make_attrs(steps);
    const std::vector<ValueId> made = append_typed(*graph, loop_op, attrs, inside);
    const auto results = results_of(steps, made);
    const auto terms = body_outputs(attrs_);
    graph->outputs.assign(results.carries.begin(), results.carries.end());
    auto next = results.stacks.begin();
    for (std::size_t j = 0; j < terms.stacks.size(); ++j) {
      if (!attrs_.stacks[j].is_checkpoint())
        graph->outputs.push_back(*next++);
      else if (attrs_.stacks[j].role == StackRole::checkpoint_step)
        graph->outputs.push_back(append_steps(*graph));
      else  // checkpoints are taken before chunks
        graph->outputs.push_back(graph->inputs[*chunk_input(terms.stacks[j])]);
    }
    graph->outputs.insert(graph->outputs.end(), results.sums.begin(), results.sums.end());
    graph->seal();
    return graph;
  }

  /// Returns the loop as it runs over the time steps of a chunk: without checkpoints, and with all
  /// of the chunk's residuals in memory.
  LoopAttrs as_chunks() const {
    LoopAttrs result = attrs_;
    for (LoopSlice& slice : result.slices) slice.residence = Residence::memory;
    result.stacks.clear();
    const auto terms = body_outputs(attrs_);
    Ref<Graph> body(new Graph(*attrs_.body.graph));
    body->outputs.assign(terms.carries.begin(), terms.carries.end());
    for (std::size_t j = 0; j < terms.stacks.size(); ++j) {
      if (attrs_.stacks[j].is_checkpoint()) continue;
      body->outputs.push_back(terms.stacks[j]);
      result.stacks.push_back(attrs_.stacks[j]);
      result.stacks.back().residence = Residence::memory;
    }
    body->outputs.insert(body->outputs.end(), terms.sums.begin(), terms.sums.end());
    body->seal();
    result.body.graph = std::move(body);
    return result;
  }
  /// Returns which input of the chunked loop's body the value is; nothing if it is no input of the
  /// body.
  std::optional<std::size_t> chunk_input(ValueId v) const {
    const Graph& body = *attrs_.body.graph;
    const auto found = std::find(body.inputs.begin(), body.inputs.end(), v);
    if (found == body.inputs.end()) return std::nullopt;
    LoopLeaf leaf = body_input_at(attrs_, static_cast<std::size_t>(found - body.inputs.begin()));
    if (leaf.is(LeafKind::capture))
      leaf.index = static_cast<std::size_t>(attrs_.body_captures[leaf.index]);
    return body_input_number(attrs_, leaf);
  }
  bool takes_checkpoints_of_inputs() const {
    const auto terms = body_outputs(attrs_).stacks;
    for (std::size_t j = 0; j < terms.size(); ++j)
      if (attrs_.stacks[j].role == StackRole::checkpoint_state && !chunk_input(terms[j]))
        return false;
    return true;
  }

  const LoopAttrs& attrs_;
  std::vector<TensorType> inputs_;  ///< types of the op's inputs
  int steps_;                       ///< time steps of a chunk; 0: unknown
  bool is_pipelined_, is_inside_;
  const DimChanges& renames_;
  Dim chunk_;
};

/// Marks, by record, loops that can be chunked if one takes the other's stacks as slices in the
/// same direction.
std::vector<std::uint8_t> find_pipelined(const Graph& graph) {
  std::vector<std::uint8_t> result(graph.records.size());
  std::map<ValueId, std::size_t> stacked_by;
  for (std::size_t r = 0; r < graph.records.size(); ++r) {
    const OpRecord& record = graph.records[r];
    if (record.op != &loop_op) continue;
    const auto& attrs = get<LoopAttrs>(record.attrs.get());
    const auto in = graph.inputs_of(record), out = graph.outputs_of(record);
    if (!chunkable_time_of(attrs, graph.types_of(in))) continue;
    for (const ValueId slices : operands_of(attrs, in).slices) {
      const auto found = stacked_by.find(slices);
      if (found == stacked_by.end()) continue;
      const auto& before = get<LoopAttrs>(graph.records[found->second].attrs.get());
      if (before.trips.is_reverse == attrs.trips.is_reverse) result[r] = result[found->second] = 1;
    }
    for (const ValueId stack : results_of(attrs, out).stacks) stacked_by[stack] = r;
  }
  return result;
}

Ref<Graph> over_chunks(const Graph& graph, int steps, bool is_inside, const DimChanges& renames) {
  const std::vector<std::uint8_t> is_pipelined = find_pipelined(graph);
  GraphRewriter to(graph);
  const auto in_part = [&](SubGraph& part, bool is_in_loop) {
    DimEnv names = part.env();
    part = make_sub_graph(over_chunks(*part.graph, steps, is_in_loop, renames), names);
  };
  for (const OpRecord& record : graph.records) {
    const InheritProvenance scope(record);
    const auto given = graph.inputs_of(record);
    std::vector<ValueId> in(given.begin(), given.end());
    AttrsRef attrs = record.attrs;
    if (record.op == &cond_op) {
      CondAttrs cond = get<CondAttrs>(attrs.get());
      in_part(cond.on_true, is_inside);
      in_part(cond.on_false, is_inside);
      attrs = make_attrs(std::move(cond));
    } else if (record.op == &loop_op) {
      if (has_loops(*get<LoopAttrs>(attrs.get()).body.graph)) {
        LoopAttrs around = get<LoopAttrs>(attrs.get());
        // Once inner loops are chunked, their lengths cannot be read off the body any more.
        if (around.chunking.cost_types.empty())
          around.chunking.cost_types = nested_step_types(around, graph.types_of(in));
        in_part(around.body, true);
        if (around.cond) in_part(around.cond, true);
        attrs = make_attrs(std::move(around));
      }
      const auto& loop = get<LoopAttrs>(attrs.get());
      const auto place = static_cast<std::size_t>(&record - graph.records.data());
      Chunking chunking(loop, graph.types_of(in), steps,
                        is_pipelined[place] || loop.chunking.is_pipelined, is_inside, renames);
      if (chunking.prepare()) {
        in = chunking.inputs(given);
        attrs = make_attrs(chunking.make());
      }
    }
    to.keep(record, attrs, in);
  }
  return to.finish();
}

}  // namespace

Ref<Graph> chunk_loops(const Graph& graph, int steps) {
  return over_chunks(graph, steps, false, graph.renames);
}

}  // namespace reel
