// Which inputs of a plan are overwritten, by which instructions, and how a failed run undoes it.
#include <algorithm>
#include <variant>

#include "reel/core/op/facts.h"
#include "reel/core/op/take.h"
#include "reel/core/ops/elementwise/element_loop.h"
#include "reel/core/ops/products/product_memory.h"
#include "reel/core/ops/shape/strided.h"
#include "reel/trace/executors/plan/cond_plan.h"
#include "reel/trace/executors/plan/loop_plan.h"
#include "reel/trace/executors/plan/plan.h"
#include "reel/trace/executors/plan/tiles/tile_program.h"

namespace reel {

/// Returns, by value, the last instruction that reads it or a view of it, or that makes it. Outputs
/// have the number of instructions, unread inputs -1. Loops that run beside each other count as the
/// last of them.
Plan::LastUses Plan::last_uses() const {
  const Graph& graph = *graph_;
  std::vector<int> ends(instructions_.size());
  for (std::size_t i = 0; i < ends.size(); ++i)
    for (std::size_t k = 0; k <= instructions_[i].beside; ++k)
      ends[i + k] = std::max(ends[i + k], static_cast<int>(i + instructions_[i].beside));
  std::vector<int> last(slots_.size(), -1), viewed(slots_.size(), -1);
  for (const ValueId v : graph.outputs) last[slot_of_[v]] = static_cast<int>(instructions_.size());
  for (std::size_t i = instructions_.size(); i-- > 0;) {
    const Instruction& at = instructions_[i];
    int until = ends[i];
    for (std::size_t s = at.first_out; s < at.first_out + at.out_count; ++s) {
      last[s] = std::max(last[s], until);
      // A view that is a block holds a reference to its source.
      if (at.kind == Kind::kernel && at.storage == OpStorage::input)
        until = std::max(until, last[s]);
    }
    for (const ValueId v : graph.inputs_of(graph.records[at.record])) {
      int& of_value = last[slot_of_[v]];
      int& of_views = viewed[slot_of_[v]];
      of_value = std::max(of_value, until);
      if (until > ends[i]) of_views = std::max(of_views, until);
    }
  }
  return {std::move(last), std::move(viewed)};
}

bool Plan::output_updates_input(std::size_t k, std::size_t i) const {
  if (!output_is_placed(k)) return false;
  const std::size_t slot = slot_of_[graph_->outputs[k]];
  // Instructions make slots in order, behind the inputs' slots.
  const auto maker = std::partition_point(
      instructions_.begin(), instructions_.end(),
      [&](const Instruction& at) { return at.first_out + at.out_count <= slot; });
  if (maker == instructions_.end() || slot < maker->first_out || maker->kind != Kind::kernel ||
      !maker->op->updates_input)
    return false;
  const auto in = graph_->inputs_of(graph_->records[maker->record]);
  const bool is_read_once =
      std::none_of(in.begin() + 1, in.end(), [&](const ValueId v) { return slot_of_[v] == i; });
  const LastUses last = last_uses();
  const auto here = static_cast<int>(maker - instructions_.begin());
  return slot_of_[in[0]] == i && is_read_once && last.of_value[i] == here &&
         last.of_views[i] < here;
}

/// Returns true if the instruction replaces some rows of its first operand, and saving them costs
/// less than a copy of the operand.
bool Plan::replaces_few_rows(std::size_t instruction) const {
  const Instruction& at = instructions_[instruction];
  if (owner_ != Inputs::given || at.kind != Kind::blocks || !changes_rows(*at.op)) return false;
  const auto in = graph_->inputs_of(graph_->records[at.record]);
  return 2 * types_.types[in[2]].bytes() <= types_.types[in[0]].bytes();
}

void Plan::find_donors() {
  if (owner_ != Inputs::given) return;
  for (std::size_t i = first_safe_; i < instructions_.size(); ++i)
    for (std::uint32_t k = 0; k < instructions_[i].in_count; ++k) {
      const std::uint32_t at = instructions_[i].first_in + k;
      const auto slot = static_cast<std::size_t>(operands_[at].tensor - slots_.data());
      if (operands_[at].temporary && slot < graph_->inputs.size()) donors_.push_back(at);
    }
  if (donors_.empty()) return;
  made_before_.resize(slots_.size());
  for (const Instruction& at : instructions_) {
    const auto loop = element_loop(*at.op);
    const bool reuses = loop && !std::holds_alternative<CastLoop>(*loop);
    reusable_.push_back(reuses ? at.in_count : at.op->updates_input ? 1 : 0);
  }
}

/// Returns the first instruction from which on none can fail, whatever the values and the free
/// memory are. Inputs may be overwritten from there on. Its outputs and later ones are allocated
/// before it runs.
std::size_t Plan::first_that_cannot_fail() const {
  return first_with_only([&](const Instruction& at) {
    if (at.kind != Kind::kernel && at.kind != Kind::blocks && at.kind != Kind::tiles) return false;
    // If a block is a view of another one, its kernel makes it.
    if (at.kind == Kind::blocks && at.storage != OpStorage::own) return false;
    const Failures failures = failures_of(*at.op, at.attrs);
    return !failures.values && (!failures.memory || is_product_in_place(at));
  });
}

/// Returns true for a product that reads its operands where they lie, and so takes no memory.
bool Plan::is_product_in_place(const Instruction& at) const {
  std::vector<TensorType> in;
  for (const ValueId v : graph_->inputs_of(graph_->records[at.record]))
    in.push_back(types_.types[v]);
  return !product_takes_memory({*at.op, at.attrs, in, {&slot_types_[at.first_out], 1}});
}

/// Returns the first instruction from which on none can fail because of values. Small inputs may be
/// overwritten from there on, as they are copied before.
std::size_t Plan::first_that_values_do_not_fail() const {
  return first_with_only([](const Instruction& at) {
    return at.kind != Kind::untyped && !fails_for_values(*at.op, at.attrs);
  });
}

template <class Is>
std::size_t Plan::first_with_only(Is is) const {
  std::size_t i = instructions_.size();
  while (i > 0 && (instructions_[i - 1].kind == Kind::nothing || is(instructions_[i - 1]))) --i;
  return i;
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
  if (instruction == first_safe_ && !donors_.empty()) {
    changed_.clear();  // from here on there is nothing to undo
    make_blocks_before_writing_over();
  }
}

/// Runs before an instruction that changes rows of an input.
void Plan::save_rows(const Instruction& at) {
  const auto in = inputs_of(at);
  if (!may_take(in[0], slot_types_[at.first_out])) return;  // it makes a copy
  changed_.push_back({static_cast<std::uint32_t>(in[0].tensor - slots_.data()), at.first_out,
                      in[0].tensor->block()->id, SavedRows(at.attrs, in)});
}

Tensor Plan::input_before(std::size_t i) {
  for (ChangedInput& changed : changed_) {
    if (changed.slot != i || slots_[i].is_defined()) continue;
    // An instruction that failed half-way has not noted the table.
    Tensor table = std::move(changed.table.is_defined() ? changed.table : slots_[changed.output]);
    changed.rows.restore(table);
    table.block()->id = changed.id;
    return table;
  }
  for (auto& [slot, copy] : copied_)
    if (slot == i && !slots_[i].is_defined()) return std::move(copy);
  return std::move(slots_[i]);
}

}  // namespace reel
