#include "reel/trace/executors/plan/loop/planned_loop.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "reel/core/base/str.h"
#include "reel/core/runtime/memory.h"
#include "reel/trace/executors/loop/loop_types.h"
#include "reel/trace/executors/plan/loop/unfit_output.h"
#include "reel/trace/passes/analysis/state_stacks.h"

namespace reel {

bool carries_keep_dims(const LoopAttrs& loop) {
  return changing_dims(loop).empty() &&
         std::ranges::all_of(loop.carries,
                             [](const LoopCarry& carry) { return carry.final_dims.empty(); });
}

bool PlannedLoop::try_plan(const AttrsRef& of, const std::vector<TensorType>& types, bool may_share,
                           std::string* why) {
  bind(of, types);
  numbers_.resize(std::max({loop().body.graph->inputs.size(), loop().body.graph->outputs.size(),
                            loop().cond ? loop().cond.graph->inputs.size() : 0}));
  std::iota(numbers_.begin(), numbers_.end(), std::size_t{0});
  if (!find_types(why)) return false;
  if (is_new_) {
    lay_out(may_share);
    series = IterationSeries::make(*this);
  }
  is_new_ = false;
  return true;
}

int PlannedLoop::shares_of_series() const {
  if (!series || context.passes.block_rows) return 1;
  return series->program().shares_of_series(steps_of(loop(), input_types).value_or(1));
}

bool PlannedLoop::find_types(std::string* why) {
  const auto no = [&](const auto&... text) {
    if (why) *why = str(text...);
    return false;
  };
  const LoopAttrs& loop = this->loop();
  if (!carries_keep_dims(loop))
    return no("its carries change their dims from iteration to iteration");
  if (loop.chunking.over_chunks) chunks = chunks_of(loop, input_types);
  is_block.assign(loop.body.graph->outputs.size(), 0);
  const auto stacks = body_outputs_of(loop, is_block).stacks;
  for (std::size_t j = 0; j < stacks.size(); ++j)
    stacks[j] = loop.stacks[j].is_list && !loop.stacks[j].is_checkpoint();
  if (!prepare_body()) return no("list elements have other sizes where some entries have finished");
  if (!is_new_ && !loop.cond && !loop.chunking.over_chunks) return true;  // as in the last call
  if (loop.cond) {
    const auto operands = operands_of(loop, input_types);
    std::vector<TensorType> types{TensorType(i64)};
    types.insert(types.end(), operands.carries.begin(), operands.carries.end());
    for (const int capture : loop.cond_captures)
      types.push_back(operands.captures[static_cast<std::size_t>(capture)]);
    is_new_ = cond.prepare(loop.cond, types) || is_new_;
  }
  if (!knows_types(*body, why)) return false;
  if (loop.chunking.over_chunks && chunks.has_rest()) {
    is_new_ = rest.prepare(loop.body, body_types(chunks.rest_dim), is_block) || is_new_;
    if (!knows_types(*rest, why)) return false;
  }
  return !loop.cond || cond->output_is_known(0) ||
         no("the type of its condition is known only at run time");
}

/// Returns false if slices of lists contradict the other inputs: finished entries compute on values
/// of a running one, so that what pack() makes has its sizes, whereas these inputs keep their dims.
bool PlannedLoop::prepare_body() {
  try {
    is_new_ = body.prepare(loop().body, body_types(chunks.dim), is_block) || is_new_;
    return true;
  } catch (const ShapeError&) {
    const auto slices = operands_of(loop(), input_types).slices;
    const bool has_lists = std::any_of(slices.begin(), slices.end(),
                                       [](const TensorType& type) { return type.is_list(); });
    if (!loop().has_entries() || !has_lists) throw;
    return false;
  }
}

/// Returns the types of the body's inputs. chunk: the dim of a chunk's time steps, for a chunked
/// loop.
std::vector<TensorType> PlannedLoop::body_types(const Dim& chunk) const {
  const LoopAttrs& loop = this->loop();
  std::vector<TensorType> types{loop.chunking.over_chunks ? TensorType(i64, {2}) : TensorType(i64)};
  const auto operands = operands_of(loop, input_types);
  types.insert(types.end(), operands.carries.begin(), operands.carries.end());
  const auto formals = body_inputs(loop).slices;
  for (std::size_t i = 0; i < formals.size(); ++i) {
    const TensorType& slices = operands.slices[i];
    if (loop.chunking.over_chunks) {
      types.push_back(chunk_type(slices, chunk));
      continue;
    }
    const TensorType slice = slice_type(slices);
    const bool is_list = loop.body.graph->types[formals[i]].is_list();
    types.push_back(is_list ? slice.as_list() : slice);  // an element of a list of lists
  }
  for (const int capture : loop.body_captures)
    types.push_back(operands.captures[static_cast<std::size_t>(capture)]);
  return types;
}

bool PlannedLoop::knows_types(const Plan& plan, std::string* why) const {
  const LoopAttrs& loop = this->loop();
  const auto carried = operands_of(loop, input_types).carries;
  const std::optional<std::size_t> k = first_unfit_output(
      loop, carried, [&](std::size_t k) { return plan.output_is_known(k); },
      [&](std::size_t k) -> const TensorType& { return plan.output_type(k); });
  if (!k) return true;
  if (!why) return false;
  const auto [kind, i] = body_output_at(loop, *k);
  if (kind != LeafKind::carry)
    *why =
        str("the sizes of a stack or sum, ", loop.body.graph->types[loop.body.graph->outputs[*k]],
            ", are known only at run time");
  else if (!plan.output_is_known(*k))
    *why = str("the returned sizes of carry ", i, ", ", carried[i], ", are known only at run time");
  else
    *why =
        str("carry ", i, " comes back as ", plan.output_type(*k), " and went in as ", carried[i]);
  return false;
}

void PlannedLoop::lay_out(bool may_share) {
  const LoopAttrs& loop = this->loop();
  std::int64_t bytes = 0;
  const auto room_for = [&](const TensorType& type) {
    return std::exchange(bytes, bytes + (type.bytes() + 63) / 64 * 64);
  };
  carries.assign(loop.carries.size(), {});
  shares_carry.assign(loop.stacks.size(), 0);
  repeats_states.assign(loop.stacks.size(), 0);
  for (const StateStacks& pair : state_stacks(loop)) repeats_states[pair.before] = 1;
  scratch.assign(loop.sums.size(), -1);
  const auto types = operands_of(loop, input_types).carries;
  const auto formals = body_inputs(loop);
  const auto made = body_outputs(loop);
  for (std::size_t i = 0; i < carries.size(); ++i) {
    Carry& carry = carries[i];
    carry.is_list = types[i].is_list();
    if (carry.is_list) continue;
    const std::size_t output = output_numbers().carries[i];
    const TensorType& type = body->output_type(output);
    carry.bytes = type.bytes();
    carry.is_updated = !loop.chunking.over_chunks && !loop.has_entries() &&
                       body->output_updates_input(output, input_numbers().carries[i]);
    if (carry.is_updated) continue;
    carry.buffers[0] = room_for(type);
    carry.buffers[1] = room_for(type);
    if (!body->output_is_placed(output)) continue;
    const auto find_stack = [&](ValueId value) -> std::optional<std::size_t> {
      for (std::size_t j = 0; may_share && j < loop.stacks.size(); ++j)
        if (!loop.stacks[j].is_list && !loop.stacks[j].is_in_file() && !shares_carry[j] &&
            made.stacks[j] == value)
          return j;
      return std::nullopt;
    };
    carry.stack = find_stack(made.carries[i]);
    // Requires a known last iteration, as its result goes elsewhere.
    if (!carry.stack && loop.trips.is_full && !loop.cond && !loop.has_entries())
      carry.stack_of_next = find_stack(formals.carries[i]);
    for (const auto& stack : {carry.stack, carry.stack_of_next})
      if (stack) shares_carry[*stack] = 1;
  }
  const auto sums = output_numbers().sums;
  for (std::size_t i = 0; i < sums.size(); ++i)
    if (body->output_is_placed(sums[i])) scratch[i] = room_for(body->output_type(sums[i]));
  memory = Tensor(allocate_block(TensorType(boolean, {bytes})));
  count_as(memory, MemoryClass::buffers);
}

}  // namespace reel
