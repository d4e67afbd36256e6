#include "reel/onnx/ops/sizes.h"

#include <algorithm>

#include "reel/core/base/errors.h"
#include "reel/core/base/str.h"
#include "reel/core/functions/checks.h"
#include "reel/core/functions/creation.h"
#include "reel/core/functions/elementwise.h"
#include "reel/core/functions/indices.h"
#include "reel/core/functions/shape.h"
#include "reel/core/types/mode.h"
#include "reel/onnx/plain_dims.h"
#include "reel/onnx/run_graph.h"

namespace reel::imported {

Dim computed_size() { return Dim("a number computed from sizes"); }

bool holds_computed_size(const Call& call, std::size_t input) {
  const auto& sizes = call.in(input).sizes;
  return sizes && std::any_of(sizes->begin(), sizes->end(),
                              [](const Dim& size) { return size.is_undefined(); });
}

bool holds_known_sizes(const Call& call, std::size_t input) {
  return call.in(input).sizes ? !holds_computed_size(call, input) : call.is_known(input);
}

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

Tensor scalar_of(const Tensor& x) { return x.rank() ? reshape(x, std::vector<std::int64_t>()) : x; }

Dim size_of_a_run(const Tensor& size) {
  const Tensor number = cast(scalar_of(size), f64);
  assert_that(number >= 0. && number < 0x1p31, "a size is at least 0 and below 2^31", number);
  return bounded_size_of_a_run(size);
}

Dim bounded_size_of_a_run(const Tensor& size) {
  return with_plain_dims(range(Dim("size", cast(scalar_of(size), i32)))).dim(0);
}

std::vector<Number> elements_of(const Call& call, std::size_t input) {
  std::vector<Number> elements;
  const auto add = [&](const Value& part) {
    if (!part.tensor.is_traced()) {
      const ModeScope aside({});
      for (const std::int64_t number : cast(part.tensor, i64).to_vector<std::int64_t>())
        elements.push_back({number, {}});
      return;
    }
    for (std::int64_t i = 0; i < part.tensor.dim(0).size(); ++i)
      elements.push_back({{}, cast(gather(part.tensor, Value::integer(i).tensor, 0), i64)});
  };
  for (const Node& node : call.scope().graph().nodes)
    if (node.op == "Concat" && node.domain.empty() &&
        node.outputs[0] == call.node().inputs[input]) {
      for (const std::string& name : node.inputs) add(call.scope().get(name));
      return elements;
    }
  add(call.in(input));
  return elements;
}

Dims new_axes(const Call& call, std::size_t input) {
  if (holds_known_sizes(call, input)) return call.known_sizes(input);
  Dims axes;
  for (const Number& number : elements_of(call, input))
    axes.push_back(number.known ? Dim(*number.known) : size_of_a_run(number.traced));
  return axes;
}

Tensor reshape_to(const Tensor& x, const Dims& sizes) {
  if (x.dims() == sizes) return x;
  if (is_known(sizes)) return reshape(x, numbers_of(sizes));
  const auto unknown =
      std::count_if(sizes.begin(), sizes.end(), [](const Dim& size) { return !size.has_size(); });
  const bool are_axes = std::all_of(sizes.begin(), sizes.end(), [&](const Dim& size) {
    return size.has_size() || contains(x.dims(), size);
  });
  const bool is_empty = std::any_of(sizes.begin(), sizes.end(), [](const Dim& size) {
    return size.has_size() && size.size() == 0;
  });
  // An unknown size does not follow from the others if the tensor is empty.
  if (are_axes && (unknown > 1 || is_empty)) return reshape(x, sizes);
  if (unknown > 1)
    throw TraceError(str("Reshape: ", x.type(), " gets more than one size that only a run knows, ",
                         "and not all are sizes of its axes"));
  std::vector<std::int64_t> numbers;
  for (const Dim& size : sizes) numbers.push_back(size.has_size() ? size.size() : -1);
  return reshape(x, numbers);
}

}  // namespace reel::imported
