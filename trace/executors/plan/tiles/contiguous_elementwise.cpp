#include "reel/trace/executors/plan/tiles/contiguous_elementwise.h"

#include "reel/core/ops/elementwise/element_loop.h"
#include "reel/core/ops/elementwise/pointwise_kernels.h"

namespace reel {

std::optional<ContiguousElementwise> contiguous_elementwise(const Op& op,
                                                            std::span<const TensorType> in,
                                                            const TensorType& result) {
  const auto loop = element_loop(op);
  if (!loop) return {};
  const PointwiseTable& table = pointwise_table();
  const int column = column_of(in[0].dtype());
  ContiguousElementwise flat{.count = result.numel()};
  if (const Unary* unary = std::get_if<Unary>(&*loop)) {
    flat.unary = table.unary[static_cast<int>(*unary)][column];
  } else if (std::get_if<CastLoop>(&*loop)) {
    flat.unary = table.cast[column][column_of(result.dtype())];
  } else if (const Binary* binary = std::get_if<Binary>(&*loop)) {
    if (in[0] == in[1]) flat.binary = table.flat[static_cast<int>(*binary)][column];
  }
  if (!flat.unary && !flat.binary) return {};
  return flat;
}

}  // namespace reel
