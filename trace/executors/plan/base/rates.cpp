#include "reel/trace/executors/plan/base/rates.h"

#include <algorithm>
#include <cstring>

#include "reel/core/op/op.h"
#include "reel/core/ops/elementwise/elementwise.h"
#include "reel/core/ops/products/products.h"
#include "reel/trace/executors/plan/base/plan_views.h"
#include "reel/trace/executors/plan/base/profile.h"

namespace reel {
namespace {

/// Returns the seconds of one call: the least of several series, to exclude other load. Series are
/// long enough for the clock. An uncounted one before them touches all pages and wakes the core.
template <class Fn>
double seconds_of(Fn&& fn) {
  constexpr int kSeries = 16;
  constexpr std::int64_t kNanoseconds = 50'000;
  const auto nanoseconds_of = [&](std::int64_t calls) {
    const std::int64_t start = nanoseconds_now();
    for (std::int64_t k = 0; k < calls; ++k) fn();
    return std::max<std::int64_t>(nanoseconds_now() - start, 1);
  };
  std::int64_t calls = 1;
  while (nanoseconds_of(calls) < kNanoseconds) calls *= 2;
  std::int64_t least = nanoseconds_of(calls);
  for (int i = 1; i < kSeries; ++i) least = std::min(least, nanoseconds_of(calls));
  return static_cast<double>(least) * 1e-9 / static_cast<double>(calls);
}

Tensor of_ones(const Dims& dims) {
  Tensor x(allocate_block(TensorType(f32, dims)));
  std::fill_n(x.data<float>(), x.type().numel(), 1.f);
  return x;
}

/// As above, for a kernel as plans call it.
template <class... In>
double seconds_of(const Op& op, const Attrs* attrs, Tensor out, const In&... inputs) {
  const OpInput in[] = {inputs...};
  return seconds_of([&] {
    KernelArgs args{op, attrs, in, false, {&out.type(), 1}, {&out, 1}};
    op.kernel(args);
  });
}

Rates measure() {
  constexpr std::int64_t kRows = 16, kSize = 256, kElements = 4096, kBytes = 128 * 1024;
  const AttrsRef product = make_attrs(DotAttrs{{1}, {0}, {}, {}});
  const double dot = seconds_of(dot_op, product.get(), of_ones({kRows, kSize}),
                                of_ones({kRows, kSize}), of_ones({kSize, kSize}));
  // Blocks begin at a cache line, as all values do: some processors copy others at a tenth of the
  // speed.
  const Tensor from = of_ones({kBytes / 4}), to = of_ones({kBytes / 4});
  const double copy = seconds_of([&] {
    std::memcpy(to.data<float>(), from.data<float>(), kBytes);
    from.data<float>()[0] = to.data<float>()[1] + 1;  // each copy depends on the one before
  });
  const double sigmoids =
      seconds_of(sigmoid_op, nullptr, of_ones({kElements}), of_ones({kElements}));
  const double call = seconds_of(sigmoid_op, nullptr, of_ones({1}), of_ones({1}));
  return {2. * kRows * kSize * kSize / dot, 2. * kBytes / copy, kElements / sigmoids, call};
}

}  // namespace

const Rates& machine_rates() {
  static const Rates rates = measure();
  return rates;
}

}  // namespace reel
