#include "reel/trace/executors/leaves/residual_slices.h"

#include "reel/core/ops.h"
#include "reel/core/ops/list/list.h"
#include "reel/trace/executors/loop/loop_types.h"

namespace reel {

Tensor ResidualSlices::slice(std::int64_t position) const {
  need(position);
  return step_of_residual(*slices_, position);
}

Tensor ResidualSlices::slices_of_chunk(std::int64_t position, const Dim& chunk) const {
  need(position);
  Tensors slices;
  const std::int64_t first = loop_.first_step_at(position);
  for (std::int64_t k = first; k < first + loop_.steps_at(position); ++k)
    slices.push_back(step_of_residual(*slices_, k));
  return slices_->type().is_list() ? make_list(slices_->type().element(), slices)
                                   : stack(slices, chunk);
}

char* ResidualSlices::data(std::int64_t position) const {
  need(position);
  return residual_->steps->data(residual_->index, loop_.first_step_at(position));
}

}  // namespace reel
