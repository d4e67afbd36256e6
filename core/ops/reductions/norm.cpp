#include "reel/core/ops/reductions/norm.h"

#include <algorithm>
#include <cmath>

#include "reel/core/op/bind.h"
#include "reel/core/op/vjp.h"
#include "reel/core/ops.h"
#include "reel/core/ops/reductions/reduce.h"

namespace reel {
namespace {

/// Returns Σ (x scale)², added in lanes, so that the order depends on the count only.
template <class T>
__attribute__((optimize("O3"))) double sum_of_squares(const T* x, std::int64_t count,
                                                      double scale) {
  constexpr int kLanes = 16;
  double lanes[kLanes] = {};
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes)
    for (int k = 0; k < kLanes; ++k) {
      const double scaled = static_cast<double>(x[i + k]) * scale;
      lanes[k] += scaled * scaled;
    }
  for (; i < count; ++i) {
    const double scaled = static_cast<double>(x[i]) * scale;
    lanes[i % kLanes] += scaled * scaled;
  }
  double sum = 0;
  for (const double lane : lanes) sum += lane;
  return sum;
}

/// Squares of any number of floats fit into doubles.
double norm_of(const float* x, std::int64_t count) {
  return std::sqrt(sum_of_squares(x, count, 1));
}
/// Scales elements by the power of two that makes the largest about 1.
double norm_of(const double* x, std::int64_t count) {
  double largest = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const double size = std::abs(x[i]);
    if (!(size <= largest)) largest = size;
    if (size != size) return size;
  }
  if (largest == 0 || std::isinf(largest)) return largest;
  // For the smallest numbers the scale would be infinite.
  const int exponent = std::max(std::ilogb(largest), -1000);
  return std::ldexp(std::sqrt(sum_of_squares(x, count, std::ldexp(1, -exponent))), exponent);
}

}  // namespace

// x̄ = x / y ȳ, 0 where y is 0.
const Op norm_op{
    .name = "norm",
    .type =
        [](TypeArgs& a) {
          check_float(a.op.name, a.in[0], "cast it to f32 or f64");
          a.out.push_back(TensorType(f64));
        },
    .kernel =
        [](KernelArgs& a) {
          const Tensor& x = a.input(0);
          const std::int64_t count = x.type().numel();
          *a.make().data<double>() =
              x.dtype() == f32 ? norm_of(x.data<float>(), count) : norm_of(x.data<double>(), count);
        },
    .vjp =
        [](Vjp& at) {
          const DType dtype = at.input_type(0).dtype();
          const Tensor y = cast(at.output(), dtype), is_zero = equal(y, 0);
          const Tensor g = where(is_zero, 0, cast(at.cotangent(), dtype));
          at.add(0, at.input(0) / where(is_zero, 1, y) * g);
        },
    .reads = {.inputs = 1, .outputs = 1},
    .samples =
        [] {
          const auto sample = [](const Dims& dims) {
            return OpSample{{{TensorType(f32, dims), 0.5, 2}}};
          };
          return OpSamples{sample({}), sample({7}), sample({2, 20}), sample({0, 3}),
                           sample({Dim("batch", 2), Dim("feature", 3)})};
        },
    .fails = never_fails,
    .padding = Padding::dropped,
};

Tensor euclidean_norm(const Tensor& x) {
  return bind(norm_op, {without_padding(x, all_positions("norm", x), 0.)});
}

}  // namespace reel
