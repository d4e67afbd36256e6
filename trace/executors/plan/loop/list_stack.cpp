#include "reel/trace/executors/plan/loop/list_stack.h"

#include "reel/trace/executors/loop/loop_types.h"

namespace reel {

void ListStack::put(const Tensor& term, std::int64_t position) {
  const PlannedLoop& loop = stack_.loop;
  const std::int64_t limit =
      stack_.attrs().chunking.over_chunks ? loop.chunks.steps : stack_.iterations.limit;
  each_element(loop, term, position,
               [&](std::int64_t at, Tensor element) { list_.put(at, limit, std::move(element)); });
}

void ListStack::finish(Tensor& out, const Dim&) const {
  const Tensors& elements = list_.elements();
  const TensorType element = element_of_stack(stack_.attrs(), stack_.index, stack_.formal());
  out = make_list(elements.empty()
                      ? type_without_iterations(stack_.attrs(), stack_.loop.input_types, element)
                      : common_type(elements),
                  elements);
}

}  // namespace reel
