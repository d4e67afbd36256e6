#include "reel/trace/executors/plan/loop/stack_sink.h"

namespace reel {

StackSink make_stack_sink(const LeafContext& loop, std::size_t index, const TensorType& term,
                          Tensor& out, BlockRows* rows, CheckpointStacks& checkpoints,
                          Spills& spills) {
  const LoopStack& leaf = loop.attrs.stacks[index];
  if (leaf.is_checkpoint()) return CheckpointStack(checkpoints, index);
  if (leaf.is_in_file())
    return FileStack(loop, index, spills,
                     leaf.is_list ? std::nullopt : std::optional<TensorType>(term));
  if (leaf.is_list) return ListStack(loop, index);
  if (rows) return RowStack(*rows, index);
  if (!out.is_defined() && !loop.attrs.trips.makes_dim && leaf.dim.has_size()) {
    out = Tensor(allocate_block(stacked(remove_chunk_dim(loop.attrs, term), leaf.dim)));
    count_as(out, leaf.memory_class());
  }
  if (out.is_defined()) return DenseStack(loop.iterations, term, out.data<char>());
  return GrowingStack(loop, index, term);
}

}  // namespace reel
