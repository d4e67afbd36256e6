#include "reel/trace/executors/plan/loop/slice_source.h"

#include "reel/core/ops/list/list.h"
#include "reel/trace/executors/loop/loop_types.h"

namespace reel {
namespace {

/// Returns the parts of a list that the iterations of a chunked loop read.
Tensors lists_of_chunks(const Chunks& chunks, const Tensor& list) {
  const Tensors elements = list_elements(list);
  Tensors result;
  for (std::int64_t k = 0; k < chunks.count(); ++k)
    result.push_back(part_of_list(list, elements, chunks.first(k), chunks.steps_of(k)));
  return result;
}

}  // namespace

SliceSource make_slice_source(const PlannedLoop& loop, std::size_t index, const Tensor& slices,
                              Iterations& iterations, BlockRows* rows) {
  const LoopAttrs& attrs = loop.loop();
  if (const ResidualValue* const residual = residual_value(slices))
    return WindowedSlices(loop, *residual, slices);
  if (slices.type().is_list() && attrs.chunking.over_chunks)
    return ListSlices(lists_of_chunks(loop.chunks, slices));
  if (slices.type().is_list()) {
    const TensorType& formal = attrs.body.graph->types[body_inputs(attrs).slices[index]];
    Tensors elements = slices_of_list(slices, formal, iterations.limit);
    // An iteration that ran twice made the dims of its residuals twice.
    for (Tensor& element : elements)
      element =
          named_alike(element, slice_type(operands_of(attrs, loop.input_types).slices[index]));
    return ListSlices(std::move(elements));
  }
  const TensorType& type = operands_of(attrs, loop.input_types).slices[index];
  if (rows) return RowSlices(*rows, index, type);
  return DenseSlices(loop, slices, type);
}

}  // namespace reel
