#include "reel/trace/executors/way_back.h"

#include <algorithm>

#include "reel/trace/executors/kept_steps.h"

namespace reel {

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

}  // namespace reel
