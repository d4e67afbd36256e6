#include "reel/autodiff/loop_application.h"

#include <algorithm>
#include <span>

#include "reel/autodiff/derivative_reachability.h"
#include "reel/core/graph/graph_builder.h"
#include "reel/core/types/mode.h"

namespace reel {
namespace {

/// Returns, by output of the body, true if a cotangent has arrived. Cotangents of checkpoints do
/// not count: their readers recompute values that others read as they were.
std::vector<std::uint8_t> arrived_cotangents(const LoopAttrs& attrs, const Vjp& at) {
  std::vector<std::uint8_t> result;
  for (std::size_t n = 0; n < attrs.body.graph->outputs.size(); ++n) {
    const LoopLeaf leaf = body_output_at(attrs, n);
    const bool is_checkpoint = leaf.is(LeafKind::stack) && attrs.stacks[leaf.index].is_checkpoint();
    result.push_back(!is_checkpoint && at.has_cotangent(n));
  }
  return result;
}
/// Returns, by input of the body, true if the cotangent of its operand is needed.
std::vector<std::uint8_t> needed_cotangents(const LoopAttrs& attrs, const Vjp& at) {
  std::vector<std::uint8_t> result{0};  // the position
  for (std::size_t n = 1; n < attrs.body.graph->inputs.size(); ++n)
    result.push_back(at.needs(operand_of_input(attrs, n)));
  return result;
}

/// Marks in `carries` those that `reached` marks. Returns true if one was not marked before.
bool mark_carries(std::span<std::uint8_t> carries, std::span<const std::uint8_t> reached) {
  bool result = false;
  for (std::size_t i = 0; i < carries.size(); ++i)
    if (reached[i] && !carries[i]) carries[i] = result = true;
  return result;
}

/// Returns the carries with a needed cotangent that can be non-zero: two fixpoints over the body.
/// Each round but the last marks at least one carry, so each fixpoint takes at most carries + 1
/// rounds.
std::vector<std::uint8_t> active_carries(const LoopAttrs& attrs, const Vjp& at) {
  const Graph& body = *attrs.body.graph;
  std::vector<std::uint8_t> outputs = arrived_cotangents(attrs, at),
                            inputs = needed_cotangents(attrs, at);
  const auto arrived = body_outputs_of(attrs, outputs).carries;
  const auto needed = body_inputs_of(attrs, inputs).carries;
  while (mark_carries(arrived, body_inputs_of(attrs, reachable_inputs(body, outputs)).carries)) {
  }
  while (mark_carries(needed, body_outputs_of(attrs, reachable_outputs(body, inputs)).carries)) {
  }
  const auto next = body_outputs(attrs).carries;
  std::vector<std::uint8_t> result;
  for (std::size_t i = 0; i < next.size(); ++i)
    result.push_back(arrived[i] && needed[i] && is_float(body.types[next[i]].dtype()));
  return result;
}

/// Returns true if lengths of some dim run over the stack's own dim.
bool hides_elements(const TensorType& stack) {
  const auto runs_over = [&](const Dim& dim) {
    return contains(dim.length_dims(), stack.dims()[0]);
  };
  return !stack.is_list() && std::any_of(stack.dims().begin(), stack.dims().end(), runs_over);
}

/// Returns true if a stack that exists anyway can serve as a residual. There are three exceptions.
/// With entries, it has zeros for finished ones, which the body may have read otherwise. If lengths
/// run over the stack's dim, it lacks padding that the body read. And under a policy, only stacks
/// that the user reads count, as the gradient alone must not keep more.
bool is_kept_anyway(const LoopApplication& loop, std::size_t stack, const CheckpointPlan& policy) {
  if (loop.attrs.has_entries() || loop.attrs.stacks[stack].is_checkpoint()) return false;
  const std::size_t result = result_number(loop.attrs, {LeafKind::stack, stack});
  const bool is_read = loop.at.has_cotangent(result) && !cotangents_are_assumed();
  return (is_read || !has_policy(policy)) && !hides_elements(loop.at.output_type(result));
}

/// Returns true if the input has entry dims. A finished entry then reads a row of another entry,
/// and the row's number does not say which.
bool has_entry_dims(const LoopApplication& loop, const TensorType& input) {
  const auto* const lengths = operands_of(loop.attrs, loop.types).lengths;
  const Dims& entries = lengths ? lengths->dims() : loop.attrs.entries.dims;
  return std::any_of(input.dims().begin(), input.dims().end(),
                     [&](const Dim& dim) { return contains(entries, dim); });
}

/// Returns the dim that the dropped slices had: named if the state has names
/// (frontend/loops/fold.cpp).
Dim dim_of_steps(const LoopApplication& loop, std::int64_t steps) {
  for (const LoopStack& stack : loop.attrs.stacks)
    if (!stack.is_list) return stack.dim;
  for (const TensorType& initial : operands_of(loop.attrs, loop.types).carries)
    if (initial.is_named()) return Dim("i", steps);
  return Dim(steps);
}

}  // namespace

LoopApplication::LoopApplication(Vjp& vjp)
    : at(vjp),
      attrs(at.attr<LoopAttrs>()),
      body(*attrs.body.graph),
      is_active(active_carries(attrs, at)),
      is_changing(carries_with_changing_dims(attrs)) {
  for (std::size_t i = 0; i < at.input_count(); ++i) {
    inputs.push_back(at.input(i));
    types.push_back(at.input_type(i));
  }
  env = body_env(attrs, types);
}

std::size_t operand_of_input(const LoopAttrs& attrs, std::size_t body_input) {
  LoopLeaf leaf = body_input_at(attrs, body_input);
  if (leaf.is(LeafKind::capture))
    leaf.index = static_cast<std::size_t>(attrs.body_captures[leaf.index]);
  return operand_number(attrs, leaf);
}

bool has_policy(const CheckpointPlan& policy) {
  return policy.has_checkpoints() || policy.swaps || policy.rule;
}

ReversalSpec reversal_spec(const LoopApplication& loop, const CheckpointPlan& policy) {
  const LoopAttrs& attrs = loop.attrs;
  const std::size_t count = loop.body.inputs.size();
  ReversalSpec spec;
  spec.has_cotangent = arrived_cotangents(attrs, loop.at);
  std::ranges::copy(loop.is_active, body_outputs_of(attrs, spec.has_cotangent).carries.begin());
  spec.is_wanted = needed_cotangents(attrs, loop.at);
  std::ranges::copy(loop.is_active, body_inputs_of(attrs, spec.is_wanted).carries.begin());
  spec.is_free.assign(count, 1);
  std::ranges::fill(body_inputs_of(attrs, spec.is_free).carries, 0);
  spec.is_varying.assign(count, 0);
  const auto varying = body_inputs_of(attrs, spec.is_varying);
  std::ranges::copy(loop.is_changing, varying.carries.begin());
  std::ranges::transform(operands_of(attrs, loop.types).slices, varying.slices.begin(),
                         &TensorType::is_list);
  spec.takes_rows.assign(count, 0);
  for (std::size_t n = 1; n < count; ++n) {
    const std::size_t operand = operand_of_input(attrs, n);
    spec.takes_rows[n] = body_input_at(attrs, n).is(LeafKind::capture) &&
                         loop.at.takes_rows(operand) && !has_entry_dims(loop, loop.types[operand]);
  }
  spec.is_constant.assign(count, 0);
  std::ranges::fill(body_inputs_of(attrs, spec.is_constant).captures, 1);
  spec.keeps = policy.rule.get();
  for (std::size_t j = 0; j < attrs.stacks.size(); ++j)
    if (is_kept_anyway(loop, j, policy))
      spec.kept_anyway.push_back(body_output_number(attrs, {LeafKind::stack, j}));
  return spec;
}

std::optional<Dim> iterated_dim(const LoopApplication& loop) {
  const LoopAttrs& attrs = loop.attrs;
  if (attrs.trips.makes_dim)
    return loop.at.output_type(result_number(attrs, {LeafKind::token})).dims()[1];
  if (attrs.cond) {  // a saving loop: along the dim that the first one makes, not of xs
    if (!attrs.stacks.empty() && !(attrs.stacks[0].dim == Dim(0))) return attrs.stacks[0].dim;
    return std::nullopt;
  }
  const auto types = operands_of(attrs, loop.types);
  if (!types.slices.empty() && !types.slices[0].is_list()) return leading_dim(types.slices[0]);
  // Unread slices were dropped: the counter of a fori_loop.
  if (types.slices.empty() && attrs.trips.is_full && types.bound && thread_mode.builder)
    if (const auto steps =
            thread_mode.builder->known_integer(*operands_of(attrs, loop.inputs).bound))
      return dim_of_steps(loop, std::max<std::int64_t>(*steps, 0));
  return std::nullopt;
}

}  // namespace reel
