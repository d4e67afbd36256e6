#include "reel/trace/executors/plan/explain/explain_residuals.h"

#include <algorithm>
#include <optional>
#include <span>

#include "reel/core/base/str.h"
#include "reel/core/ops/control/recompute.h"
#include "reel/trace/executors/checkpoints/policy_costs.h"
#include "reel/trace/executors/loop/loop_types.h"
#include "reel/trace/executors/plan/base/explain_format.h"

namespace reel {
namespace {

using Instruction = PlanView::Instruction;

/// Returns the number of time steps that a loop runs at a time.
std::int64_t unit_of(const LoopAttrs& attrs, const LoopPlan& loop) {
  return attrs.chunking.over_chunks && PlanView::is_planned(loop)
             ? PlanView::whole(loop).chunks.size
             : 1;
}

/// Returns the number of time steps that the loop that takes v as its slices runs at a time.
std::int64_t unit_of_reader(const Plan& plan, ValueId v) {
  std::int64_t most = 1;
  for (const Instruction& at : PlanView::instructions(plan)) {
    if (at.kind != PlanView::Kind::loop) continue;
    const auto in = plan.graph().inputs_of(plan.graph().records[at.record]);
    if (std::find(in.begin(), in.end(), v) != in.end())
      most = std::max(most, unit_of(PlanView::attrs_of(plan, at), PlanView::loop_of(plan, at)));
  }
  return most;
}

/// Returns the record that makes the first of the values made by `op`; null if there is none.
const OpRecord* maker_of_any(const Plan& plan, std::span<const ValueId> values, const Op& op) {
  for (const ValueId v : values)
    for (const OpRecord& record : plan.graph().records) {
      const auto out = plan.graph().outputs_of(record);
      if (record.op == &op && std::find(out.begin(), out.end(), v) != out.end()) return &record;
    }
  return nullptr;
}

/// Writes the lines of one loop.
class ResidualText {
 public:
  ResidualText(const Plan& plan, const Instruction& at)
      : plan_(plan),
        at_(at),
        attrs_(PlanView::attrs_of(plan, at)),
        loop_(PlanView::loop_of(plan, at)),
        record_(plan.graph().records[at.record]) {}

  std::vector<std::string> write() {
    write_residuals();
    write_shared();
    if (attrs_.takes_checkpoints()) write_checkpoints();
    if (attrs_.policy.swaps) write_file();
    if (attrs_.has_windows()) {
      line("not saved: recomputed, or read from the file");
      write_runs();
    }
    return std::move(lines_);
  }

 private:
  template <class... Text>
  void line(const Text&... text) {
    lines_.push_back(str(text...));
  }

  void write_residuals() {
    const std::vector<TensorType> residuals = stacks_of(plan_, at_, true);
    if (residuals.empty()) return;
    std::int64_t step = 0;
    bool is_known = true, knows_steps = true;
    for (const TensorType& type : residuals) {
      is_known = is_known && !type.is_list() && slice_type(type).is_known();
      knows_steps = knows_steps && is_known && type.is_known();
      if (is_known) step += dense_bytes(slice_type(type));
    }
    line("residuals: ", counted(std::ssize(residuals), "stack"), ", ",
         is_known ? bytes_text(step) : std::string("an unknown number of bytes"),
         " per iteration, ",
         knows_steps ? bytes_text(dense_bytes(residuals))
                     : std::string("an unknown number of bytes"),
         " in all: ", types_text(residuals));
  }

  void write_shared() {
    const auto values = results_of(attrs_, plan_.graph().outputs_of(record_)).stacks;
    const auto shared = std::count_if(values.begin(), values.end(), [&](ValueId v) {
      return PlanView::is_shared_stack(plan_, v);
    });
    if (shared) line("shared: ", counted(shared / 2, "pair"), " of stacks of the same states");
  }

  void write_checkpoints() {
    std::vector<TensorType> state;
    const auto terms = body_outputs(attrs_).stacks;
    for (std::size_t j = 0; j < terms.size(); ++j)
      if (attrs_.stacks[j].role == StackRole::checkpoint_state)
        state.push_back(attrs_.body.graph->types[terms[j]]);
    line("checkpoints: ", types_text(state), ", ",
         attrs_.policy.steps ? str("before every ", counted(attrs_.policy.steps, "iteration"))
                             : str("as many as fit into half of ", bytes_text(attrs_.policy.bytes)),
         "; the gradient recomputes the iterations between them");
  }

