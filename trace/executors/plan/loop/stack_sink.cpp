#include "reel/trace/executors/plan/loop/stack_sink.h"

namespace reel {

StackSink make_stack_sink(const StackOfRun& stack, Tensor& out, BlockRows* rows,
                          const CheckpointTimes& times, Spills& spills) {
  const LoopStack& leaf = stack.leaf();
  if (leaf.is_checkpoint()) return CheckpointStack(stack, times);
  if (leaf.is_in_file()) {
    Ref<Spilled> steps = spills.make_for_steps(stack.attrs(), stack.index, stack.loop.chunks,
                                               stack.iterations.expected());
    if (leaf.is_list) return FileListStack(stack, std::move(steps));
    return FileStack(stack, std::move(steps));
  }
  if (leaf.is_list) return ListStack(stack);
  if (rows) return RowStack(*rows, stack.index);
  if (!out.is_defined() && !stack.attrs().trips.makes_dim && leaf.dim.has_size()) {
    out = Tensor(allocate_block(stacked(remove_chunk_dim(stack.attrs(), stack.term()), leaf.dim)));
    count_as(out, leaf.memory_class());
  }
  if (out.is_defined()) return DenseStack(stack, out.data<char>());
  return GrowingStack(stack);
}

}  // namespace reel
