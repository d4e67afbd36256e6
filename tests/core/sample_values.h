// tests/core/sample_values.h — the inputs that an op's sample describes.
#pragma once

#include <cmath>
#include <random>
#include <vector>

#include "reel/core/op/op.h"
#include "reel/core/ops.h"

namespace reel {

/// Returns a scalar if `dims` is empty, where tensor() would make a plain axis.
inline Tensor tensor_of(const std::vector<double>& values, const Dims& dims) {
  return dims.empty() ? scalar(values.at(0), f64) : tensor(values, dims);
}

/// Returns whether there is a tensor to take a gradient of.
inline bool has_floating(const Tensors& inputs) {
  for (const Tensor& x : inputs)
    if (is_float(x.dtype())) return true;
  return false;
}

/// Returns the inputs of a sample, the same at every call. With `as_f64`, floating inputs are f64.
inline Tensors draw_sample(const OpSample& sample, bool as_f64, std::uint32_t seed = 7) {
  std::mt19937 random(seed);
  Tensors inputs;
  for (const SampleInput& input : sample.inputs) {
    std::uniform_real_distribution<double> real(input.low, input.high);
    std::uniform_int_distribution<std::int64_t> integer(
        static_cast<std::int64_t>(std::ceil(input.low)),
        static_cast<std::int64_t>(std::floor(input.high)));
    std::vector<double> values(static_cast<std::size_t>(input.type.numel()));
    for (double& value : values) {
      if (is_float(input.type.dtype()))
        value = real(random);
      else
        value = static_cast<double>(integer(random));
    }
    DType dtype = input.type.dtype();
    if (as_f64 && is_float(dtype)) dtype = f64;
    inputs.push_back(cast(tensor_of(values, input.type.dims()), dtype));
  }
  return inputs;
}

}  // namespace reel
