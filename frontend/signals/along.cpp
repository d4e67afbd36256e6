#include "reel/frontend/signals/along.h"

#include <vector>

#include "reel/core/ops.h"

namespace reel::detail {

Tensor product_along(const Tensor& x, int axis, const Tensor& matrix) {
  if (x.type().is_named()) return matmul(x, matrix, matrix.dims()[0]);
  const int last = x.rank() - 1;
  if (axis == last) return matmul(x, matrix);
  std::vector<Axis> there, back;
  for (int i = 0; i <= last; ++i) {
    if (i != axis) there.emplace_back(i);
    back.emplace_back(i < axis ? i : i == axis ? last : i - 1);
  }
  there.emplace_back(axis);
  return transpose(matmul(transpose(x, Axes(there)), matrix), Axes(back));
}

}  // namespace reel::detail