  void write_file() {
    if (attrs_.takes_checkpoints() && !uses_file())
      line("in a file: nothing, the checkpoints of this budget are smaller than a file's window");
    else if (attrs_.keeps_few_steps())
      line("in a file: residuals and checkpoints except ", bytes_text(attrs_.policy.spill_window),
           in_memory_text());
    else if (attrs_.takes_checkpoints() || !stacks_of(plan_, at_, true).empty())
      line("in a file: its own swap_memory is ignored: it is in another loop or in a branch, ",
           "and its residuals are in a file if the outermost loop swaps");
  }
  /// Returns true if checkpoints lie in a file, or if only a run can tell.
  bool uses_file() const {
    const std::vector<TensorType> in = PlanView::types(plan_, plan_.graph().inputs_of(record_));
    std::vector<std::int64_t> carries;
    for (const TensorType& carry : operands_of(attrs_, in).carries) {
      if (carry.is_list() || !carry.is_known()) return true;
      carries.push_back(carry.bytes());
    }
    return FileOfCheckpoints(attrs_, std::move(carries)).is_used();
  }
  /// Returns the bytes of spilled residuals in memory as text if they exceed the window.
  std::string in_memory_text() const {
    std::int64_t in_memory = 0;
    const auto steps = steps_of(attrs_, PlanView::types(plan_, plan_.graph().inputs_of(record_)));
    const auto stacks = results_of(attrs_, plan_.graph().outputs_of(record_)).stacks;
    for (std::size_t j = 0; j < stacks.size(); ++j) {
      if (!attrs_.stacks[j].is_in_file()) continue;
      const TensorType& all = PlanView::types(plan_).types[stacks[j]];
      const TensorType step = all.is_list() ? all.element() : slice_type(all);
      if (step.is_list() || !step.is_known()) return {};
      const bool is_of_few = attrs_.stacks[j].is_checkpoint();
      in_memory += spilled_bytes_in_memory(
          attrs_, step.bytes(), is_of_few ? -1 : steps.value_or(-1),
          is_of_few ? 1 : unit_of(attrs_, loop_), is_of_few ? 1 : unit_of_reader(plan_, stacks[j]));
    }
    return str(", in memory with transfers at most ", bytes_text(in_memory));
  }

  /// Writes how often each time step of the forward loop runs in all, if residuals are recomputed.
  void write_runs() {
    const OpRecord* const recomputation =
        maker_of_any(plan_, plan_.graph().inputs_of(record_), recompute_op);
    if (!recomputation) return;
    const auto& attrs = get<RecomputeAttrs>(recomputation->attrs.get());
    const auto in = plan_.graph().inputs_of(*recomputation);
    const OpRecord* const forwards = maker_of_any(plan_, in.last(1), loop_op);
    std::int64_t unit = 1;
    for (const Instruction& at : PlanView::instructions(plan_))
      if (at.kind == PlanView::Kind::loop && &plan_.graph().records[at.record] == forwards)
        unit = unit_of(PlanView::attrs_of(plan_, at), PlanView::loop_of(plan_, at));
    const std::vector<TensorType> types = PlanView::types(plan_, in);
    const PolicyCosts costs =
        policy_costs(attrs, types, PlanView::types(plan_, plan_.graph().outputs_of(*recomputation)),
                     steps_of(attrs.saving(), types), unit, unit_of(attrs_, loop_));
    if (costs.runs >= 0)
      line("recomputed: ", counted(costs.steps, "iteration"), " in memory at a time, ",
           bytes_text(costs.bytes), "; each iteration runs ", runs_text(costs.runs));
  }

  const Plan& plan_;
  const Instruction& at_;
  const LoopAttrs& attrs_;
  const LoopPlan& loop_;
  const OpRecord& record_;
  std::vector<std::string> lines_;
};

}  // namespace

std::vector<TensorType> stacks_of(const Plan& plan, const Instruction& at, bool only_residuals) {
  const LoopAttrs& attrs = PlanView::attrs_of(plan, at);
  const auto values =
      results_of(attrs, plan.graph().outputs_of(plan.graph().records[at.record])).stacks;
  std::vector<TensorType> result;
  for (std::size_t j = 0; j < values.size(); ++j)
    if (!only_residuals || attrs.stacks[j].memory_class() == MemoryClass::saved)
      result.push_back(PlanView::types(plan).types[values[j]]);
  return result;
}

std::vector<std::string> lines_of_residuals(const Plan& plan, const Instruction& at) {
  return ResidualText(plan, at).write();
}

}  // namespace reel
