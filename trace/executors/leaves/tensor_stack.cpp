#include "reel/trace/executors/leaves/tensor_stack.h"

#include "reel/core/ops.h"
#include "reel/trace/executors/leaves/terms_of_chunk.h"
#include "reel/trace/executors/loop/loop_types.h"

namespace reel {
namespace {

std::optional<Dim> dim_known_before(const LoopAttrs& attrs, const LoopStack& stack) {
  if (attrs.trips.makes_dim || !stack.dim.has_size()) return {};
  return stack.dim;
}

}  // namespace

TensorStack::TensorStack(const LeafContext& loop, std::size_t index)
    : loop_(loop),
      index_(index),
      writer_(dim_known_before(loop.attrs, loop.attrs.stacks[index]),
              loop.attrs.stacks[index].memory_class()) {}

void TensorStack::put(Tensor term, std::int64_t position) {
  for_each_step(loop_, std::move(term), position,
                [&](std::int64_t at, Tensor element) { writer_.put(at, std::move(element)); });
}

void TensorStack::finish(Tensor& out, const Dim& made) {
  const Dim dim = loop_.stack_dim(index_, made);
  if (!writer_.is_empty()) {
    out = writer_.finish(dim);
    return;
  }
  const TensorType element = type_without_iterations(
      loop_.attrs, loop_.inputs, remove_chunk_dim(loop_.attrs, loop_.formal_term(index_)));
  out = zeros(stacked(element, dim));
}

}  // namespace reel
