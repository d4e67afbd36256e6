#include "reel/onnx/ops/sizes.h"

#include <algorithm>

#include "reel/core/base/errors.h"
#include "reel/core/base/str.h"
#include "reel/core/functions/creation.h"
#include "reel/core/functions/elementwise.h"
#include "reel/core/functions/shape.h"
#include "reel/core/types/mode.h"

namespace reel::imported {

std::vector<std::int64_t> numbers_of(const Dims& sizes) {
  std::vector<std::int64_t> numbers;
  for (const Dim& size : sizes) numbers.push_back(size.size());
  return numbers;
}

Value value_of_sizes(const Dims& sizes) {
  if (is_known(sizes)) return Value::integers(numbers_of(sizes));
  Tensors elements;
  for (const Dim& size : sizes) elements.push_back(value_of_size(size).tensor);
  Value value = Value::of(stack(elements));
  value.sizes = sizes;
  return value;
}

Value value_of_size(const Dim& size) {
  if (size.has_size()) return Value::integer(size.size());
  Value value = Value::of(cast(size.lengths(), i64));
  value.sizes = Dims{size};
  return value;
}

Tensor reshape_to(const Tensor& x, const Dims& sizes) {
  if (x.dims() == sizes) return x;
  if (is_known(sizes)) return reshape(x, numbers_of(sizes));
  const auto unknown =
      std::count_if(sizes.begin(), sizes.end(), [](const Dim& size) { return !size.has_size(); });
  if (unknown > 1) {
    for (const Dim& size : sizes)
      if (!size.has_size() && !contains(x.dims(), size))
        throw TraceError(str("Reshape: ", x.type(),
                             " gets more than one size that only a run knows, ",
                             "and not all are sizes of its axes"));
    return reshape(x, sizes);
  }
  std::vector<std::int64_t> numbers;
  for (const Dim& size : sizes) numbers.push_back(size.has_size() ? size.size() : -1);
  return reshape(x, numbers);
}

}  // namespace reel::imported
