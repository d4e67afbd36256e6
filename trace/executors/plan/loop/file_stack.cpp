#include "reel/trace/executors/plan/loop/file_stack.h"

#include "reel/trace/executors/loop/loop_types.h"
#include "reel/trace/executors/plan/loop/list_stack.h"

namespace reel {

char* FileStack::place(std::int64_t position) const {
  return steps_->place(remove_chunk_dim(stack_.attrs(), stack_.term()),
                       stack_.loop.first_step_at(position));
}

void FileStack::finish(Tensor& out, const Dim& made) const {
  const TensorType step = remove_chunk_dim(stack_.attrs(), stack_.term());
  const Dim& dim = stack_.attrs().trips.makes_dim ? made : stack_.leaf().dim;
  out = make_residual(stacked(step, dim.has_size() ? dim : Dim(stack_.iterations.count())),
                      Ref<ResidualSource>(steps_.get()), 0);
}

void FileListStack::put(const Tensor& term, std::int64_t position) const {
  each_element(stack_.loop, term, position,
               [&](std::int64_t at, const Tensor& element) { steps_->put(at, element); });
}

void FileListStack::finish(Tensor& out, const Dim&) const {
  const LoopAttrs& attrs = stack_.attrs();
  const TensorType element = steps_->type().value_or(type_without_iterations(
      attrs, stack_.loop.input_types, remove_chunk_dim(attrs, stack_.formal())));
  out = make_residual(element.as_list(), Ref<ResidualSource>(steps_.get()), 0);
}

}  // namespace reel
