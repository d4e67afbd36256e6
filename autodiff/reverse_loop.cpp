#include "reel/autodiff/reverse_loop.h"

#include <algorithm>
#include <span>
#include <utility>

#include "reel/autodiff/loop_cost_types.h"
#include "reel/core/ops.h"
#include "reel/core/ops/list/list.h"
#include "reel/core/ops/loop/capture_list.h"
#include "reel/core/ops/loop/loop_builder.h"
#include "reel/core/ops/shape/new_dims.h"

namespace reel {
namespace {

/// Returns the attributes of the reverse loop that are known without its leaves.
LoopAttrs reverse_attrs(const LoopAttrs& attrs) {
  LoopAttrs result;
  result.name = "the gradient of " + attrs.name;
  result.trips.has_bound = result.trips.is_scan = true;
  result.trips.has_lengths = attrs.trips.has_lengths || attrs.makes_lengths();
  result.trips.is_reverse = !attrs.trips.is_reverse;
  result.is_gradient_loop = !attrs.is_gradient_loop;
  result.debug.parallel_iterations = attrs.debug.parallel_iterations;
  result.entries = attrs.entries;
  return result;
}

/// Returns the values that finished entries read of an output's cotangent. The output of a finished
/// entry was discarded, or was added to the first running one: then it has that entry's cotangent.
FinishedFill cotangent_fill(const LoopAttrs& attrs, LoopLeaf output) {
  const bool is_as_is = output.is(LeafKind::carry)
                            ? attrs.carries[output.index].fill == FinishedFill::as_is
                            : output.is(LeafKind::stack) && attrs.stacks[output.index].is_raw();
  return is_as_is                       ? FinishedFill::as_is
         : adds_finished(attrs, output) ? FinishedFill::running
                                        : FinishedFill::zero;
}

/// The leaves of the reverse loop that are collected so far.
struct Leaves {
  LoopBuilder<Tensor> builder;
  std::span<const ValueId> formals;  ///< inputs of the reversed body that are not leaves yet
  std::optional<ValueId> position = {};
  // Captures: inputs of the body, and the tensors they read. Equal tensors are merged at the end.
  std::vector<ValueId> capture_formals = {};
  Tensors captured = {};
  std::vector<FinishedFill> capture_fills = {};

