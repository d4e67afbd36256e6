#include "reel/trace/executors/way_back.h"

#include <algorithm>
#include <vector>

#include "reel/trace/executors/kept_steps.h"
#include "reel/trace/executors/revolve.h"

namespace reel {
namespace {

/// Going back over `units` -> how many states there are at a time, the first one included.
std::size_t most_states(std::int64_t units, const WayBack& way) {
  Revolve revolve(0, way.leaf, way.slots);
  std::size_t most = 1;
  for (std::int64_t end = units; end > 0;) {
    const std::vector<Revolve::Advance> advances = revolve.way_to(end);
    most = std::max(most, revolve.checkpoints());
    end = advances.empty() ? revolve.last_checkpoint() : advances.back().to;
  }
  return most;
}

}  // namespace

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
  bool result = loop.is_full && loop.slices && !loop.makes_lengths();
  for (int i = 0; i < loop.slices; ++i)
    result = result && !inputs[loop.first_slice() + static_cast<std::size_t>(i)].is_list();
  for (int j = attrs.first_saved; j < loop.stacks; ++j)
    result = result && !loop.is_list(static_cast<std::size_t>(j));
  return result;
}

PolicyBytes policy_bytes(const LoopAttrs& loop, std::int64_t steps, std::int64_t state_bytes,
                         std::int64_t step_bytes) {
  const std::int64_t checkpoint = state_bytes + kBytesOfWhich;
  PolicyBytes result;
  std::vector<std::int64_t> kept;
  KeptSteps times(loop.checkpoint_steps, loop.checkpoint_bytes ? slots_of(loop, state_bytes) : 0);
  for (std::int64_t k = 0; k < steps; ++k) {
    const KeptSteps::Decision now = times.before(k);
    for (int i = 0; i < now.drops; ++i) thin(kept);
    if (now.takes) kept.push_back(k);
    result.checkpoints = std::max(result.checkpoints, std::ssize(kept) * checkpoint);
  }
  const std::int64_t gap = kept.size() > 1 ? kept[1] : steps;
  for (const std::int64_t units : {gap, kept.empty() ? 0 : steps - kept.back()}) {
    if (units == 0) continue;
    const WayBack way = way_back(loop, units, state_bytes, step_bytes, 1);
    result.steps = std::max(result.steps, way.leaf);
    const auto more = static_cast<std::int64_t>(most_states(units, way)) - 1;
    result.checkpoints =
        std::max(result.checkpoints, std::ssize(kept) * checkpoint + more * state_bytes);
  }
  return result;
}

}  // namespace reel
