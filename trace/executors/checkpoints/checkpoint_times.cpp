#include "reel/trace/executors/checkpoints/checkpoint_times.h"

#include <algorithm>

namespace reel {

CheckpointTimes::CheckpointTimes(const LoopAttrs& attrs)
    : attrs_(attrs), takes_any_(attrs.takes_checkpoints()) {
  const std::vector<ValueId>& inputs = attrs.body.graph->inputs;
  const auto terms = body_outputs(attrs).stacks;
  for (std::size_t j = 0; j < terms.size(); ++j) {
    const LoopStack& stack = attrs.stacks[j];
    const auto found =
        stack.is_checkpoint() ? std::find(inputs.begin(), inputs.end(), terms[j]) : inputs.end();
    sources_.push_back(found != inputs.end() ? static_cast<int>(found - inputs.begin()) : -1);
    spills_ = spills_ || (stack.is_checkpoint() && stack.is_in_file());
  }
}

}  // namespace reel
