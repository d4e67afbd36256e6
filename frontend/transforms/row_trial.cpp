// Parts of a trace that vmap may refuse after it has recorded some ops.
#include "reel/core/graph/graph_builder.h"
#include "reel/frontend/transforms/row_batch.h"

namespace reel {

Tensors record_trial(const std::function<Tensors()>& part) {
  GraphBuilder trial("trial", "vmap");
  Tensors made, outputs;
  Ref<Graph> graph;
  {
    ModeScope scope(trial.scope());
    made = part();
    for (const Tensor& x : made)
      if (x.is_defined()) outputs.push_back(x);
    graph = trial.finish(outputs);
  }
  outputs = thread_mode.builder->inline_part(*graph, trial.captured());
  std::size_t next = 0;
  for (Tensor& x : made)
    if (x.is_defined()) x = outputs[next++];
  return made;
}

}  // namespace reel
