#include "reel/trace/executors/plan/plan.h"

#include <algorithm>

#include "reel/core/op/facts.h"
#include "reel/core/ops/control/cond.h"
#include "reel/core/ops/control/effects.h"
#include "reel/core/ops/control/fused.h"
#include "reel/core/ops/loop/loop.h"
#include "reel/trace/executors/plan/base/plan_views.h"
#include "reel/trace/executors/plan/cond_plan.h"
#include "reel/trace/executors/plan/loop_plan.h"
#include "reel/trace/executors/plan/tiles/tile_program.h"
#include "reel/trace/passes/loop_structure/group_pipelined_loops.h"

namespace reel {

Plan::Plan(const Graph& graph, std::span<const TensorType> inputs, const DimEnv& env,
           const std::vector<Outputs>& outputs, Inputs owner, const PlanContext& context,
           Plan* before)
    : graph_(&graph), owner_(owner), context_(context), types_(plan_types(*graph_, inputs, env)) {
  make_instructions(outputs, before);
  choose_places(outputs);
  find_shared_stacks();
  find_adders();
  make_headers();
  place_in_memory(before);
  find_short_ops();
  compute_constants();
  if (Profile* profile = context.profile)
    profile->records.resize(std::max(profile->records.size(), graph.records.size()));
}

Plan::~Plan() = default;

/// Sets up slots, operands and kinds. before: null, or a plan for other sizes.
void Plan::make_instructions(const std::vector<Outputs>& outputs, Plan* before) {
  const Graph& graph = *graph_;
  slot_of_.assign(graph.types.size(), kNoSlot);
  for (const ValueId v : graph.inputs) add_slot(v);
  Before from{before, std::vector<std::int32_t>(before ? before->tiles_.size() : 0, -1)};
  for (std::size_t r = 0; r < graph.records.size(); ++r)
    instructions_.push_back(make_instruction(r, from));
  const std::size_t slots = slot_types_.size();
  slots_.resize(slots);
  headers_.resize(slots);
  own_data_.resize(slots);
  outputs_of_slot_.assign(slots, -1);
  for (std::size_t k = outputs.size(); k-- > 0;)
    outputs_of_slot_[slot_of_[graph.outputs[k]]] = static_cast<int>(k);
  for (const Instruction& at : instructions_) {
    has_untyped_ |= at.kind == Kind::untyped;
    if (at.kind == Kind::loop || at.kind == Kind::cond) has_untyped_ |= !at.attrs;
  }
  find_loops_beside();
}

void Plan::add_slot(ValueId v) {
  slot_of_[v] = static_cast<std::uint32_t>(slot_types_.size());
  slot_types_.push_back(types_.types[v]);
}

/// Returns the instruction of a record, and adds slots for its outputs.
Plan::Instruction Plan::make_instruction(std::size_t r, Before& before) {
  const OpRecord& record = graph_->records[r];
  Instruction at{};
  at.op = record.op;
  at.attrs = types_.attrs[r].get();
  at.record = static_cast<std::uint32_t>(r);
  at.first_in = record.first;  // as in the graph, until slots have their final addresses
  at.in_count = record.input_count;
  at.storage = storage_of(r);
  at.first_out = static_cast<std::uint32_t>(slot_types_.size());
  at.out_count = record.output_count;
  for (const ValueId v : graph_->outputs_of(record)) add_slot(v);
  at.kind = kind_of(r);
  if (at.kind == Kind::loop) at.child = add_child(r, at.kind, &Plan::loops_, before.plan);
  if (at.kind == Kind::cond) at.child = add_child(r, at.kind, &Plan::conds_, before.plan);
  if (at.kind == Kind::tiles) at.child = add_program(r, before);
  return at;
}

Plan::Kind Plan::kind_of(std::size_t r) {
  const OpRecord& record = graph_->records[r];
  const auto in = graph_->inputs_of(record), out = graph_->outputs_of(record);
  const auto is_list = [&](ValueId v) { return types_.types[v].is_list(); };
  const auto is_known = [&](ValueId v) { return types_.is_known[v] != 0; };
  if (record.op == &loop_op) return Kind::loop;
  if (record.op == &cond_op) return Kind::cond;
  if (!types_.has_types[r] || !std::ranges::all_of(out, is_known)) return Kind::untyped;
  if (record.op == &fused_op) return Kind::tiles;
  if (record.op->kernel_decides_types) return Kind::nothing;  // a dim, defined before the run
  const bool has_list = std::ranges::any_of(in, is_list) || std::ranges::any_of(out, is_list);
  if (in.empty() && !record.op->has_effect && !has_list && !reads_shown_lengths(r))
    return Kind::nothing;
  return has_list || record.op->storage == OpStorage::any ? Kind::blocks : Kind::kernel;
}

/// Adds the loop or branches of a record, from the earlier plan if it has them. Returns their
/// number.
template <class Child>
std::int32_t Plan::add_child(std::size_t r, Kind kind,
                             std::vector<std::unique_ptr<Child>> Plan::*children, Plan* before) {
  auto& all = this->*children;
  if (before && before->instructions_[r].kind == kind) {
    const auto number = static_cast<std::size_t>(before->instructions_[r].child);
    all.push_back(std::move((before->*children)[number]));
    if constexpr (std::is_same_v<Child, LoopPlan>) all.back()->forget_call();
  } else {
    all.push_back(std::make_unique<Child>(context_.child(r)));
  }
  return static_cast<std::int32_t>(all.size()) - 1;
}

/// Adds the tile program of a fused op, from the earlier plan if sizes are the same. Returns its
/// number.
std::int32_t Plan::add_program(std::size_t r, Before& before) {
  Plan* const plan = before.plan;
  return plan && plan->instructions_[r].kind == Kind::tiles && has_sizes_of(*plan, r)
             ? move_tiles(*plan, plan->instructions_[r].child, before.moved)
             : add_tiles(r, before.moved);
}

/// Returns OpStorage::own if an op that may make views makes none for these sizes: its inputs need
/// not outlive its outputs.
OpStorage Plan::storage_of(std::size_t record) const {
  const OpRecord& at = graph_->records[record];
  const OpStorage storage = at.op->storage;
  if (storage != OpStorage::input || !types_.has_types[record]) return storage;
  const ValueId x = graph_->inputs_of(at)[0], out = graph_->outputs_of(at)[0];
  if (!types_.is_known[x] || !types_.is_known[out] || types_.types[x].is_list()) return storage;
  const OpCall call{
      *at.op, types_.attrs[record].get(), {&types_.types[x], 1}, {&types_.types[out], 1}};
  return makes_view(call) ? storage : OpStorage::own;
}

/// Returns true if the record's attributes have a dim with lengths that change from run to run
/// (chunks.h).
bool Plan::reads_shown_lengths(std::size_t record) {
  if (!graph_->schedule().attrs_have_symbols[record]) return false;
  bool result = false;
  graph_->records[record].attrs->each_symbol([&](const Dim& symbol) {
    if (!types_.env.knows(symbol)) return;
    const Dim dim = types_.env.resolve(symbol);
    result = result ||
             (dim.is_ragged() && dim.node()->lengths && lies_in_plan(Tensor(dim.node()->lengths)));
  });
  return result;
}

void Plan::find_loops_beside() {
  const auto is_known = [&](const Instruction& at) {
    const OpRecord& record = graph_->records[at.record];
    const auto is_dense = [&](ValueId v) {
      return types_.is_known[v] && !types_.types[v].is_list();
    };
    const auto in = graph_->inputs_of(record), out = graph_->outputs_of(record);
    return at.kind == Kind::loop && at.attrs && std::all_of(in.begin(), in.end(), is_dense) &&
           std::all_of(out.begin(), out.end(), is_dense);
  };
  for (std::size_t first = 0; first < instructions_.size(); ++first) {
    if (!is_known(instructions_[first])) continue;
    std::vector<std::size_t> group{instructions_[first].record};
    std::size_t next = first + 1;
    while (next < instructions_.size() && is_known(instructions_[next]) &&
           can_run_beside(*graph_, group, instructions_[next].record))
      group.push_back(instructions_[next++].record);
    instructions_[first].beside = static_cast<std::uint32_t>(next - first - 1);
    first = next - 1;
  }
}

/// Returns true if the values of a record have the sizes that they have in another plan.
bool Plan::has_sizes_of(const Plan& other, std::size_t record) const {
  const OpRecord& at = graph_->records[record];
  const auto is_alike = [&](ValueId v) {
    return other.types_.types[v].sizes() == types_.types[v].sizes();
  };
  return std::ranges::all_of(graph_->inputs_of(at), is_alike) &&
         std::ranges::all_of(graph_->outputs_of(at), is_alike);
}

/// Moves a program from another plan. Returns its place. moved: by place there, its place here.
std::int32_t Plan::move_tiles(Plan& from, std::int32_t place, std::vector<std::int32_t>& moved) {
  std::int32_t& here = moved[static_cast<std::size_t>(place)];
  if (here < 0) {
    here = static_cast<std::int32_t>(tiles_.size());
    tiles_.push_back(std::move(from.tiles_[static_cast<std::size_t>(place)]));
  }
  return here;
}

/// Adds the program of a fused op. Returns its place, or the place of a recent equal one: updates
/// of many parameters of one type share a program, which then stays in the cache. Programs of
/// another plan (`moved`) have run, and cannot be compared.
std::int32_t Plan::add_tiles(std::size_t record, const std::vector<std::int32_t>& moved) {
  constexpr std::ptrdiff_t kRecent = 8;
  const SubGraph& body = get<FusedAttrs>(types_.attrs[record].get()).body;
  std::vector<TensorType> in;
  for (const ValueId v : graph_->inputs_of(graph_->records[record])) in.push_back(types_.types[v]);
  auto program = std::make_unique<TileProgram>(*body.graph, in, body.env());
  const std::ptrdiff_t count = std::ssize(tiles_);
  for (auto place = static_cast<std::int32_t>(count - std::min(kRecent, count)); place < count;
       ++place)
    if (std::ranges::find(moved, place) == moved.end() &&
        tiles_[static_cast<std::size_t>(place)]->is_same(*program))
      return place;
  tiles_.push_back(std::move(program));
  return static_cast<std::int32_t>(count);
}

/// Goes backwards: a value that may outlive the run is a block, and so is the source of a view of
/// it.
void Plan::choose_places(const std::vector<Outputs>& outputs) {
  const Graph& graph = *graph_;
  places_.assign(slots_.size(), Place::buffer);
  std::vector<std::uint8_t> is_kept(slots_.size());
  const auto is_dense = [&](std::size_t slot, ValueId v) {
    return types_.is_known[v] && !slot_types_[slot].is_list();
  };
  for (std::size_t k = 0; k < outputs.size(); ++k)
    if (outputs[k] == Outputs::blocks) is_kept[slot_of_[graph.outputs[k]]] = 1;
  for (std::size_t i = instructions_.size(); i-- > 0;) {
    Instruction& at = instructions_[i];
    const OpRecord& record = graph.records[at.record];
    const auto keep_inputs = [&] {
      for (const ValueId v : graph.inputs_of(record)) is_kept[slot_of_[v]] = 1;
    };
    bool any_kept = false;
    for (std::size_t s = at.first_out; s < at.first_out + at.out_count; ++s)
      any_kept = any_kept || is_kept[s];
    if (at.kind == Kind::kernel && any_kept) at.kind = Kind::blocks;
    std::size_t slot = at.first_out;
    for (const ValueId v : graph.outputs_of(record)) {
      Place& place = places_[slot];
      const bool may_be_outside =
          outputs_of_slot_[slot] >= 0 &&
          outputs[static_cast<std::size_t>(outputs_of_slot_[slot])] == Outputs::placed &&
          at.storage == OpStorage::own;
      const bool is_spilled = is_spilled_output(record, slot - at.first_out);
      if (at.kind == Kind::nothing)
        place = Place::constant;
      else if (at.kind == Kind::blocks || at.kind == Kind::untyped || !is_dense(slot, v) ||
               is_kept[slot] || is_spilled)
        place = Place::block;
      else
        place = may_be_outside ? Place::outside : Place::buffer;
      ++slot;
    }
    if (at.kind == Kind::untyped ||
        (at.kind == Kind::blocks && (at.storage != OpStorage::own || [&] {
           for (const ValueId v : graph.inputs_of(record))
             if (types_.types[v].is_list()) return true;
           return types_.types[graph.outputs_of(record)[0]].is_list();
         }())))
      keep_inputs();
  }
  for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
    places_[i] = Place::given;
    keeps_input_.push_back(is_kept[i]);
  }
  for (std::size_t k = 0; k < graph.outputs.size(); ++k) {
    const std::uint32_t slot = slot_of_[graph.outputs[k]];
    const bool is_first = outputs_of_slot_[slot] == static_cast<int>(k);
    outputs_.push_back({slot, is_first && places_[slot] == Place::outside, false});
  }
  std::vector<std::uint8_t> is_output(slots_.size());
  for (std::size_t k = outputs_.size(); k-- > 0;) {
    const std::uint32_t slot = outputs_[k].slot;
    outputs_[k].may_be_moved = places_[slot] == Place::block && !is_output[slot];
    is_output[slot] = 1;
  }
}

