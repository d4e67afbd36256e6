// Where the values of a plan lie in its memory.
#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "reel/core/ops/loop/loop.h"
#include "reel/core/ops/reductions/in_place.h"
#include "reel/trace/executors/plan/base/buffer_assignment.h"
#include "reel/trace/executors/plan/cond_plan.h"
#include "reel/trace/executors/plan/loop_plan.h"
#include "reel/trace/executors/plan/plan.h"
#include "reel/trace/executors/plan/tiles/tile_program.h"
#include "reel/trace/passes/analysis/state_stacks.h"

namespace reel {

/// Finds the pairs of state_stacks() that get one memory: both in the plan's memory, or both in a
/// block.
void Plan::find_shared_stacks() {
  if (!context_.passes.reuse_memory) return;
  for (const Instruction& at : instructions_) {
    if (at.kind != Kind::loop || !at.attrs) continue;
    const auto& attrs = get<LoopAttrs>(at.attrs);
    const auto values = results_of(attrs, graph_->outputs_of(graph_->records[at.record])).stacks;
    for (const StateStacks& pair : state_stacks(attrs)) {
      const ValueId before = values[pair.before], behind = values[pair.behind];
      const std::uint32_t slots[] = {slot_of_[before], slot_of_[behind]};
      const auto is_own = [&](std::uint32_t slot) {
        return places_[slot] == Place::buffer || places_[slot] == Place::block;
      };
      if (!types_.is_known[before] || !types_.is_known[behind] || !is_own(slots[0]) ||
          !is_own(slots[1]))
        continue;
      const TensorType& type = slot_types_[slots[0]];
      const std::int64_t iterations = type.sizes()[0];
      if (!iterations || type.bytes() != slot_types_[slots[1]].bytes()) continue;
      if (places_[slots[0]] != places_[slots[1]])
        places_[slots[0]] = places_[slots[1]] = Place::block;
      const std::int64_t step = type.bytes() / iterations;
      const bool is_reverse = attrs.trips.is_reverse;
      shared_stacks_.push_back(
          {SharedStack{slots[0], is_reverse ? step : 0}, {slots[1], is_reverse ? 0 : step}});
    }
  }
}

const Plan::SharedStacks* Plan::shared_stacks_of(std::uint32_t slot) const {
  const auto has_slot = [&](const SharedStacks& stacks) {
    return stacks[0].slot == slot || stacks[1].slot == slot;
  };
  const auto found = std::find_if(shared_stacks_.begin(), shared_stacks_.end(), has_slot);
  return found == shared_stacks_.end() ? nullptr : &*found;
}

/// Allocates one block for the stacks of each pair that an instruction makes.
void Plan::make_shared_blocks(const Instruction& at) {
  for (const SharedStacks& stacks : shared_stacks_) {
    const std::uint32_t first = stacks[0].slot;
    if (first < at.first_out || first >= at.first_out + at.out_count ||
        places_[first] != Place::block)
      continue;
    const TensorType& type = slot_types_[first];
    const std::int64_t elements = type.numel() + type.numel() / type.sizes()[0];
    const Ref<TensorBlock> all = allocate_block(TensorType(type.dtype(), {Dim(elements)}));
    for (const SharedStack& stack : stacks)
      slots_[stack.slot] = Tensor(allocate_view(slot_types_[stack.slot], all,
                                                static_cast<char*>(all->data) + stack.offset));
  }
}

/// Values in the plan's memory are live from the instruction that makes them to the last one that
/// reads them or a view of them. before: null, or a plan that gives its memory.
void Plan::place_in_memory(Plan* before) {
  const LastUses uses = last_uses();
  std::vector<int> last = uses.of_value;
  if (!context_.passes.reuse_memory)
    last.assign(last.size(), static_cast<int>(instructions_.size()));
  std::vector<PlannedBuffer> buffers, residuals;
  std::vector<std::size_t> buffer_of(slots_.size());
  std::vector<std::uint8_t> is_own(slots_.size()), is_placed(slots_.size());
  const auto add = [&](PlannedBuffer buffer, std::span<const SharedStack> stacks) {
    for (const auto& [slot, offset] : stacks) offsets_.push_back({slot, buffers.size(), offset});
    buffers.push_back(buffer);
  };
  // Lets outputs of an instruction lie where an operand does that nothing reads afterwards, in the
  // plan of a call. Bodies run many iterations at a time; a check of results shows the operands.
  const bool may_share =
      owner_ == Inputs::given && !context_.is_checked && context_.passes.reuse_memory;
  const auto share_operands = [&](std::size_t i) {
    const Instruction& at = instructions_[i];
    const auto in = graph_->inputs_of(graph_->records[at.record]);
    const auto here = static_cast<int>(i);
    const auto gives = [&](std::size_t input, std::size_t k) {
      const std::uint32_t slot = slot_of_[in[input]];
      const auto has_slot = [&](ValueId v) { return slot_of_[v] == slot; };
      return is_own[slot] && uses.of_value[slot] == here && uses.of_views[slot] < here &&
             slot_types_[slot] == slot_types_[at.first_out + k] &&
             std::ranges::count_if(in, has_slot) == 1;
    };
    const auto is_wanted = [&](std::size_t k) {
      return places_[at.first_out + k] == Place::buffer;
    };
    const auto share = [&](std::size_t k, std::size_t input) {
      const std::size_t slot = at.first_out + k, buffer = buffer_of[slot_of_[in[input]]];
      buffers[buffer].last = std::max(buffers[buffer].last, last[slot]);
      offsets_.push_back({static_cast<std::uint32_t>(slot), buffer, 0});
      buffer_of[slot] = buffer;
      is_own[slot] = is_placed[slot] = 1;
    };
    if (at.kind == Kind::tiles) {
      const std::vector<int>& chosen =
          tiles_[static_cast<std::size_t>(at.child)]->choose_inputs(is_wanted, gives);
      for (std::size_t k = 0; k < chosen.size(); ++k)
        if (chosen[k] >= 0) share(k, static_cast<std::size_t>(chosen[k]));
    } else if (at.kind == Kind::kernel && at.storage == OpStorage::own && works_in_place(*at.op) &&
               is_wanted(0) && gives(0, 0)) {
      share(0, 0);
    }
  };
  std::size_t begin = 0, end = 0;  // pipelined loops write all their outputs at the same time
  for (std::size_t i = 0; i < instructions_.size(); ++i) {
    const Instruction& at = instructions_[i];
    if (i >= end) begin = i, end = i + at.beside + 1;
    if (may_share) share_operands(i);
    for (std::uint32_t s = at.first_out; s < at.first_out + at.out_count; ++s) {
      if (places_[s] != Place::buffer || is_placed[s]) continue;
      PlannedBuffer buffer{slot_types_[s].bytes(), static_cast<int>(begin), last[s]};
      if (is_residual(at, s - at.first_out)) residuals.push_back(buffer);
      const SharedStacks* const shared = shared_stacks_of(s);
      if (!shared) {
        buffer_of[s] = buffers.size();
        is_own[s] = at.storage == OpStorage::own;
        add(buffer, std::array{SharedStack{s, 0}});
      } else if (const auto& [one, two] = *shared; s == one.slot) {
        buffer.bytes += one.offset + two.offset;
        buffer.last = std::max(last[one.slot], last[two.slot]);
        add(buffer, *shared);
      }
    }
  }
  residual_bytes_ = most_at_a_time(residuals);
  memory_bytes_ = place_buffers(buffers);
  for (OffsetOfSlot& at : offsets_) at.offset += buffers[at.buffer].offset;
  if (!before) return take_memory();
  before->residual_share_.give_back();
  place_values(take_plan_memory(memory_bytes_, std::move(before->memory_)));
}

/// Returns true if an output of an instruction is a residual stack of a loop.
bool Plan::is_residual(const Instruction& at, std::size_t output) const {
  const OpRecord& record = graph_->records[at.record];
  if (record.op != &loop_op) return false;
  const auto& attrs = get<LoopAttrs>(record.attrs.get());
  const LoopLeaf leaf = result_at(attrs, output);
  return leaf.is(LeafKind::stack) && attrs.stacks[leaf.index].memory_class() == MemoryClass::saved;
}

/// Sets the places of values in the plan's memory.
void Plan::place_values(PlanMemory memory) {
  memory_ = std::move(memory);
  residual_share_.take(residual_bytes_);
  for (const auto& [slot, buffer, offset] : offsets_) {
    own_data_[slot] = memory_.data.get() + offset;
    headers_[slot].block()->data = own_data_[slot];
  }
}

}  // namespace reel
