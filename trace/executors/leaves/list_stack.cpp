#include "reel/trace/executors/leaves/list_stack.h"

#include "reel/trace/executors/leaves/terms_of_chunk.h"
#include "reel/trace/executors/loop/loop_types.h"
#include "reel/trace/executors/plan/base/plan_views.h"

namespace reel {

void ListStack::put(Tensor term, std::int64_t position) {
  const std::int64_t limit = loop_.is_chunked() ? loop_.chunks.steps : loop_.iterations.limit;
  for_each_step(loop_, owned(std::move(term)), position,
                [&](std::int64_t at, Tensor element) { list_.put(at, limit, std::move(element)); });
}

void ListStack::finish(Tensor& out, const Dim&) const {
  const Tensors& elements = list_.elements();
  const TensorType element = element_of_stack(loop_.attrs, index_, loop_.formal_term(index_));
  out = make_list(elements.empty() ? type_without_iterations(loop_.attrs, loop_.inputs, element)
                                   : common_type(elements),
                  elements);
}

}  // namespace reel