/// Finds the outputs that are made by an op that can add them, and that nothing else reads.
void Plan::find_adders() {
  adder_of_output_.assign(graph_->outputs.size(), -1);
  // A record counts each value that it makes or reads once as an operand.
  std::vector<std::uint32_t> operands(graph_->types.size()), as_output(graph_->types.size());
  for (const ValueId v : graph_->operands) ++operands[v];
  for (const ValueId v : graph_->outputs) ++as_output[v];
  for (std::size_t i = 0; i < instructions_.size(); ++i) {
    const Instruction& at = instructions_[i];
    if (at.kind != Kind::kernel || !at.op->can_add || places_[at.first_out] != Place::outside)
      continue;
    const ValueId made = graph_->outputs_of(graph_->records[at.record])[0];
    if (operands[made] == 1 && as_output[made] == 1)
      adder_of_output_[static_cast<std::size_t>(outputs_of_slot_[at.first_out])] =
          static_cast<int>(i);
  }
}

/// The tensors that can be released early: not read later, and costly to hold.
class Plan::Releases {
 public:
  explicit Releases(const Plan& plan)
      : plan_(plan), uses_(plan.last_uses()), times_(plan.graph_->types.size()) {}

  const LastUses& uses() const { return uses_; }

  /// Returns true if instruction i is the last one that reads the slot, and may release it.
  bool is_last(std::size_t slot, std::size_t i) const {
    return may_free(slot, i) && uses_.of_value[slot] == static_cast<int>(i);
  }
  /// Returns, by operand of instruction i, if it is a temporary: nothing else holds its value.
  std::vector<std::uint8_t> temporaries(std::size_t i) {
    const Graph& graph = *plan_.graph_;
    const auto in = graph.inputs_of(graph.records[plan_.instructions_[i].record]);
    std::vector<std::uint8_t> result;
    for (const ValueId v : in) ++times_[v];
    for (const ValueId v : in)
      result.push_back(is_last(plan_.slot_of_[v], i) && no_view_is_read(v, i) && times_[v] == 1);
    for (const ValueId v : in) times_[v] = 0;
    return result;
  }
  /// Returns true if the input may be overwritten by its last reader i, since rows are saved.
  bool gives_rows(ValueId v, std::size_t i) const {
    const std::uint32_t slot = plan_.slot_of_[v];
    return slot < plan_.graph_->inputs.size() && uses_.of_value[slot] == static_cast<int>(i) &&
           no_view_is_read(v, i) && plan_.replaces_few_rows(i);
  }
  /// Returns, by instruction, the slots that it releases.
  std::vector<std::vector<std::uint32_t>> freed() const {
    std::vector<std::vector<std::uint32_t>> result(plan_.instructions_.size());
    for (std::size_t slot = 0; slot < plan_.slots_.size(); ++slot) {
      const int last = uses_.of_value[slot];
      if (last < 0 || last >= static_cast<int>(result.size())) continue;
      if (const auto i = static_cast<std::size_t>(last); is_last(slot, i))
        result[i].push_back(static_cast<std::uint32_t>(slot));
    }
    return result;
  }

