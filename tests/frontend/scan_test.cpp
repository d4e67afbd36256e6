// scan in every mode: plain tensors, arrays, bits. Most of what it promises is in
// tests/cases/.
#include <limits>

#include "reel/tests/modes.h"

namespace reel {
namespace {

using ScanTest = InEveryMode;
REEL_IN_EVERY_MODE(ScanTest);

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

class Ragged {
 public:
  const Dim batch{"batch", 3};
  const Dim time{"time", tensor({3, 2, 1}, {batch})};
  Tensor x() const { return tensor({1., 2., 3., 4., 5., kNan, 7., kNan, kNan}, {batch, time}); }
};

TEST_P(ScanTest,
       EndedEntriesMakeNoNanInGradients) {  // with a shared parameter and a captured tensor
  const Ragged r;
  const Tensor scale = tensor({1., 2., 3.}, {r.batch});
  const auto loss = [&](std::pair<Tensor, Tensor> xw) {
    return sum(scan(Scan{
                        .spatial_dim = r.time,
                        .initial = ones({r.batch}),
                        .xs = xw.first,
                        .body =
                            [&](Tensor x, Tensor s) {
                              return std::pair{None{}, s * xw.second / (x * scale)};
                            },
                    })
                   .state,
               r.batch);
  };
  const Tensor holes = tensor({1., 2., 4., 4., 5., 0., 7., 0., 0.}, {r.batch, r.time});
  const auto [dx, dw] = run(grad(loss))(std::pair{holes, scalar(1.0)});
  expect_values(dx, {-.125, -.0625, -.03125, -.0125 / 4, -.01 / 4, 0, -1. / 49 / 3, 0, 0});
  expect_values(dw, {3 * .125 + 2 * .05 / 4 + 1. / 7 / 3});
}

TEST_P(ScanTest, PlainTensorsAlongTheFirstAxis) {
  const auto f = run([](Tensor x) {
    auto [ys, last, dim] = scan(Scan{.initial = 0.0, .xs = x, .body = [](Tensor x, Tensor s) {
                                       return std::pair{s + x, s + x};
                                     }});
    return std::tuple{ys, last};
  });
  const auto [sums, total] = f(tensor({3., 1., 4., 1., 5., 9.}));
  expect_values(sums, {3, 4, 8, 9, 14, 23});
  expect_values(total, {23});
  const auto product = [](Tensor x) {
    return scan(Scan{.initial = 1.0,
                     .xs = x,
                     .body =
                         [](Tensor x, Tensor s) {
                           return std::pair{None{}, s * x};
                         }})
        .state;
  };
  expect_values(run(grad(product))(tensor({2., 3., 4.})), {12, 8, 6});
  expect_values(
      run(grad([&](Tensor x) { return sum(square(grad(product)(x))); }))(tensor({2., 3., 4.})),
      {2 * (8 * 4 + 6 * 3), 2 * (12 * 4 + 6 * 2), 2 * (12 * 3 + 8 * 2)});
}

TEST_P(ScanTest, TensorArraysInsteadOfAStack) {
  const Ragged r;
  const auto f = [&](Tensor x) {
    TensorArray array = scan(Scan{
                                 .spatial_dim = r.time,
                                 .initial = zeros({r.batch}),
                                 .xs = x,
                                 .body =
                                     [](Tensor x, Tensor s) {
                                       return std::pair{s + x, s + x};
                                     },
                                 .return_tensor_arrays = std::true_type{},
                             })
                            .ys;
    return sum(array[-1] + array[1], r.batch);
  };
  expect_values(run(f)(r.x()), {6 + 3 + 9});
  expect_values(run(grad(f))(r.x()), {2, 2, 1, 1, 1, 0, 0, 0, 0});
}

TEST_P(ScanTest, OneTraceServesAllLengthsAndPaddingNeverMatters) {
  const Dim batch("batch", 3);
  const auto energy = [&](Tensor w, Tensor frames) {
    auto [hs, last, dim] = scan(Scan{
        .spatial_dim = frames.dim("time"),
        .initial = zeros({batch}),
        .xs = frames,
        .body =
            [&](Tensor x, Tensor h) {
              Tensor next = tanh(w * h + x);
              return std::pair{next, next};
            },
    });
    return mean(square(hs), {batch, dim}) + sum(last, batch);
  };
  const auto both = run(value_and_grad(energy));
  for (const std::vector<int>& lengths : {std::vector<int>{4, 2, 1}, {7, 7, 3}, {1, 0, 1}}) {
    const Dim time("time", tensor(lengths, {batch}));
    const Tensor x = random_normal({batch, time});
    const Tensor dirty = where(mask(time), x, scalar(kNan));
    const auto [value, gradient] = both(scalar(0.5), x);
    const auto [dirty_value, dirty_gradient] = both(scalar(0.5), dirty);
    expect_same_bits(dirty_value, value);
    expect_same_bits(dirty_gradient, gradient);
    // One entry at a time gives the same.
    double total = 0, count = 0, last = 0;
    for (int b = 0; b < 3; ++b) {
      double h = 0;
      for (int t = 0; t < lengths[b]; ++t) {
        h = std::tanh(0.5 * h + values_of(x)[b * time.size() + t]);
        total += h * h;
        ++count;
      }
      last += h;
    }
    expect_values(value, {total / count + last});
  }
  EXPECT_EQ(both.trace_count(), 1);
}

TEST(ScanBits, StateThatIsUsedTwiceAndStackedHasTheSameGradientTraced) {
  const Dim batch("batch", 300), time("time", 3);
  const Tensor x = random_normal({time, batch}), w = random_normal({batch});
  const auto loss = [&](const Tensor& w) {
    const auto step = [&](const Tensor& x, const Tensor& h) {
      const Tensor next = sin(h) * w + cos(h) + x;
      return std::pair{next, next};
    };
    const auto result = scan(Scan{.spatial_dim = time, .initial = w, .xs = x, .body = step});
    return sum(square(result.ys)) + sum(result.state * w) + sum(sin(result.state));
  };
  expect_same_bits(jit(grad(loss))(w), grad(loss)(w));
}

}  // namespace
}  // namespace reel
