#include "reel/onnx/ops/rows.h"

#include "reel/core/functions/creation.h"
#include "reel/core/functions/elementwise.h"
#include "reel/core/functions/shape.h"
#include "reel/onnx/ops/sizes.h"

namespace reel::imported {

Tensor transpose_first_two(const Tensor& x) {
  std::vector<Axis> order{1, 0};
  for (int i = 2; i < x.rank(); ++i) order.emplace_back(i);
  return transpose(x, Axes(order));
}

Tensor reversed_positions(const Dim& time, const Tensor& lengths) {
  const Tensor length = reshape_to(lengths, Dims{lengths.dims()[0], Dim(1)});
  const Tensor position = range(time, i64);
  return where(position < length, length - 1 - position, position + length * 0);
}

}  // namespace reel::imported