 private:
  bool may_free(std::size_t slot, std::size_t i) const {
    const TensorType& type = plan_.slot_types_[slot];
    if (plan_.places_[slot] == Place::block) return true;
    if (plan_.places_[slot] != Place::given) return false;
    if (plan_.owner_ != Inputs::given) return type.is_list();
    constexpr std::int64_t kSmall = 1024;
    const bool is_small = !type.is_list() && type.bytes() <= kSmall;
    return i >= (is_small ? plan_.first_copied_ : plan_.first_safe_);
  }
  bool no_view_is_read(ValueId v, std::size_t i) const {
    return uses_.of_views[plan_.slot_of_[v]] < static_cast<int>(i);
  }

  const Plan& plan_;
  const LastUses uses_;
  std::vector<std::uint32_t> times_;  ///< by value: among the operands of one instruction
};

/// Creates tensors for placed values, and the operands, now that slots have their final addresses.
void Plan::make_headers() {
  make_placed_tensors();
  first_safe_ = first_that_cannot_fail();
  first_copied_ = owner_ == Inputs::given ? first_that_values_do_not_fail() : first_safe_;
  Releases releases(*this);
  const std::vector<int>& last_use = releases.uses().of_value;
  const std::size_t inputs = graph_->inputs.size();
  for (std::size_t i = 0; i < inputs; ++i) reads_input_.push_back(last_use[i] >= 0);
  make_operands(releases);
  find_donors();
  for (std::uint32_t slot = 0; slot < inputs; ++slot)
    if (const int last = last_use[slot]; last >= static_cast<int>(first_copied_) &&
                                         last < static_cast<int>(first_safe_) &&
                                         releases.is_last(slot, static_cast<std::size_t>(last)))
      copied_.emplace_back(slot, Tensor());
  if (!copied_.empty()) instructions_[first_copied_].has_prelude = true;
  if (!donors_.empty()) instructions_[first_safe_].has_prelude = true;
}

