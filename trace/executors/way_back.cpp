#include "reel/trace/executors/way_back.h"

#include <algorithm>
#include <map>
#include <optional>
#include <vector>

#include "reel/trace/executors/kept_steps.h"
#include "reel/trace/executors/revolve.h"

namespace reel {
namespace {

/// Going back over the units behind one checkpoint.
struct Trip {
  std::size_t states = 1;     ///< that there are at a time, the first one included
  std::int64_t advanced = 0;  ///< units that are run to come to others
};
Trip trip_over(std::int64_t units, const WayBack& way) {
  Revolve revolve(0, way.leaf, way.slots);
  Trip result;
  for (std::int64_t end = units; end > 0;) {
    const std::vector<Revolve::Advance> advances = revolve.way_to(end);
    for (const Revolve::Advance& advance : advances) result.advanced += advance.to - advance.from;
    result.states = std::max(result.states, revolve.checkpoints());
    end = advances.empty() ? revolve.last_checkpoint() : advances.back().to;
  }
  return result;
}

/// What one run of a loop of so many units takes.
PolicyCosts costs_of_units(const LoopAttrs& loop, std::int64_t units, std::int64_t unit,
                           std::int64_t state_bytes, std::int64_t unit_bytes) {
  const std::int64_t checkpoint = state_bytes + kBytesOfWhich;
  PolicyCosts result{0, 0, 0, 2};
  std::vector<std::int64_t> kept;
  KeptSteps times(loop.checkpoint_steps, loop.checkpoint_bytes ? slots_of(loop, state_bytes) : 0);
  for (std::int64_t k = 0; k < units; ++k) {
    const KeptSteps::Decision now = times.before(k * unit);
    for (int i = 0; i < now.drops; ++i) thin(kept);
    if (now.takes) kept.push_back(k);
    result.checkpoints = std::max(result.checkpoints, std::ssize(kept) * checkpoint);
  }
  std::map<std::int64_t, std::int64_t> gaps;  // how many there are of each size
  for (std::size_t i = 0; i < kept.size(); ++i)
    ++gaps[(i + 1 < kept.size() ? kept[i + 1] : units) - kept[i]];
  std::int64_t advanced = 0;
  for (const auto& [gap, count] : gaps) {
    const WayBack way = way_back(loop, gap, state_bytes, unit_bytes, 1);
    const Trip trip = trip_over(gap, way);
    result.steps = std::max(result.steps, way.leaf * unit);
    result.checkpoints = std::max(
        result.checkpoints,
        std::ssize(kept) * checkpoint + (static_cast<std::int64_t>(trip.states) - 1) * state_bytes);
    advanced += count * trip.advanced;
  }
  if (units) result.runs += static_cast<double>(advanced) / static_cast<double>(units);
  return result;
}

/// What a step saves, and while it is put in one piece.
std::optional<std::int64_t> step_bytes_of(const RecallAttrs& attrs,
                                          std::span<const TensorType> inputs,
                                          std::span<const TensorType> outputs) {
  const LoopAttrs& loop = attrs.saving();
  const Graph& body = *loop.body.graph;
  std::vector<TensorType> of_step;
  std::int64_t most = 0;  // of a value that is put in one piece
  std::size_t output = loop.first_stack() + static_cast<std::size_t>(attrs.first_saved);
  for (const TensorType& type : outputs) {
    // What a loop inside keeps is a list in each step, as long as that loop likes.
    const bool is_of_lists = body.types[body.outputs[output++]].is_list();
    of_step.push_back(is_of_lists ? type : slice_type(type));
    if (!type.is_list() && of_step.back().is_known()) most = std::max(most, of_step.back().bytes());
  }
  const auto bytes = bytes_of(of_step);
  if (!bytes) return bytes;
  return *bytes + (saves_in_one_piece(attrs, inputs) ? 0 : most);
}

}  // namespace

std::optional<std::int64_t> bytes_of(std::span<const TensorType> types) {
  std::int64_t result = 0;
  for (const TensorType& type : types) {
    if (type.is_list() || !type.is_known()) return std::nullopt;
    result += type.bytes();
  }
  return result;
}

WayBack way_back(const LoopAttrs& loop, std::int64_t gap, std::int64_t state_bytes,
                 std::int64_t unit_bytes, std::int64_t together) {
  if (!loop.checkpoint_bytes) return {gap, 1};
  const std::int64_t all = slots_of(loop, state_bytes),
                     fit = loop.checkpoint_bytes / 2 / std::max<std::int64_t>(unit_bytes, 1);
  return {std::min(gap, std::max(fit / together * together, together)),
          std::max<std::int64_t>(all - KeptSteps::most(all), 0) + 1};
}

bool saves_in_one_piece(const RecallAttrs& attrs, std::span<const TensorType> inputs) {
  const LoopAttrs& loop = attrs.saving();
  bool result = loop.is_full && loop.slices && loop.entry_dims.empty();
  for (int i = 0; i < loop.slices; ++i)
    result = result && !inputs[loop.first_slice() + static_cast<std::size_t>(i)].is_list();
  for (int j = attrs.first_saved; j < loop.stacks; ++j)
    result = result && !loop.is_list(static_cast<std::size_t>(j));
  return result;
}

PolicyCosts policy_costs(const RecallAttrs& attrs, std::span<const TensorType> inputs,
                         std::span<const TensorType> outputs, std::optional<std::int64_t> steps,
                         std::int64_t unit) {
  const LoopAttrs& loop = attrs.saving();
  const auto state =
      bytes_of(inputs.subspan(loop.first_carry(), static_cast<std::size_t>(loop.carries)));
  const auto step = step_bytes_of(attrs, inputs, outputs);
  if (steps && state && step) {
    PolicyCosts result =
        costs_of_units(loop, (*steps + unit - 1) / unit, unit, *state, *step * unit);
    result.steps = std::min(result.steps, *steps);
    result.bytes = result.steps * *step;
    return result;
  }
  PolicyCosts result;
  if (loop.checkpoint_steps)
    result.steps = steps ? std::min(*steps, loop.checkpoint_steps) : loop.checkpoint_steps;
  if (loop.checkpoint_bytes) {
    const std::int64_t half = loop.checkpoint_bytes / 2;
    result.checkpoints = std::max(half, state ? *state + kBytesOfWhich : 0);
    result.bytes = std::max(half, step ? *step * unit : 0);
    if (step)
      result.steps =
          std::max(half / std::max<std::int64_t>(*step * unit, 1), std::int64_t{1}) * unit;
  } else if (step && result.steps >= 0) {
    result.bytes = result.steps * *step;
  }
  return result;
}

std::int64_t spilled_bytes_in_memory(const LoopAttrs& loop, std::int64_t step_bytes,
                                     std::int64_t count, std::int64_t together) {
  const auto stacks = std::count_if(loop.stack_kinds.begin(), loop.stack_kinds.end(),
                                    [](std::uint8_t kind) { return kind & LoopAttrs::kSpilled; });
  const std::int64_t run = std::max<std::int64_t>(step_bytes * together, 1),
                     window = loop.spill_window / std::max<std::int64_t>(stacks, 1),
                     block = ((std::int64_t{1} << 20) + run - 1) / run * run,
                     in_memory = (std::max<std::int64_t>(window / block, 2) + 3) * block;
  return count < 0 ? in_memory : std::min(in_memory, count * step_bytes);
}

}  // namespace reel
