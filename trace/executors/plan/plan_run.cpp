// Running a plan: its instructions one after the other, pipelined loops beside each other.
#include <algorithm>
#include <optional>

#include "reel/core/graph/graph_builder.h"
#include "reel/core/op/bind.h"
#include "reel/core/op/check_results.h"
#include "reel/core/op/op_errors.h"
#include "reel/core/ops/control/effects.h"
#include "reel/core/ops/control/replay.h"
#include "reel/core/runtime/parallel.h"
#include "reel/trace/executors/plan/base/plan_views.h"
#include "reel/trace/executors/plan/cond_plan.h"
#include "reel/trace/executors/plan/loop_plan.h"
#include "reel/trace/executors/plan/plan.h"
#include "reel/trace/executors/plan/tiles/tile_program.h"
#include "reel/trace/executors/plan/wavefront.h"

namespace reel {

void Plan::run_untyped(Instruction& at, DimEnv& env) {
  const OpRecord& record = graph_->records[at.record];
  const Graph::Schedule& schedule = graph_->schedule();
  AttrsRef attrs = record.attrs;
  if (schedule.attrs_have_symbols[at.record]) attrs = attrs->resolve(env);
  Tensors made = bind_all(*at.op, inputs_of(at), std::move(attrs));
  const auto values = graph_->outputs_of(record);
  for (std::size_t k = 0; k < made.size(); ++k) {
    if (schedule.outputs_have_symbols[at.record]) {
      const TensorType& formal = graph_->types[values[k]];
      env.bind(formal, made[k].type());
      if (at.op->kernel_decides_types) made[k] = with_known_dims(std::move(made[k]), formal, env);
    }
    slots_[at.first_out + k] = std::move(made[k]);
  }
}

/// Allocates the outputs of a loop or branch that may outlive the run, if their types are known.
void Plan::make_blocks(const Instruction& at) {
  const auto values = graph_->outputs_of(graph_->records[at.record]);
  for (std::size_t k = 0; k < values.size(); ++k) {
    if (places_[at.first_out + k] != Place::block) continue;
    const ValueId v = values[k];
    const bool is_dense = types_.is_known[v] && !types_.types[v].is_list() &&
                          !is_spilled_output(graph_->records[at.record], k);
    const bool is_shared = shared_stacks_of(static_cast<std::uint32_t>(at.first_out + k));
    slots_[at.first_out + k] =
        is_dense && !is_shared ? Tensor(allocate_block(types_.types[v])) : Tensor();
  }
  make_shared_blocks(at);
}

/// Runs a loop together with the following loops that may run beside it.
void Plan::run_beside(std::size_t first) {
  std::vector<std::unique_ptr<LoopRun>> owners;
  std::vector<LoopRun*> runs;
  const std::size_t last = first + instructions_[first].beside;
  const auto loop_of = [&](const Instruction& at) -> LoopPlan& {
    return *loops_[static_cast<std::size_t>(at.child)];
  };
  for (std::size_t i = first; i <= last; ++i) {
    const Instruction& at = instructions_[i];
    make_blocks(at);
    owners.push_back(loop_of(at).begin(types_.attrs[at.record], inputs_of(at), outputs_of(at)));
    if (owners.back()) runs.push_back(owners.back().get());
  }
  // Row blocks wait for each other less than layers do.
  const bool are_cut = std::all_of(
      instructions_.begin() + static_cast<std::ptrdiff_t>(first),
      instructions_.begin() + static_cast<std::ptrdiff_t>(last) + 1, [&](const Instruction& at) {
        return loop_of(at).blocks_inside() >= static_cast<std::size_t>(threads());
      });
  if (runs.size() < owners.size() || are_cut) {
    for (std::size_t i = first; i <= last; ++i)
      loop_of(instructions_[i])
          .run(types_.attrs[instructions_[i].record], inputs_of(instructions_[i]),
               outputs_of(instructions_[i]));
    return;
  }
  for (LoopRun* run : runs) run->start();
  run_wavefront(runs);
  for (LoopRun* run : runs) run->finish();
}

/// Returns true if the kernel that makes a block of this type will take the operand's memory
/// (take_or_allocate). The operand is an input that the caller moved in, or was made by an
/// instruction behind first_safe_.
bool Plan::gives_memory(const OpInput& operand, const TensorType& type) const {
  const auto slot = static_cast<std::size_t>(operand.tensor - slots_.data());
  if (!operand.temporary || slot_types_[slot] != type) return false;
  const TensorBlock* const block = operand.tensor->block();
  if (!block) return places_[slot] == Place::block;  // not allocated yet
  return block->type == type && block->kind == BlockKind::dense && operand.tensor->ref().unique() &&
         !block->attachment;
}

/// Allocates all blocks that instructions from first_safe_ on need, if an instruction will
/// overwrite an input: from then on nothing may fail.
void Plan::make_blocks_before_writing_over() {
  const auto type_of = [&](const OpInput& operand) -> const TensorType& {
    return slot_types_[static_cast<std::size_t>(operand.tensor - slots_.data())];
  };
  if (std::none_of(donors_.begin(), donors_.end(), [&](std::uint32_t at) {
        return gives_memory(operands_[at], type_of(operands_[at]));
      }))
    return;
  for (std::size_t i = first_safe_; i < instructions_.size(); ++i) {
    Instruction& at = instructions_[i];
    if (at.kind != Kind::blocks && at.kind != Kind::tiles) continue;
    const auto is_wanted = [&](std::size_t k) { return places_[at.first_out + k] == Place::block; };
    const auto in = inputs_of(at);
    const auto gives = [&](std::size_t input, std::size_t k) {
      return gives_memory(in[input], slot_types_[at.first_out + k]);
    };
    TileProgram* const tiles =
        at.kind == Kind::tiles ? tiles_[static_cast<std::size_t>(at.child)].get() : nullptr;
    // Values that exist already keep their reference count until this instruction: none that
    // follows makes a view of one.
    at.updates = tiles && tiles->may_update([&](std::size_t input, std::size_t k) {
      return is_wanted(k) && in[input].tensor->is_defined() && gives(input, k);
    });
    if (at.updates) continue;
    // Makes the same choice as the instruction does when it runs.
    const std::vector<int>* const of_tiles =
        tiles ? &tiles->choose_inputs(is_wanted, gives) : nullptr;
    std::vector<std::uint8_t> has_given(of_tiles ? 0 : in.size());
    const auto has_giver = [&](std::size_t k) {
      if (of_tiles) return (*of_tiles)[k] >= 0;
      for (std::size_t input = 0; input < reusable_[i]; ++input)
        if (!has_given[input] && gives(input, k)) return (has_given[input] = 1) != 0;
      return false;
    };
    for (std::size_t k = 0; k < at.out_count; ++k)
      if (is_wanted(k) && !has_giver(k))
        made_before_[at.first_out + k] = Tensor(allocate_block(slot_types_[at.first_out + k]));
  }
}

void Plan::copy_small_inputs() {
  for (auto& [slot, copy] : copied_) {
    const Tensor& input = slots_[slot];
    if (input.block()->kind != BlockKind::dense || !input.ref().unique()) {
      copy = input;  // other references exist: it is not overwritten
      continue;
    }
    copy = Tensor(allocate_block(input.type()));
    copy_elements(copy.data<void>(), input);
  }
}

/// Runs before instructions from which on inputs may be overwritten.
void Plan::prepare_updates(std::size_t instruction) {
  if (instruction == first_copied_ && !copied_.empty()) copy_small_inputs();
  if (instruction == first_safe_ && !donors_.empty()) make_blocks_before_writing_over();
}

Tensor Plan::input_before(std::size_t i) {
  for (auto& [slot, copy] : copied_)
    if (slot == i && !slots_[i].is_defined()) return std::move(copy);
  return std::move(slots_[i]);
}

/// Runs fn, which computes an instruction. Throws as as_op(), but looks up the source line only for
/// an error.
template <class Fn>
void Plan::run_op(const Instruction& at, const Fn& fn) {
  try {
    fn();
  } catch (...) {
    rethrow_of(*at.op, graph_->records[at.record].source);
  }
}

template <bool is_counted, bool is_checked>
void Plan::run_all() {
  std::optional<DimEnv> env;
  if (has_untyped_) env = types_.env;
  std::int64_t begin = 0, before = 0;
  if constexpr (is_counted) {
    context_.profile->runs += 1;
    begin = before = nanoseconds_now();
  }
  std::uint32_t done = 0;  // loops that ran beside the last one
  for (Instruction& at : instructions_) {
    if (at.has_prelude) prepare_updates(static_cast<std::size_t>(&at - instructions_.data()));
    const auto out = outputs_of(at);
    const auto args_of = [&](bool may_reuse) {
      return KernelArgs{*at.op,
                        at.attrs,
                        inputs_of(at),
                        may_reuse,
                        {slot_types_.data() + at.first_out, at.out_count},
                        out};
    };
    switch (done ? Kind::nothing : at.kind) {
      case Kind::kernel: {
        if (at.storage == OpStorage::input)
          for (std::size_t s = at.first_out; s < at.first_out + at.out_count; ++s)
            slots_[s].block()->data = own_data_[s];
        KernelArgs args = args_of(false);
        args.adds = at.adds;
        run_op(at, [&] { at.op->kernel(args); });
        break;
      }
      case Kind::flat:
        flats_[static_cast<std::size_t>(at.child)].run(inputs_of(at), out[0]);
        break;
      case Kind::blocks: {
        for (Tensor& tensor : out) tensor = taken_block(tensor);
        KernelArgs args = args_of(!is_checked && (out.empty() || !out[0].is_defined()));
        run_op(at, [&] { at.op->kernel(args); });
        break;
      }
      case Kind::untyped:
        run_op(at, [&] { run_untyped(at, *env); });
        break;
      case Kind::tiles:
        for (std::size_t s = at.first_out; s < at.first_out + at.out_count; ++s)
          if (places_[s] == Place::block) slots_[s] = taken_block(slots_[s]);
        run_op(at, [&] {
          tiles_[static_cast<std::size_t>(at.child)]->run(
              inputs_of(at), {slot_types_.data() + at.first_out, at.out_count}, out,
              std::exchange(at.updates, false));
        });
        break;
      case Kind::loop:
      case Kind::cond: {
        const OpRecord& record = graph_->records[at.record];
        AttrsRef attrs = types_.attrs[at.record];
        if (!attrs) attrs = record.attrs->resolve(*env);
        if (!is_counted && at.beside) {
          run_beside(static_cast<std::size_t>(&at - instructions_.data()));
          done = at.beside + 1;
          break;
        }
        make_blocks(at);
        if (at.kind == Kind::loop)
          loops_[static_cast<std::size_t>(at.child)]->run(attrs, inputs_of(at), out);
        else
          conds_[static_cast<std::size_t>(at.child)]->run(attrs, inputs_of(at), out);
        if (has_untyped_ && graph_->schedule().outputs_have_symbols[at.record]) {
          const auto values = graph_->outputs_of(record);
          for (std::size_t k = 0; k < out.size(); ++k) {
            if (types_.is_known[values[k]]) continue;
            env->bind(graph_->types[values[k]], out[k].type());
            out[k] = with_known_dims(std::move(out[k]), graph_->types[values[k]], *env);
          }
        }
        break;
      }
      case Kind::nothing:
        break;
    }
    done -= done > 0;
    if constexpr (is_checked) {
      const bool computes = at.kind == Kind::kernel || at.kind == Kind::flat ||
                            at.kind == Kind::blocks || at.kind == Kind::tiles;
      if (computes) run_op(at, [&] { check_results(*at.op, inputs_of(at), out); });
    }
    for (std::uint32_t i = 0; i < at.free_count; ++i) slots_[freed_[at.first_free + i]] = Tensor();
    if constexpr (is_counted) {
      const std::int64_t now = nanoseconds_now();
      Profile::Count& count = context_.profile->records[at.record];
      count.calls += 1;
      count.nanoseconds += now - before;
      if (at.kind != Kind::nothing)
        context_.profile->note({at.record, thread_number(), before, now});
      before = now;
    }
  }
  if constexpr (is_counted)
    context_.profile->note({Profile::Event::kWhole, thread_number(), begin, before});
}
template void Plan::run_all<true, false>();
template void Plan::run_all<false, false>();
template void Plan::run_all<false, true>();

Tensor Plan::take_output(std::size_t k) {
  return outputs_[k].may_be_moved ? owned(std::move(output(k))) : owned(output(k));
}

std::size_t Plan::blocks_of_loops() const {
  std::size_t most = 0;
  for (const auto& loop : loops_) most = std::max(most, loop->blocks());
  return most;
}

void Plan::release() {
  for (std::size_t s = 0; s < slots_.size(); ++s)
    if (places_[s] == Place::block || places_[s] == Place::given) slots_[s] = Tensor();
  for (auto& [slot, copy] : copied_) copy = Tensor();
}

}  // namespace reel
