#include "reel/trace/executors/plan/base/rates.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "reel/core/op/op.h"
#include "reel/core/ops/elementwise/elementwise.h"
#include "reel/core/ops/products/products.h"
#include "reel/trace/executors/plan/base/plan_views.h"
#include "reel/trace/executors/plan/base/profile.h"

namespace reel {
namespace {

/// Returns the seconds of one call: the best of several series of calls, to exclude other load.
template <class Fn>
double seconds_of(int calls, Fn&& fn) {
  std::int64_t best = 0;
  for (int i = 0; i < 8; ++i) {
    const std::int64_t start = nanoseconds_now();
    for (int k = 0; k < calls; ++k) fn();
    const std::int64_t took = nanoseconds_now() - start;
    best = i ? std::min(best, took) : took;
  }
  return static_cast<double>(std::max<std::int64_t>(best, 1)) * 1e-9 / calls;
}

Tensor of_ones(const Dims& dims) {
  Tensor x(allocate_block(TensorType(f32, dims)));
  std::fill_n(x.data<float>(), x.type().numel(), 1.f);
  return x;
}

/// As above, for a kernel as plans call it.
template <class... In>
double seconds_of(int calls, const Op& op, const Attrs* attrs, Tensor out, const In&... inputs) {
  const OpInput in[] = {inputs...};
  return seconds_of(calls, [&] {
    KernelArgs args{op, attrs, in, false, {&out.type(), 1}, {&out, 1}};
    op.kernel(args);
  });
}

Rates measure() {
  constexpr std::int64_t kRows = 16, kSize = 256, kElements = 4096, kBytes = 128 * 1024;
  const AttrsRef product = make_attrs(DotAttrs{{1}, {0}, {}, {}});
  const double dot = seconds_of(8, dot_op, product.get(), of_ones({kRows, kSize}),
                                of_ones({kRows, kSize}), of_ones({kSize, kSize}));
  std::vector<char> from(kBytes, 1), to(kBytes);
  const double copy = seconds_of(16, [&] {
    std::memcpy(to.data(), from.data(), kBytes);
    from[0] = static_cast<char>(to[1] + 1);  // each copy depends on the one before
  });
  const double sigmoids =
      seconds_of(8, sigmoid_op, nullptr, of_ones({kElements}), of_ones({kElements}));
  const double call = seconds_of(64, sigmoid_op, nullptr, of_ones({1}), of_ones({1}));
  return {2. * kRows * kSize * kSize / dot, 2. * kBytes / copy, kElements / sigmoids, call};
}

}  // namespace

const Rates& machine_rates() {
  static const Rates rates = measure();
  return rates;
}

}  // namespace reel
