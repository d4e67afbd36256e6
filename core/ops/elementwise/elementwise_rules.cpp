#include "reel/core/ops/elementwise/elementwise_rules.h"

#include "reel/core/base/errors.h"
#include "reel/core/base/str.h"
#include "reel/core/ops.h"

namespace reel {

[[noreturn]] void refuse_dtype(std::string_view op, Takes what, std::string_view role,
                               const TensorType& type) {
  constexpr const char* kNames[] = {"floats", "numbers", "integers", "booleans"};
  constexpr DType kRepairs[] = {f32, f32, i32, boolean};
  const int i = static_cast<int>(what);
  throw DTypeError(str(op, ": takes ", kNames[i], ", but ", role, " is ", type,
                       "; cast it, e.g. cast(", role, ", ", kRepairs[i], ')'));
}

OpSamples unary_samples(double low, double high, DType dtype) {
  const Dim batch("batch", 3), feature("feature", 4);
  const Dim time("time", tensor(std::vector<std::int32_t>{3, 1, 2}, {batch}));
  OpSamples samples;
  for (const Dims& dims :
       {Dims{2, 3}, Dims{}, Dims{19}, Dims{0, 4}, Dims{batch, feature}, Dims{batch, time}})
    samples.push_back({{{TensorType(dtype, dims), low, high}}});
  return samples;
}

OpSamples binary_samples(double low_a, double high_a, double low_b, double high_b, DType dtype) {
  const Dim batch("batch", 3), feature("feature", 4);
  const Dim time("time", tensor(std::vector<std::int32_t>{3, 1, 2}, {batch}));
  const std::pair<Dims, Dims> shapes[] = {
      {{2, 3}, {2, 3}},
      {{}, {}},
      {{2, 3}, {}},
      {{}, {5}},
      {{2, 17}, {17}},
      {{3}, {2, 3}},
      {{3, 1}, {1, 4}},
      {{2, 1, 3}, {4, 1}},
      {{0, 3}, {3}},
      {{batch, feature}, {feature}},
      {{batch}, {batch, feature}},
      {{batch, feature}, {feature, batch}},
      {{batch, time}, {batch}},
      {{}, {batch, time}},
      {{time, batch, feature}, {batch, time, feature}},
  };
  OpSamples samples;
  for (const auto& [a, b] : shapes)
    samples.push_back(
        {{{TensorType(dtype, a), low_a, high_a}, {TensorType(dtype, b), low_b, high_b}}});
  return samples;
}

}  // namespace reel
