#include "reel/trace/executors/checkpoints/stack_list.h"

#include <algorithm>

namespace reel {

CheckpointTimes::CheckpointTimes(const LoopAttrs& attrs)
    : attrs_(attrs), takes_any_(attrs.takes_checkpoints()) {
  const Graph& body = *attrs.body.graph;
  sources_.reserve(static_cast<std::size_t>(attrs.stacks));
  for (int j = 0; j < attrs.stacks; ++j) {
    const auto stack = static_cast<std::size_t>(j);
    const ValueId term = body.outputs[attrs.first_stack() + stack];
    const auto found = attrs.is_checkpoint(stack)
                           ? std::find(body.inputs.begin(), body.inputs.end(), term)
                           : body.inputs.end();
    sources_.push_back(found != body.inputs.end() ? static_cast<int>(found - body.inputs.begin())
                                                  : -1);
    spills_ = spills_ || (attrs.is_checkpoint(stack) && attrs.is_spilled(stack));
  }
}

}  // namespace reel