void Plan::make_placed_tensors() {
  const Graph& graph = *graph_;
  for (std::size_t s = 0; s < slots_.size(); ++s) {
    const bool is_input = s < graph.inputs.size();
    if (is_input && !types_.is_known[graph.inputs[s]]) continue;
    if (is_input ? slot_types_[s].is_list()
                 : places_[s] != Place::buffer && places_[s] != Place::outside)
      continue;
    headers_[s] = Tensor(allocate_placed(slot_types_[s], nullptr));
    if (!is_input) slots_[s] = headers_[s];
  }
}

void Plan::make_operands(Releases& releases) {
  const std::vector<std::vector<std::uint32_t>> freed = releases.freed();
  for (std::size_t i = 0; i < instructions_.size(); ++i) {
    Instruction& at = instructions_[i];
    const auto in = graph_->inputs_of(graph_->records[at.record]);
    const std::vector<std::uint8_t> temporaries = releases.temporaries(i);
    at.first_in = static_cast<std::uint32_t>(operands_.size());
    for (std::size_t k = 0; k < in.size(); ++k) {
      operands_.emplace_back(slots_[slot_of_[in[k]]]);
      operands_.back().temporary = temporaries[k];
    }
    // The first operand alone may give its memory, at its last use.
    if (!in.empty() && !temporaries[0] && std::ranges::count(in, in[0]) == 1 &&
        releases.gives_rows(in[0], i))
      at.saves_rows = operands_[at.first_in].temporary = true;
    at.first_free = static_cast<std::uint32_t>(freed_.size());
    at.free_count = static_cast<std::uint32_t>(freed[i].size());
    freed_.insert(freed_.end(), freed[i].begin(), freed[i].end());
  }
}

