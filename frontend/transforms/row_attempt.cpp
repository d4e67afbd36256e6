// Parts of a trace that vmap may refuse after it has recorded some ops.
#include "reel/core/graph/graph_builder.h"
#include "reel/frontend/transforms/row_batch.h"

namespace reel {

Tensors record_attempt(const std::function<Tensors()>& part) {
  GraphBuilder attempt("attempt", "vmap");
  Tensors made, outputs;
  Ref<Graph> graph;
  {
    ModeScope scope(attempt.scope());
    made = part();
    for (const Tensor& x : made)
      if (x.is_defined()) outputs.push_back(x);
    graph = attempt.finish(outputs);
  }
  outputs = thread_mode.builder->inline_part(*graph, attempt.captured());
  std::size_t next = 0;
  for (Tensor& x : made)
    if (x.is_defined()) x = outputs[next++];
  return made;
}

}  // namespace reel
