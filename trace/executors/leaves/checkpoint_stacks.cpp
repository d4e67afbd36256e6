#include "reel/trace/executors/leaves/checkpoint_stacks.h"

#include "reel/core/ops/list/list.h"
#include "reel/core/runtime/residual_source.h"
#include "reel/trace/executors/loop/loop_types.h"

namespace reel {

CheckpointStacks::CheckpointStacks(const LeafContext& loop, Spills& spills)
    : loop_(loop), times_(loop.attrs), spills_(spills) {
  if (!times_.takes_any()) return;
  for (const LoopStack& stack : loop.attrs.stacks)
    lists_.emplace_back(loop.attrs.trips.is_reverse, stack.memory_class());
}

void CheckpointStacks::open_file() {
  const auto limit =
      times_.puts(loop_.iterations.expected(), loop_.is_chunked() ? loop_.chunks.size : 1);
  for (std::size_t j = 0; j < lists_.size(); ++j)
    if (loop_.attrs.stacks[j].is_checkpoint() && loop_.attrs.stacks[j].is_in_file())
      lists_[j].spill_to(spills_.make_for_checkpoints(loop_.attrs, j, limit));
}

Tensor CheckpointStacks::finish(std::size_t index) const {
  const StackList& list = lists_[index];
  const auto without_iterations = [&](const TensorType& type) {
    return type_without_iterations(loop_.attrs, loop_.inputs, type);
  };
  const TensorType& term = loop_.formal_term(index);
  if (const Ref<ResidualSource> in_file = list.in_file())
    return make_residual(without_iterations(term).as_list(), in_file, 0);
  const Tensors& elements = list.elements();
  return make_list(elements.empty() ? without_iterations(element_of_stack(loop_.attrs, index, term))
                                    : common_type(elements),
                   elements);
}

}  // namespace reel
