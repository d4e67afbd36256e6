// scatter by sum, mean, max, min, logsumexp, and scatter_argmax, beside loops over all elements.
#include <cmath>
#include <functional>
#include <limits>

#include "reel/core/functions/scatter.h"
#include "reel/tests/gradients.h"
#include "reel/tests/modes.h"

namespace reel {
namespace {

const double kNan = std::numeric_limits<double>::quiet_NaN(),
             kInf = std::numeric_limits<double>::infinity();

class ScatterByTest : public InEveryMode {
 protected:
  const Dim batch{"batch", 3}, time{"time", tensor({4, 0, 3}, {batch})}, to{"to", 3};
  /// Elements over {batch, time}, with NaN in padding.
  const Tensor x =
      where(mask(time), tensor({1, -2, 3, 4, 0, 0, 0, 0, 5, 5, -7, 0}, {batch, time}, f64),
            scalar(kNan, f64));
  /// Position 1 has no element in the last entry; 99 is padding.
  const Tensor indices = tensor({0, 1, 0, -1, 99, 99, 99, 99, 2, 2, 0, 99}, {batch, time});

  Tensor scattered(const Dims& over, const ScatterOptions& options) {
    return run([=, this](const Tensor& x, const Tensor& i) {
      return scatter(x, i, over, to, options);
    })(x, indices);
  }
};
REEL_IN_EVERY_MODE(ScatterByTest);

TEST_P(ScatterByTest, ReducesEachEntry) {
  const Tensor sums = scattered({time}, {});
  EXPECT_EQ(sums.dims(), (Dims{batch, to}));
  expect_values(sums, {4, -2, 4, 0, 0, 0, -7, 0, 10});
  expect_values(scattered({time}, {.by = ScatterBy::mean}), {2, -2, 4, 0, 0, 0, -7, 0, 5});
  expect_values(scattered({time}, {.by = ScatterBy::max}),
                {3, -2, 4, -kInf, -kInf, -kInf, -7, -kInf, 5});
  expect_values(scattered({time}, {.by = ScatterBy::min}),
                {1, -2, 4, kInf, kInf, kInf, -7, kInf, 5});
  expect_values(
      scattered({time}, {.by = ScatterBy::logsumexp}),
      {std::log(std::exp(1) + std::exp(3)), -2, 4, -kInf, -kInf, -kInf, -7, -kInf, 5 + std::log(2)},
      1e-14);
}

TEST_P(ScatterByTest, ReducesAllEntriesTogether) {
  expect_values(scattered({batch, time}, {.by = ScatterBy::mean}), {-1, -2, 14. / 3}, 1e-15);
  expect_values(scattered({batch, time}, {.by = ScatterBy::max}), {3, -2, 5});
}

TEST_P(ScatterByTest, PositionsWithoutElementsHaveTheFillValue) {
  for (const ScatterBy by :
       {ScatterBy::sum, ScatterBy::mean, ScatterBy::max, ScatterBy::min, ScatterBy::logsumexp}) {
    const Tensor y = scattered({time}, {.by = by, .fill = 0.25});
    const std::vector<double> values = values_of(y);
    for (const std::size_t i : {3, 4, 5, 7}) EXPECT_EQ(values[i], 0.25);
    EXPECT_NEAR(values[1], -2, 1e-15);
  }
}

TEST_P(ScatterByTest, IntegersReachTheirExtremes) {
  const Dim n("n", 3);
  const std::int32_t low = std::numeric_limits<std::int32_t>::min(),
                     high = std::numeric_limits<std::int32_t>::max();
  const auto f = [&](ScatterBy by) {
    return run([=, this](const Tensor& x, const Tensor& i) {
      return scatter(x, i, {n}, to, {.by = by});
    })(tensor(std::vector<std::int32_t>{low, high, 5}, {n}), tensor({0, 0, 1}, {n}));
  };
  expect_values(f(ScatterBy::min), {double(low), 5, double(high)});
  expect_values(f(ScatterBy::max), {double(high), 5, double(low)});
}

TEST_P(ScatterByTest, FurtherDimsOfXAreKept) {
  const Dim feature("feature", 2);
  const Tensor y = run([&](const Tensor& x, const Tensor& i) {
    return scatter(x, i, {time}, to, {.by = ScatterBy::mean, .fill = -1});
  })(stack({x, x * 2.0}, feature), indices);
  EXPECT_EQ(y.dims(), (Dims{feature, batch, to}));
  expect_values(y, {2, -2, 4, -1, -1, -1, -7, -1, 5, 4, -4, 8, -1, -1, -1, -14, -1, 10});
}

TEST_P(ScatterByTest, ArgmaxGivesTheFirstOfTheLargest) {
  const auto f =
      run([&](const Tensor& x, const Tensor& i) { return scatter_argmax(x, i, time, to); });
  const Tensor y = f(x, indices);
  EXPECT_EQ(y.type(), TensorType(i32, {batch, to}));
  expect_values(y, {2, 1, 3, -1, -1, -1, 2, -1, 0});
  const Dim n("n", 4);
  expect_values(run([&](const Tensor& x, const Tensor& i) {
                  return scatter_argmax(x, i, n, to, 7);
                })(tensor({1., kNan, kNan, -kInf}, {n}, f64), tensor({0, 0, 0, 2}, {n})),
                {1, 7, 3});
}

TEST_P(ScatterByTest, GradientsAreThoseOfTheReductions) {
  const Dim n("n", 5);
  const Tensor i = tensor({0, 2, 0, 2, 2}, {n}), z = tensor({0.5, -1., 0.3, 2., 1.1}, {n}, f64);
  for (const ScatterBy by :
       {ScatterBy::sum, ScatterBy::mean, ScatterBy::max, ScatterBy::min, ScatterBy::logsumexp}) {
    const auto loss = [=, this](const Tensor& z) {
      return sum(square(scatter(z, i, {n}, to, {.by = by, .fill = 0.5})) *
                 tensor({1., 2., 3.}, {to}, f64));
    };
    expect_gradient_of(loss, z, run(grad(loss))(z));
    const auto second = [=](const Tensor& z) { return sum(square(grad(loss)(z))); };
    expect_gradient_of(second, z, run(grad(second))(z));
  }
}

TEST_P(ScatterByTest, LogsumexpOfInfinitiesHasNoNan) {
  const Dim n("n", 4);
  const auto f = [&](const Tensor& z) {
    return scatter(z, tensor({0, 0, 1, 1}, {n}), {n}, to, {.by = ScatterBy::logsumexp});
  };
  const Tensor z = tensor({-kInf, -kInf, -kInf, 2.}, {n}, f64);
  expect_values(run(f)(z), {-kInf, 2, -kInf});
  const auto loss = [&](const Tensor& z) { return sum(slice(f(z), 0, 1, 2)); };
  expect_values(run(grad(loss))(z), {0, 0, 0, 1});
}

TEST_P(ScatterByTest, RowsOfVmapHaveTheirOwnPositions) {
  const Dim n("n", 3), row("row", 2);
  const auto f = run([&](const Tensor& x, const Tensor& i) {
    return vmap([&](const Tensor& x,
                    const Tensor& i) { return scatter(x, i, {n}, to, {.by = ScatterBy::mean}); },
                row)(x, i);
  });
  expect_values(f(tensor({1., 2., 3., 4., 5., 7.}, {row, n}), tensor({0, 0, 2, 1, 2, 2}, {row, n})),
                {1.5, 0, 3, 0, 4, 6});
}

TEST(ScatterByErrorsTest, NameTheDims) {
  const Dim n("n", 3), m("m", 2), to("to", 4);
  const Tensor i = tensor({0, 1, 2}, {n});
  EXPECT_EQ(message_of<ShapeError>([&] { scatter(ones({m}), i, {n}, to); }),
            "scatter: x f32[m=2] lacks the dim n=3 of the indices");
  EXPECT_EQ(message_of<ShapeError>([&] {
              scatter(ones({n, m}), i, {m}, to);
            }),
            "scatter: indices i32[n=3] lack the dim m=2 to replace");
  EXPECT_EQ(message_of<ArgumentError>([&] { scatter(ones({n}), i, {n}, 4); }),
            "scatter: the dim of the result needs a name, got 4");
  EXPECT_EQ(message_of<DTypeError>([&] { scatter_argmax(ones({n}), ones({n}), n, to); }),
            "scatter_argmax: indices are integers, got f32[n=3]");
  EXPECT_EQ(message_of<DTypeError>([&] { scatter(i, i, {n}, to, {.by = ScatterBy::mean}); }),
            "scatter: a mean or logsumexp of i32[n=3], integers; cast them");
  EXPECT_THROW(scatter(ones({n}), tensor({0, 4, 0}, {n}), {n}, to), IndexError);
}

}  // namespace
}  // namespace reel
