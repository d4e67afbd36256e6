// Instructions of a plan that take less time than the choices of their kernels.
#include <algorithm>
#include <optional>
#include <utility>

#include "reel/core/ops/products/small_dot.h"
#include "reel/trace/executors/plan/cond_plan.h"
#include "reel/trace/executors/plan/loop_plan.h"
#include "reel/trace/executors/plan/plan.h"
#include "reel/trace/executors/plan/tiles/tile_program.h"

namespace reel {
namespace {

/// Gives an instruction a kind, and a child of that kind. Returns false if there is no child.
template <class Instruction, class Kind, class Child>
bool set_child(Instruction& at, Kind kind, const std::optional<Child>& child,
               std::vector<Child>& children) {
  if (!child) return false;
  at.kind = kind;
  at.child = static_cast<std::int32_t>(children.size());
  children.push_back(*child);
  return true;
}

}  // namespace

/// Finds the instructions that take less time than the choices of their kernels: they get calls
/// with these choices made.
void Plan::find_short_ops() {
  flats_.clear();
  products_.clear();
  chains_.clear();
  for (Instruction& at : instructions_) {
    at.chain = -1;
    if (at.kind == Kind::flat || at.kind == Kind::product) at.kind = Kind::kernel;
    if (at.kind == Kind::tiles)
      find_chain(at);
    else if (at.kind == Kind::kernel && !find_flat_op(at))
      find_small_product(at);
  }
  has_only_short_ops_ = std::all_of(instructions_.begin(), instructions_.end(),
                                    [&](const Instruction& at) { return is_short(at); });
}

/// Returns true if the instruction is a call of a known loop and nothing comes before or after it.
bool Plan::is_short(const Instruction& at) const {
  const bool is_known = at.kind == Kind::flat || at.kind == Kind::product ||
                        at.kind == Kind::nothing || (at.kind == Kind::tiles && at.chain >= 0);
  return is_known && !at.has_prelude && at.free_count == 0;
}

bool Plan::find_flat_op(Instruction& at) {
  return set_child(at, Kind::flat,
                   contiguous_elementwise(*at.op, input_types_of(at), slot_types_[at.first_out]),
                   flats_);
}

bool Plan::find_small_product(Instruction& at) {
  const std::vector<TensorType> in = input_types_of(at);
  return set_child(at, Kind::product, small_dot({*at.op, at.attrs, in, output_types_of(at)}),
                   products_);
}

void Plan::find_chain(Instruction& at) {
  const auto is_placed = [&](Place place) {
    return place == Place::buffer || place == Place::outside;
  };
  for (std::size_t s = at.first_out; s < at.first_out + at.out_count; ++s)
    if (!is_placed(places_[s])) return;
  auto chain =
      tiles_[static_cast<std::size_t>(at.child)]->placed_chain(inputs_of(at), outputs_of(at));
  if (!chain) return;
  at.chain = static_cast<std::int32_t>(chains_.size());
  chains_.push_back(*std::move(chain));
}

}  // namespace reel