  ValueId next_formal() {
    const ValueId formal = formals[0];
    formals = formals.subspan(1);
    return formal;
  }
  void add_slice(const Tensor& slices, LoopSlice slice) {
    builder.add_slice(next_formal(), slices, slice);
  }
  void add_capture(const Tensor& value, FinishedFill fill) {
    capture_formals.push_back(next_formal());
    captured.push_back(value);
    capture_fills.push_back(fill);
  }
  /// Adds the captures to the builder. If several inputs of the body read one tensor, the last of
  /// them decides on its fill.
  void merge_captures() {
    CaptureList list;
    const std::vector<int> places = list.add(captured);
    std::vector<LoopCapture> captures(list.tensors().size());
    for (std::size_t i = 0; i < places.size(); ++i)
      captures[static_cast<std::size_t>(places[i])].fill = capture_fills[i];
    for (std::size_t c = 0; c < captures.size(); ++c)
      builder.add_capture(list.tensors()[c], captures[c]);
    for (std::size_t i = 0; i < places.size(); ++i)
      builder.read_in_body(static_cast<std::size_t>(places[i]), capture_formals[i]);
  }
};

/// Returns the cotangent of the last value of a carry.
Tensor carry_cotangent(const LoopApplication& loop, const SavingLoop& saving, std::size_t carry) {
  const std::size_t result = result_number(loop.attrs, {LeafKind::carry, carry});
  Tensor cotangent;
  if (loop.at.has_cotangent(result)) cotangent = loop.at.cotangent(result);
  if (cotangent.is_defined()) return cotangent;
  // Zeros need only dims: use the initial state if it has the same type, as it exists.
  const Tensor &last = results_of(saving.attrs, saving.results).carries[carry],
               &first = operands_of(loop.attrs, loop.inputs).carries[carry];
  return last.type().is_list() ? empty_list(last.type())
                               : zeros_like(first.type() == last.type() ? first : last);
}

/// Adds the cotangents of the forward loop's results: of carries as carries, of stacks as slices,
/// of sums as captures.
void add_cotangents(Leaves& leaves, const LoopApplication& loop, const ReversedGraph& reversed,
                    const SavingLoop& saving) {
  const LoopAttrs& attrs = loop.attrs;
  for (const std::size_t output : reversed.cotangents) {
    const LoopLeaf leaf = body_output_at(attrs, output);
    const FinishedFill fill = cotangent_fill(attrs, leaf);
    if (leaf.is(LeafKind::carry)) {
      // Active carries are the first outputs of the reversed body, in the same order.
      const ValueId next = reversed.graph->outputs[leaves.builder.carry_count()];
      LoopCarry carry{fill, attrs.carries[leaf.index].fill == FinishedFill::running};
      if (loop.is_changing[leaf.index])
        carry.final_dims = operands_of(attrs, loop.types).carries[leaf.index].dims();
      leaves.builder.add_carry(leaves.next_formal(), next,
                               carry_cotangent(loop, saving, leaf.index), std::move(carry));
    } else if (leaf.is(LeafKind::stack)) {
      // If lengths run over the stack's dim, padding there is an element inside.
      const Tensor cotangent = loop.at.cotangent(output);
      leaves.add_slice(cotangent.type().is_list() ? cotangent : clear_padding(cotangent, 0),
                       {.fill = fill});
    } else {
      leaves.add_capture(loop.at.cotangent(output), fill);
    }
  }
}

/// Adds the values of the forward loop that the reversed body reads: slices, captures, stacks and
/// residuals.
void add_values(Leaves& leaves, const LoopApplication& loop, const ReversedGraph& reversed,
                const SavingLoop& saving) {
  const LoopAttrs& attrs = loop.attrs;
  for (const std::size_t input : reversed.inputs) {
    const LoopLeaf leaf = body_input_at(attrs, input);
    if (leaf.is(LeafKind::position)) {
      leaves.position = leaves.next_formal();
      continue;
    }
    const Tensor& operand = loop.inputs[operand_of_input(attrs, input)];
    if (leaf.is(LeafKind::slice))
      leaves.add_slice(operand, attrs.slices[leaf.index]);
    else
      leaves.add_capture(operand, fill_of(attrs, leaf));
  }
  for (const std::size_t output :
       reversed.kept) {  // this gradient's loop may be given some of these stacks
    const std::size_t j = body_output_at(attrs, output).index;
    const LoopSlice in_file{FinishedFill::as_is, Residence::file};
    leaves.add_slice(results_of(saving.attrs, saving.results).stacks[j],
                     attrs.stacks[j].is_in_file() ? in_file : LoopSlice{});
  }
  for (std::size_t i = 0; i < saving.residuals.size(); ++i) {
    const bool spills = may_spill() && (attrs.policy.swaps || reversed.residuals[i].spills);
    leaves.add_slice(saving.residuals[i],
                     {FinishedFill::as_is, attrs.policy.has_checkpoints() ? Residence::recomputed
                                           : spills                       ? Residence::file
                                                                          : Residence::memory});
  }
  for (const Tensor& constant : reversed.captured)
    leaves.add_capture(constant, FinishedFill::running);
}

/// Adds the outputs of the reversed body that are cotangents of slices and captures.
void add_outputs(LoopBuilder<Tensor>& builder, const LoopApplication& loop,
                 const ReversedGraph& reversed, ReverseLoop& result) {
  std::vector<ValueId> presences;
  for (std::size_t k = 0; k < reversed.wanted.size(); ++k) {
    const std::size_t input = reversed.wanted[k];
    const LoopLeaf leaf = body_input_at(loop.attrs, input);
    if (leaf.is(LeafKind::carry)) continue;
    const ValueId v = reversed.graph->outputs[k];
    const std::size_t operand = operand_of_input(loop.attrs, input);
    if (const int numbers = reversed.row_numbers[k]; leaf.is(LeafKind::capture) && numbers >= 0) {
      // The table rows that an iteration read; their number varies.
      for (const ValueId list : {v, reversed.graph->outputs[static_cast<std::size_t>(numbers)]})
        builder.add_stack(list, {.role = StackRole::residual, .is_list = true, .dim = Dim(0)});
      result.tables.push_back(operand);
      continue;
    }
    OperandCotangent cotangent{operand, std::nullopt};
    if (const int presence = reversed.presences[k]; presence >= 0) {
      cotangent.presence = presences.size();
      presences.push_back(reversed.graph->outputs[static_cast<std::size_t>(presence)]);
    }
    const FinishedFill fill = fill_of(loop.attrs, leaf);
    const bool adds_finished = fill == FinishedFill::running;
    if (leaf.is(LeafKind::slice)) {
      const TensorType& type = loop.types[operand];
      builder.add_stack(
          v, {.role = fill == FinishedFill::as_is ? StackRole::residual : StackRole::output,
              .is_list = type.is_list(),
              .adds_finished = adds_finished,
              .dim = leading_dim(type)});
      result.slices.push_back(cotangent);
    } else {
      builder.add_sum(v, {adds_finished});
      result.captures.push_back(cotangent);
    }
  }
  for (const ValueId presence : presences) builder.add_sum(presence, {});
}

/// Returns true if the forward loop made its dim, and no slices or stacks of the reverse loop run
/// along another one, which may be longer than the trip count.
bool runs_along_made_dim(const LoopApplication& loop, const ReverseLoop& reverse) {
  if (!loop.attrs.trips.makes_dim) return false;
  const Dim made = *iterated_dim(loop);
  const auto slices = operands_of(reverse.attrs, reverse.operands).slices;
  const auto& stacks = reverse.attrs.stacks;
  return std::all_of(slices.begin(), slices.end(),
                     [&](const Tensor& all) {
                       return all.type().is_list() || leading_dim(all.type()) == made;
                     }) &&
         std::all_of(stacks.begin(), stacks.end(),
                     [&](const LoopStack& stack) { return stack.is_list || stack.dim == made; });
}

}  // namespace

ReverseLoop build_reverse_loop(LoopApplication& loop, const ReversedGraph& reversed,
                               const SavingLoop& saving) {
  ReverseLoop result;
  const auto forward = results_of(saving.attrs, saving.results);
  Leaves leaves{LoopBuilder<Tensor>(reverse_attrs(loop.attrs)), reversed.graph->inputs};
  LoopBuilder<Tensor>& builder = leaves.builder;
  builder.set_bound(forward.trips);
  if (builder.attrs().trips.has_lengths)
    builder.set_lengths(forward.lengths ? *forward.lengths
                                        : *operands_of(loop.attrs, loop.inputs).lengths);
  add_cotangents(leaves, loop, reversed, saving);
  add_values(leaves, loop, reversed, saving);
  leaves.merge_captures();
  add_outputs(builder, loop, reversed, result);

  Ref<Graph> body(new Graph(*reversed.graph));
  builder.connect_body(*body,
                       leaves.position ? *leaves.position : body->add_value(TensorType(i64)));
  body->name = loop.body.name + " reversed";
  body->seal();
  result.attrs = builder.attrs();
  result.operands = builder.operands();
  result.attrs.trips.is_full = loop.attrs.trips.is_full || runs_along_made_dim(loop, result);
  result.attrs.body = make_sub_graph(std::move(body), loop.env);
  result.attrs.chunking.cost_types =
      gradient_cost_types(loop, reversed, result.attrs.trips.is_full);
  return result;
}

}  // namespace reel
