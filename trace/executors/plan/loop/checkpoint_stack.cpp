#include "reel/trace/executors/plan/loop/checkpoint_stack.h"

#include "reel/core/runtime/residual_source.h"
#include "reel/trace/executors/loop/loop_types.h"

namespace reel {

void CheckpointStack::finish(Tensor& out, const Dim& made) const {
  const Ref<ResidualSource> in_file = list_.in_file();
  if (!in_file) return ListStack::finish(out, made);
  const TensorType element =
      type_without_iterations(stack_.attrs(), stack_.loop.input_types, stack_.formal());
  out = make_residual(element.as_list(), in_file, 0);
}

}  // namespace reel
