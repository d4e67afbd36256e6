// trace/executors/plan/explain/plan_view.h — PlanView: read access to plans for explain().
#pragma once

#include <algorithm>
#include <vector>

#include "reel/trace/executors/plan/cond_plan.h"
#include "reel/trace/executors/plan/loop_plan.h"
#include "reel/trace/executors/plan/plan.h"

namespace reel {

/// Reads private members of Plan, LoopPlan, LoopBlocks and CondPlan.
class PlanView {
 public:
  using Instruction = Plan::Instruction;
  using Kind = Plan::Kind;

  static const std::vector<Instruction>& instructions(const Plan& plan) {
    return plan.instructions_;
  }
  static const PlannedTypes& types(const Plan& plan) { return plan.types_; }
  static const PlanContext& context(const Plan& plan) { return plan.context_; }
  static std::int64_t memory_bytes(const Plan& plan) { return plan.memory_bytes_; }

  /// A value that an instruction makes, or an input of the plan.
  struct Slot {
    const TensorType& type;
    Place place;
    bool is_output;
  };
  static std::size_t slot_count(const Plan& plan) { return plan.slots_.size(); }
  static Slot slot(const Plan& plan, std::size_t s) {
    return {plan.slot_types_[s], plan.places_[s], plan.outputs_of_slot_[s] >= 0};
  }

  /// Returns the number of pairs of stacks that share memory.
  static std::size_t shared_stacks(const Plan& plan) { return plan.shared_stacks_.size(); }
  /// Returns true if a value shares its memory with another stack of the loop that makes it.
  static bool is_shared_stack(const Plan& plan, ValueId value) {
    return plan.shared_stacks_of(plan.slot_of_[value]);
  }

  /// Last uses that decide whether an input may be overwritten.
  struct LastUses {
    std::vector<int> of_input;  ///< the last instruction that reads it or a view of it; -1: none
    std::size_t first_safe;     ///< from this instruction on none can fail
  };
  static LastUses last_uses(const Plan& plan) {
    return {plan.last_uses().of_value, plan.first_that_cannot_fail()};
  }

  static const LoopPlan& loop_of(const Plan& plan, const Instruction& at) {
    return *plan.loops_[static_cast<std::size_t>(at.child)];
  }
  static const CondPlan& cond_of(const Plan& plan, const Instruction& at) {
    return *plan.conds_[static_cast<std::size_t>(at.child)];
  }
  static const LoopAttrs& attrs_of(const Plan& plan, const Instruction& at) {
    const AttrsRef& resolved = plan.types_.attrs[at.record];
    return get<LoopAttrs>((resolved ? resolved : plan.graph_->records[at.record].attrs).get());
  }
  static std::vector<TensorType> types(const Plan& plan, std::span<const ValueId> values) {
    std::vector<TensorType> result;
    for (const ValueId v : values) result.push_back(plan.types_.types[v]);
    return result;
  }

  // Loops.
  static bool is_planned(const LoopPlan& loop) {
    return loop.attrs_ && loop.is_planned_ && shown(loop).body;  // no body: memory ran out
  }
  static const AttrsRef& attrs(const LoopPlan& loop) { return loop.attrs_; }
  static const std::vector<TensorType>& input_types(const LoopPlan& loop) {
    return loop.input_types_;
  }
  /// Returns the whole loop, which has no plan if only blocks or batches run.
  static const PlannedLoop& whole(const LoopPlan& loop) { return loop.whole_; }
  /// Calls fn for each form of the loop that may hold memory: the whole, row blocks, blocks that
  /// run as one, and the sizes of batches, with those of batches that this call does not need.
  template <class Fn>
  static void each_planned(const LoopPlan& loop, const Fn& fn) {
    fn(loop.whole_);
    for (const auto& block : loop.blocks_.blocks_)
      if (block) fn(*block);
    loop.blocks_.joined_.each_loop(fn);
    for (const auto* const batches : {&loop.blocks_.batches_, &loop.blocks_.spare_batches_})
      for (const ShrinkingBlock& batch : *batches) batch.each_loop(fn);
  }
  /// Calls fn for each plan of a loop's body and condition.
  template <class Fn>
  static void each_plan(const PlannedLoop& loop, const Fn& fn) {
    for (const SubPlan* const sub : {&loop.body, &loop.cond, &loop.rest, &loop.finished})
      if (*sub) fn(**sub);
  }
  static const std::vector<std::unique_ptr<PlannedLoop>>& blocks(const LoopPlan& loop) {
    return loop.blocks_.blocks_;
  }
  /// Returns the bytes of the sums of row blocks, and of those that run as one.
  static std::int64_t sum_bytes(const LoopPlan& loop) { return loop.blocks_.sum_bytes(); }
  static bool runs_joined(const LoopPlan& loop) { return loop.blocks_.runs_joined(); }
  /// Returns the number of batches that shrink, several at a time on threads; 0 if there are none.
  static std::size_t batches(const LoopPlan& loop) {
    return runs_joined(loop) ? loop.blocks_.batches_.size() : 0;
  }
  /// Returns the loop that runs: the whole, or the first of the row blocks or batches, which are
  /// alike. If blocks run as one, returns the whole, which has the same records.
  static const PlannedLoop& shown(const LoopPlan& loop) {
    const LoopBlocks& cut = loop.blocks_;
    if (cut.is_joined_ && !cut.batches_.empty()) return cut.batches_[0].largest();
    const bool has_block = !cut.blocks_.empty() && cut.blocks_[0];
    return has_block && !runs_joined(loop) ? *cut.blocks_[0] : whole(loop);
  }
  static const SubPlan& branch(const CondPlan& cond, std::size_t b) { return cond.branches_[b]; }
};

}  // namespace reel
