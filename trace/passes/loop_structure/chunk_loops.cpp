#include "reel/trace/passes/loop_structure/chunk_loops.h"

#include <algorithm>
#include <map>
#include <optional>

#include "reel/core/ops/control/nested_step_types.h"
#include "reel/core/ops/control/recompute.h"
#include "reel/core/ops/products/products.h"
#include "reel/trace/executors/loop/chunks.h"
#include "reel/trace/passes/hoisting/loop_fission.h"

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
  return attrs.within_chunk ? std::nullopt : LoopFission::divisible_time_of(attrs, inputs);
}

/// Rewrites one loop into a chunked loop.
class Chunking {
 public:
  /// is_pipelined: this loop and another can be pipelined, as one takes the other's stacks as
  /// slices.
  /// is_inside: the loop is part of another loop's body.
  Chunking(const LoopAttrs& attrs, std::vector<TensorType> inputs, int steps, bool is_pipelined,
           bool is_inside, const DimRenames& renames)
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
    next.cond_captures.clear();
    next.body_captures.clear();
    const std::size_t captures = inputs_.size() - attrs_.first_capture() + attrs_.has_lengths;
    for (std::size_t i = 0; i < captures; ++i) next.body_captures.push_back(static_cast<int>(i));
    if (attrs_.has_lengths) next.fills.push_back(Fill::live);
    next.has_bound = next.has_lengths = false;
    next.entry_dims.clear();  // the loop inside handles finished entries
    next.kept_dims.clear();
    next.adds_finished_to_running.clear();
    next.over_chunks = true;
    next.chunk_steps = steps_;
    next.is_pipelined = is_pipelined_;
    next.origin = {};
    return next;
  }

  /// Returns the operands of the chunked loop. Compared with `in` they lack the bound, and end with
  /// the lengths, which the loop inside takes from this capture.
  std::vector<ValueId> inputs(std::span<const ValueId> in) const {
    std::vector<ValueId> result(in.begin() + static_cast<std::ptrdiff_t>(attrs_.first_carry()),
                                in.end());
    if (attrs_.has_lengths) result.push_back(in[attrs_.has_bound]);
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
    const bool adds_up = attrs_.is_gradient_loop && attrs_.sums;
    return (adds_up || attrs_.recomputes() || attrs_.keeps_few_steps()) && has_products(body);
  }
  static bool has_products(const Graph& graph) {
    return std::any_of(graph.records.begin(), graph.records.end(), [](const OpRecord& record) {
      if (record.op != &cond_op) return record.op == &dot_op && record.recompute == Recompute::no;
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
           (steps > 0 && (is_inside_ || attrs_.recomputes() || attrs_.keeps_few_steps()));
  }
  std::int64_t wanted(std::int64_t all) const {
    LoopAttrs in_steps = attrs_;
    in_steps.chunk_steps = steps_;
    in_steps.is_pipelined = is_pipelined_;
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
    for (std::size_t i = attrs_.first_carry(); i < inputs_.size(); ++i) {
      const bool is_slices = i >= attrs_.first_slice() && i < attrs_.first_capture();
      add_input(is_slices ? chunk_type(inputs_[i], chunk_) : inputs_[i]);
      if (i < attrs_.first_capture()) graph->formal_count = graph->inputs.size();
    }
    std::vector<ValueId> inside = graph->inputs;
    if (attrs_.has_lengths) {
      add_input(inputs_[attrs_.has_bound]);
      inside.insert(inside.begin(), graph->inputs.back());
    }
    LoopAttrs steps = make_chunk_loop(as_chunks(), chunk_);
    const AttrsRef attrs = make_attrs(steps);
    TypeList types;
    const std::vector<TensorType> in = graph->types_of(inside);
    TypeArgs rule{loop_op, attrs.get(), in, types};
    loop_op.type(rule);
    std::vector<ValueId> made;
    for (const TensorType& type : types.span()) made.push_back(graph->add_value(type));
    graph->append(loop_op, attrs, inside, made);
    // Checkpoints are taken before chunks.
    const Graph& body = *attrs_.body.graph;
    std::size_t next = 0;
    for (std::size_t k = 0; k < attrs_.trips_output(); ++k) {
      const std::size_t stack = k - attrs_.first_stack();
      const bool is_checkpoint =
          k >= attrs_.first_stack() && k < attrs_.first_sum() && attrs_.is_checkpoint(stack);
      if (!is_checkpoint)
        graph->outputs.push_back(made[next++]);
      else if (attrs_.is_steps(stack))
        graph->outputs.push_back(append_steps(*graph));
      else
        graph->outputs.push_back(graph->inputs[*chunk_input(body.outputs[k])]);
    }
    graph->seal();
    return graph;
  }

  /// Returns the loop as it runs over the time steps of a chunk: without checkpoints, and with all
  /// of the chunk's residuals in memory.
  LoopAttrs as_chunks() const {
    LoopAttrs result = attrs_;
    for (Fill& fill : result.fills) fill = fill_in_memory(fill);
    Ref<Graph> body(new Graph(*attrs_.body.graph));
    body->outputs.clear();
    result.stack_dims.clear();
    result.stack_kinds.clear();
    result.adds_finished_to_running.clear();
    for (std::size_t k = 0; k < attrs_.trips_output(); ++k) {
      const std::size_t stack = k - attrs_.first_stack();
      if (k >= attrs_.first_stack() && k < attrs_.first_sum()) {
        if (attrs_.is_checkpoint(stack)) {
          --result.stacks;
          continue;
        }
        result.stack_dims.push_back(attrs_.stack_dims[stack]);
        result.stack_kinds.push_back(attrs_.stack_kinds[stack] &
                                     static_cast<std::uint8_t>(~LoopAttrs::kSpilled));
      }
      body->outputs.push_back(attrs_.body.graph->outputs[k]);
      result.adds_finished_to_running.push_back(attrs_.output_adds_finished(k));
    }
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
    const auto i = static_cast<std::size_t>(found - body.inputs.begin());
    if (i < body.formal_count) return i;
    return body.formal_count +
           static_cast<std::size_t>(attrs_.body_captures[i - body.formal_count]);
  }
  bool takes_checkpoints_of_inputs() const {
    for (std::size_t j = 0; j < attrs_.stack_kinds.size(); ++j)
      if (attrs_.is_checkpoint(j) && !attrs_.is_steps(j) &&
          !chunk_input(attrs_.body.graph->outputs[attrs_.first_stack() + j]))
        return false;
    return true;
  }

  const LoopAttrs& attrs_;
  std::vector<TensorType> inputs_;  ///< types of the op's inputs
  int steps_;                       ///< time steps of a chunk; 0: unknown
  bool is_pipelined_, is_inside_;
  const DimRenames& renames_;
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
    for (std::size_t i = attrs.first_slice(); i < attrs.first_capture(); ++i) {
      const auto found = stacked_by.find(in[i]);
      if (found == stacked_by.end()) continue;
      const auto& before = get<LoopAttrs>(graph.records[found->second].attrs.get());
      if (before.is_reverse == attrs.is_reverse) result[r] = result[found->second] = 1;
    }
    for (std::size_t k = attrs.first_stack(); k < attrs.first_sum(); ++k) stacked_by[out[k]] = r;
  }
  return result;
}

Ref<Graph> over_chunks(const Graph& graph, int steps, bool is_inside, const DimRenames& renames) {
  const std::vector<std::uint8_t> is_pipelined = find_pipelined(graph);
  Ref<Graph> result(new Graph(graph));
  result->records.clear();
  result->operands.clear();
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
        if (around.chunk_cost_types.empty())
          around.chunk_cost_types = nested_step_types(around, graph.types_of(in));
        in_part(around.body, true);
        attrs = make_attrs(std::move(around));
      }
      const auto& loop = get<LoopAttrs>(attrs.get());
      const auto place = static_cast<std::size_t>(&record - graph.records.data());
      Chunking chunking(loop, graph.types_of(in), steps, is_pipelined[place] || loop.is_pipelined,
                        is_inside, renames);
      if (chunking.prepare()) {
        in = chunking.inputs(given);
        attrs = make_attrs(chunking.make());
      }
    }
    result->append(record, attrs, in, graph.outputs_of(record));
  }
  result->seal();
  return result;
}

}  // namespace

Ref<Graph> chunk_loops(const Graph& graph, int steps) {
  return over_chunks(graph, steps, false, graph.renames);
}

}  // namespace reel
