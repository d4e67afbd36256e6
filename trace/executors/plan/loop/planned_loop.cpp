#include "reel/trace/executors/plan/loop/planned_loop.h"

#include <algorithm>
#include <utility>

#include "reel/core/base/str.h"
#include "reel/core/runtime/memory.h"

namespace reel {

bool PlannedLoop::try_plan(const AttrsRef& of, const std::vector<TensorType>& types, bool may_share,
                           std::string* why) {
  attrs = of;
  input_types = types;
  if (!find_types(why)) return false;
  lay_out(may_share);
  return true;
}

bool PlannedLoop::find_types(std::string* why) {
  const auto no = [&](const auto&... text) {
    if (why) *why = str(text...);
    return false;
  };
  const LoopAttrs& loop = this->loop();
  if (!changing_dims(loop).empty() || std::any_of(loop.last_dims.begin(), loop.last_dims.end(),
                                                  [](const Dims& dims) { return !dims.empty(); }))
    return no("its carries change their dims from step to step");
  if (loop.over_chunks) chunks = chunks_of(loop, input_types);
  is_block.assign(loop.body.graph->outputs.size(), 0);
  for (int i = 0; i < loop.stacks; ++i)
    if (loop.is_list(i) && !loop.is_checkpoint(i)) is_block[loop.carries + i] = 1;
  body.prepare(attrs, loop.body, body_types(chunks.dim), is_block);
  if (loop.cond) {
    std::vector<TensorType> types{TensorType(i64)};
    for (int i = 0; i < loop.carries; ++i) types.push_back(input_types[loop.first_carry() + i]);
    for (const int capture : loop.cond_captures)
      types.push_back(input_types[loop.first_capture() + capture]);
    cond.prepare(attrs, loop.cond, types);
  }
  if (!knows_types(*body, why)) return false;
  if (loop.over_chunks && chunks.has_rest()) {
    rest.prepare(attrs, loop.body, body_types(chunks.rest_dim), is_block);
    if (!knows_types(*rest, why)) return false;
  }
  return !loop.cond || cond->output_is_known(0) ||
         no("the type of its condition is known to a run only");
}

/// Returns the types of the body's inputs. chunk: the dim of a chunk's time steps, for a chunked
/// loop.
std::vector<TensorType> PlannedLoop::body_types(const Dim& chunk) const {
  const LoopAttrs& loop = this->loop();
  std::vector<TensorType> types{loop.over_chunks ? TensorType(i64, {2}) : TensorType(i64)};
  for (int i = 0; i < loop.carries; ++i) types.push_back(input_types[loop.first_carry() + i]);
  for (int i = 0; i < loop.slices; ++i) {
    const TensorType& slices = input_types[loop.first_slice() + i];
    if (loop.over_chunks) {
      types.push_back(chunk_type(slices, chunk));
      continue;
    }
    const TensorType slice = slice_type(slices);
    const bool is_list = loop.body.graph->types[loop.body.graph->inputs[types.size()]].is_list();
    types.push_back(is_list ? slice.as_list() : slice);  // an element of a list of lists
  }
  for (const int capture : loop.body_captures)
    types.push_back(input_types[loop.first_capture() + capture]);
  return types;
}

bool PlannedLoop::knows_types(const Plan& plan, std::string* why) const {
  const auto no = [&](const auto&... text) {
    if (why) *why = str(text...);
    return false;
  };
  const LoopAttrs& loop = this->loop();
  for (int i = 0; i < loop.carries; ++i) {
    const TensorType& given = input_types[loop.first_carry() + i];
    if (given.is_list()) continue;
    if (!plan.output_is_known(i))
      return no("of carry ", i, ", ", given, ", only a run knows the sizes it comes back with");
    if (!(plan.output_type(i) == given))
      return no("carry ", i, " comes back as ", plan.output_type(i), " and went in as ", given);
  }
  for (std::size_t k = loop.carries; k < is_block.size(); ++k)
    if (!is_block[k] && !plan.output_is_known(k) &&
        (k >= loop.first_sum() || !loop.is_checkpoint(k - loop.first_stack())))
      return no("the sizes of what it stacks or adds up, ",
                loop.body.graph->types[loop.body.graph->outputs[k]], ", are known to a run only");
  return true;
}

void PlannedLoop::lay_out(bool may_share) {
  const LoopAttrs& loop = this->loop();
  const Graph& graph = *loop.body.graph;
  std::int64_t bytes = 0;
  const auto room_for = [&](const TensorType& type) {
    return std::exchange(bytes, bytes + (type.bytes() + 63) / 64 * 64);
  };
  carries.assign(loop.carries, {});
  shares_carry.assign(loop.stacks, 0);
  scratch.assign(graph.outputs.size(), -1);
  for (int i = 0; i < loop.carries; ++i) {
    Carry& carry = carries[i];
    carry.is_list = input_types[loop.first_carry() + i].is_list();
    if (carry.is_list) continue;
    const TensorType& type = body->output_type(i);
    carry.bytes = type.bytes();
    carry.is_updated = !loop.over_chunks && loop.entry_dims.empty() &&
                       body->output_updates_input(i, 1 + static_cast<std::size_t>(i));
    if (carry.is_updated) continue;
    carry.buffers[0] = room_for(type);
    carry.buffers[1] = room_for(type);
    if (!body->output_is_placed(i)) continue;
    const ValueId now = graph.inputs[1 + i], next = graph.outputs[i];
    const auto find_stack = [&](ValueId value) {
      for (int j = 0; may_share && j < loop.stacks; ++j)
        if (!loop.is_list(j) && !loop.is_spilled(j) && !shares_carry[j] &&
            graph.outputs[loop.carries + j] == value)
          return j;
      return -1;
    };
    carry.stack = find_stack(next);
    // Requires a known last iteration, as its result goes elsewhere.
    if (carry.stack < 0 && loop.is_full && !loop.cond && loop.entry_dims.empty())
      carry.stack_of_next = find_stack(now);
    for (const int j : {carry.stack, carry.stack_of_next})
      if (j >= 0) shares_carry[j] = 1;
  }
  for (std::size_t k = loop.first_sum(); k < scratch.size(); ++k)
    if (body->output_is_placed(k)) scratch[k] = room_for(body->output_type(k));
  memory = Tensor(allocate_block(TensorType(boolean, {bytes})));
  count_as(memory, MemoryClass::buffers);
}

}  // namespace reel
