#include "reel/trace/executors/leaves/list_slices.h"

#include "reel/core/ops/list/list.h"
#include "reel/trace/executors/loop/loop_types.h"

namespace reel {

Tensors list_slices(const LeafContext& loop, std::size_t index, const Tensor& list,
                    std::int64_t& limit) {
  if (!loop.is_chunked()) {
    const TensorType& formal = loop.attrs.body.graph->types[body_inputs(loop.attrs).slices[index]];
    return slices_of_list(list, formal, limit);
  }
  const Tensors elements = list_elements(list);
  Tensors result;
  for (std::int64_t k = 0; k < loop.chunks.count(); ++k)
    result.push_back(part_of_list(list, elements, loop.chunks.first(k), loop.chunks.steps_of(k)));
  return result;
}

}  // namespace reel
