#include "reel/trace/executors/plan/loop/windowed_slices.h"

#include "reel/core/ops/list/list.h"
#include "reel/trace/executors/plan/loop/place_input.h"

namespace reel {

void WindowedSlices::set(Plan& body, std::size_t input, std::int64_t position) const {
  if (body.input_type(input).is_list()) return body.set_input(input, list(position));
  const std::int64_t first = loop_->first_step_at(position);
  residual_->steps->need(first, loop_->steps_at(position));
  if (char* const data = residual_->steps->data(residual_->index, first))
    place_input(body, input, data);
  else  // a tensor that stands for saved steps of an inner loop
    body.set_input(input, residual_->steps->tensor(residual_->index, position));
}

/// Returns the list that the body reads: an element of a list of lists, or the elements of a chunk.
Tensor WindowedSlices::list(std::int64_t position) const {
  const std::int64_t first = loop_->first_step_at(position), count = loop_->steps_at(position);
  residual_->steps->need(first, count);
  if (!loop_->loop().chunking.over_chunks) return residual_->steps->tensor(residual_->index, first);
  Tensors elements;
  for (std::int64_t k = first; k < first + count; ++k)
    elements.push_back(residual_->steps->tensor(residual_->index, k));
  return make_list(slices_->type().element(), elements);
}

Tensor WindowedSlices::slice(std::int64_t position) const {
  residual_->steps->need(position, 1);
  return residual_->steps->tensor(residual_->index, position);
}

}  // namespace reel
