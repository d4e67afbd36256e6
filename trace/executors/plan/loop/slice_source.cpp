#include "reel/trace/executors/plan/loop/slice_source.h"

#include "reel/core/ops/list/list.h"
#include "reel/trace/executors/leaves/list_slices.h"
#include "reel/trace/executors/loop/loop_types.h"

namespace reel {

void WindowedSlices::set(Plan& body, std::size_t input, std::int64_t position) const {
  if (body.input_type(input).is_list())
    body.set_input(input, is_chunked() ? slices_of_chunk(position, Dim(0)) : slice(position));
  else if (char* const data = this->data(position))
    place_input(body, input, data);
  else  // a tensor that stands for residuals of an inner loop
    body.set_input(input, slice(position));
}

SliceSource make_slice_source(const PlannedLoop& loop, const LeafContext& run, std::size_t index,
                              const Tensor& slices, std::int64_t& limit, BlockRows* rows) {
  if (residual_value(slices)) return WindowedSlices(run, slices);
  const TensorType& type = operands_of(run.attrs, run.inputs).slices[index];
  if (slices.type().is_list()) {
    Tensors elements = list_slices(run, index, slices, limit);
    // An iteration that ran twice made the dims of its residuals twice.
    if (!run.is_chunked())
      for (Tensor& element : elements) element = named_alike(element, slice_type(type));
    return ListSlices(std::move(elements));
  }
  if (rows) return RowSlices(*rows, index, type);
  return DenseSlices(loop, slices, type);
}

}  // namespace reel
