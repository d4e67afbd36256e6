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

/// Runs a kernel whose outputs are blocks that were allocated in advance, or that it allocates.
void Plan::run_with_blocks(const Instruction& at, bool may_reuse) {
  const auto out = outputs_of(at);
  for (Tensor& tensor : out) tensor = taken_block(tensor);
  const bool makes = out.empty() || !out[0].is_defined();
  KernelArgs args{*at.op, at.attrs, inputs_of(at), may_reuse && makes, output_types_of(at), out};
  const std::size_t changed = changed_.size();
  if (at.saves_rows) run_op(at, [&] { save_rows(at); });
  run_op(at, [&] { at.op->kernel(args); });
  if (changed_.size() > changed) changed_.back().table = out[0];
}

void Plan::run_tiles(Instruction& at, std::span<Tensor> out) {
  for (std::size_t s = at.first_out; s < at.first_out + at.out_count; ++s)
    if (places_[s] == Place::block) slots_[s] = taken_block(slots_[s]);
  run_op(at, [&] {
    tiles_[static_cast<std::size_t>(at.child)]->run(inputs_of(at), output_types_of(at), out,
                                                    std::exchange(at.updates, false));
  });
}

/// Runs a loop or a branch. env: empty if the types of all values are known.
void Plan::run_nested(const Instruction& at, std::optional<DimEnv>& env) {
  const OpRecord& record = graph_->records[at.record];
  const auto out = outputs_of(at);
  AttrsRef attrs = types_.attrs[at.record];
  if (!attrs) attrs = record.attrs->resolve(*env);
  make_blocks(at);
  if (at.kind == Kind::loop)
    loops_[static_cast<std::size_t>(at.child)]->run(attrs, inputs_of(at), out);
  else
    conds_[static_cast<std::size_t>(at.child)]->run(attrs, inputs_of(at), out);
  if (!has_untyped_ || !graph_->schedule().outputs_have_symbols[at.record]) return;
  const auto values = graph_->outputs_of(record);
  for (std::size_t k = 0; k < out.size(); ++k) {
    if (types_.is_known[values[k]]) continue;
    env->bind(graph_->types[values[k]], out[k].type());
    out[k] = with_known_dims(std::move(out[k]), graph_->types[values[k]], *env);
  }
}

/// Adds the time since `before` to the profile. Returns the present time.
std::int64_t Plan::count(const Instruction& at, std::int64_t before) {
  const std::int64_t now = nanoseconds_now();
  Profile::Count& entry = context_.profile->records[at.record];
  entry.calls += 1;
  entry.nanoseconds += now - before;
  if (at.kind != Kind::nothing) context_.profile->note({at.record, thread_number(), before, now});
  return now;
}

inline void Plan::run_flat(const Instruction& at) {
  flats_[static_cast<std::size_t>(at.child)].run(inputs_of(at), slots_[at.first_out]);
}

inline void Plan::run_product(const Instruction& at) {
  const OpInput* const in = &operands_[at.first_in];
  products_[static_cast<std::size_t>(at.child)].run(in[0].tensor->block()->data,
                                                    in[1].tensor->block()->data,
                                                    slots_[at.first_out].block()->data, at.adds);
}

/// Runs a plan whose instructions are all is_short(). In loops over a few numbers, the other cases
/// of run_all() would take longer than the work.
void Plan::run_short_ops() {
  for (const Instruction& at : instructions_) {
    if (at.kind == Kind::flat)
      run_flat(at);
    else if (at.kind == Kind::tiles)
      chains_[static_cast<std::size_t>(at.chain)].run();
    else if (at.kind == Kind::product)
      run_product(at);
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
    switch (done ? Kind::nothing : at.kind) {
      case Kind::kernel: {
        if (at.storage == OpStorage::input)
          for (std::size_t s = at.first_out; s < at.first_out + at.out_count; ++s)
            slots_[s].block()->data = own_data_[s];
        KernelArgs args{*at.op, at.attrs, inputs_of(at), false, output_types_of(at), out};
        args.adds = at.adds;
        run_op(at, [&] { at.op->kernel(args); });
        break;
      }
      case Kind::flat:
        run_flat(at);
        break;
      case Kind::product:
        run_product(at);
        break;
      case Kind::blocks:
        run_with_blocks(at, !is_checked);
        break;
      case Kind::untyped:
        run_op(at, [&] { run_untyped(at, *env); });
        break;
      case Kind::tiles:
        if (at.chain >= 0)
          chains_[static_cast<std::size_t>(at.chain)].run();
        else
          run_tiles(at, out);
        break;
      case Kind::loop:
      case Kind::cond:
        if (!is_counted && at.beside) {
          run_beside(static_cast<std::size_t>(&at - instructions_.data()));
          done = at.beside + 1;
        } else {
          run_nested(at, env);
        }
        break;
      case Kind::nothing:
        break;
    }
    done -= done > 0;
    if constexpr (is_checked) {
      const bool computes = at.kind == Kind::kernel || at.kind == Kind::flat ||
                            at.kind == Kind::product || at.kind == Kind::blocks ||
                            at.kind == Kind::tiles;
      if (computes) run_op(at, [&] { check_results(*at.op, inputs_of(at), out); });
    }
    for (std::uint32_t i = 0; i < at.free_count; ++i) slots_[freed_[at.first_free + i]] = Tensor();
    if constexpr (is_counted) before = count(at, before);
  }
  changed_.clear();
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
  changed_.clear();
}

}  // namespace reel
