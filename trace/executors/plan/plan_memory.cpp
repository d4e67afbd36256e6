// Where the values of a plan lie in its memory.
#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "reel/core/op/facts.h"
#include "reel/core/ops/loop/loop.h"
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

/// The buffers of a plan's values. A value is live from the instruction that makes it to the last
/// one that reads it or a view of it.
class Plan::Placement {
 public:
  explicit Placement(Plan& plan)
      : plan_(plan),
        uses_(plan.last_uses()),
        last_(plan.context_.passes.reuse_memory
                  ? uses_.of_value
                  : std::vector<int>(plan.slots_.size(),
                                     static_cast<int>(plan.instructions_.size()))),
        buffer_of_(plan.slots_.size()),
        is_own_(plan.slots_.size()),
        is_placed_(plan.slots_.size()) {}

  /// Finds the buffer of each value. Pipelined loops write all their outputs at the same time.
  void find_buffers() {
    std::size_t begin = 0, end = 0;
    for (std::size_t i = 0; i < plan_.instructions_.size(); ++i) {
      const Instruction& at = plan_.instructions_[i];
      if (i >= end) begin = i, end = i + at.beside + 1;
      if (may_share()) share_operands(i);
      for (std::uint32_t s = at.first_out; s < at.first_out + at.out_count; ++s)
        if (plan_.places_[s] == Place::buffer && !is_placed_[s])
          add_value(at, s, static_cast<int>(begin));
    }
  }
  std::vector<PlannedBuffer>& buffers() { return buffers_; }
  const std::vector<PlannedBuffer>& residuals() const { return residuals_; }

 private:
  /// Returns true if outputs of an instruction may lie where an operand does that nothing reads
  /// afterwards: in the plan of a call. Bodies run many iterations at a time; a check of results
  /// shows the operands.
  bool may_share() const {
    return plan_.owner_ == Inputs::given && !plan_.context_.is_checked &&
           plan_.context_.passes.reuse_memory;
  }

  std::span<const ValueId> inputs_of(const Instruction& at) const {
    return plan_.graph_->inputs_of(plan_.graph_->records[at.record]);
  }

  void share_operands(std::size_t i) {
    const Instruction& at = plan_.instructions_[i];
    const auto gives = [&](std::size_t input, std::size_t k) { return gives_place(i, input, k); };
    const auto is_wanted = [&](std::size_t k) {
      return plan_.places_[at.first_out + k] == Place::buffer;
    };
    if (at.kind == Kind::tiles) {
      const std::vector<int>& chosen =
          plan_.tiles_[static_cast<std::size_t>(at.child)]->choose_inputs(is_wanted, gives);
      for (std::size_t k = 0; k < chosen.size(); ++k)
        if (chosen[k] >= 0) share(at, k, static_cast<std::size_t>(chosen[k]));
    } else if (at.kind == Kind::kernel && at.storage == OpStorage::own &&
               may_lie_on_input(*at.op) && is_wanted(0) && gives(0, 0)) {
      share(at, 0, 0);
    }
  }

  /// Returns true if output k of instruction i may lie where this input does.
  bool gives_place(std::size_t i, std::size_t input, std::size_t k) const {
    const Instruction& at = plan_.instructions_[i];
    const auto in = inputs_of(at);
    const std::uint32_t slot = plan_.slot_of_[in[input]];
    const auto here = static_cast<int>(i);
    const auto has_slot = [&](ValueId v) { return plan_.slot_of_[v] == slot; };
    return is_own_[slot] && uses_.of_value[slot] == here && uses_.of_views[slot] < here &&
           plan_.slot_types_[slot] == plan_.slot_types_[at.first_out + k] &&
           std::ranges::count_if(in, has_slot) == 1;
  }

  void share(const Instruction& at, std::size_t k, std::size_t input) {
    const std::size_t slot = at.first_out + k,
                      buffer = buffer_of_[plan_.slot_of_[inputs_of(at)[input]]];
    buffers_[buffer].last = std::max(buffers_[buffer].last, last_[slot]);
    plan_.offsets_.push_back({static_cast<std::uint32_t>(slot), buffer, 0});
    buffer_of_[slot] = buffer;
    is_own_[slot] = is_placed_[slot] = 1;
  }

  /// Adds the buffer of an output, or of two stacks that share one. begin: the first instruction
  /// that may write it.
  void add_value(const Instruction& at, std::uint32_t s, int begin) {
    PlannedBuffer buffer{plan_.slot_types_[s].bytes(), begin, last_[s]};
    if (plan_.is_residual(at, s - at.first_out)) residuals_.push_back(buffer);
    const SharedStacks* const shared = plan_.shared_stacks_of(s);
    if (!shared) {
      buffer_of_[s] = buffers_.size();
      is_own_[s] = at.storage == OpStorage::own;
      add(buffer, std::array{SharedStack{s, 0}});
    } else if (const auto& [one, two] = *shared; s == one.slot) {
      buffer.bytes += one.offset + two.offset;
      buffer.last = std::max(last_[one.slot], last_[two.slot]);
      add(buffer, *shared);
    }
  }
  void add(const PlannedBuffer& buffer, std::span<const SharedStack> stacks) {
    for (const auto& [slot, offset] : stacks)
      plan_.offsets_.push_back({slot, buffers_.size(), offset});
    buffers_.push_back(buffer);
  }

  Plan& plan_;
  const LastUses uses_;
  const std::vector<int> last_;  ///< by slot: the last instruction for which its buffer stays
  std::vector<PlannedBuffer> buffers_, residuals_;
  std::vector<std::size_t> buffer_of_;            ///< by slot
  std::vector<std::uint8_t> is_own_, is_placed_;  ///< by slot; is_placed_: where an operand was
};

/// before: null, or a plan that gives its memory.
void Plan::place_in_memory(Plan* before) {
  Placement placement(*this);
  placement.find_buffers();
  residual_bytes_ = most_at_a_time(placement.residuals());
  memory_bytes_ = place_buffers(placement.buffers());
  for (OffsetOfSlot& at : offsets_) at.offset += placement.buffers()[at.buffer].offset;
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