std::vector<TensorType> Plan::input_types_of(const Instruction& at) const {
  std::vector<TensorType> in;
  for (const ValueId v : graph_->inputs_of(graph_->records[at.record]))
    in.push_back(types_.types[v]);
  return in;
}

void Plan::compute_constants() {
  for (const Instruction& at : instructions_) {
    if (at.kind != Kind::nothing) continue;
    for (Tensor& out : outputs_of(at)) out = Tensor();
    if (at.op->kernel_decides_types) {  // a dim: its token has no elements
      outputs_of(at)[0] = Tensor(allocate_block(slot_types_[at.first_out]));
      continue;
    }
    KernelArgs args{
        *at.op,        at.attrs, {}, false, {slot_types_.data() + at.first_out, at.out_count},
        outputs_of(at)};
    at.op->kernel(args);
  }
}

bool Plan::rebind(std::span<const TensorType> inputs, const DimEnv& env) {
  PlannedTypes types = plan_types(*graph_, inputs, env);
  if (!same_sizes(types, types_)) return false;
  types_ = std::move(types);
  for (ValueId v = 0; v < graph_->types.size(); ++v) {
    const std::uint32_t slot = slot_of_[v];
    if (slot == kNoSlot) continue;
    slot_types_[slot] = types_.types[v];
    if (headers_[slot].is_defined()) headers_[slot].block()->type = types_.types[v];
  }
  for (Instruction& at : instructions_) at.attrs = types_.attrs[at.record].get();
  find_short_ops();
  compute_constants();
  return true;
}

}  // namespace reel
