// rfft, irfft, fft, ifft: sums by loops, round trips, lines alone, errors. Complex numbers against
// std::complex.
#include "reel/core/functions/transforms.h"

#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <cstdlib>
#include <limits>
#include <numbers>
#include <random>

#include "reel/core/functions/dim_arithmetic.h"
#include "reel/core/ops.h"
#include "reel/frontend/jit.h"
#include "reel/frontend/transforms/grad.h"
#include "reel/frontend/transforms/vmap.h"
#include "reel/tests/check.h"
#include "reel/tests/gradients.h"

namespace reel {
namespace {

using Numbers = std::vector<std::complex<double>>;
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

/// Returns Σ x[j] e^(-2πi jk/n) for all k, or the sums of the inverse without 1/n.
Numbers by_sums(const Numbers& x, bool is_inverse = false) {
  const auto n = static_cast<std::int64_t>(x.size());
  Numbers y(x.size());
  for (std::int64_t k = 0; k < n; ++k)
    for (std::int64_t j = 0; j < n; ++j) {
      const double turn =
          2 * std::numbers::pi * static_cast<double>(j * k % n) / static_cast<double>(n);
      y[static_cast<std::size_t>(k)] +=
          x[static_cast<std::size_t>(j)] * std::polar(1., is_inverse ? turn : -turn);
    }
  return y;
}

Numbers drawn_numbers(std::int64_t n, bool is_real) {
  std::mt19937_64 engine(static_cast<std::uint64_t>(n));
  std::normal_distribution<double> normal;
  Numbers x;
  for (std::int64_t i = 0; i < n; ++i) {
    const double re = normal(engine);
    x.emplace_back(re, is_real ? 0 : normal(engine));
  }
  return x;
}
Tensor part_of(const Numbers& x, bool is_im, DType dtype = f64) {
  std::vector<double> values;
  for (const auto& number : x) values.push_back(is_im ? number.imag() : number.real());
  return cast(tensor(values), dtype);
}
Complex complex_tensor(const Numbers& x, DType dtype = f64) {
  return {part_of(x, false, dtype), part_of(x, true, dtype)};
}

/// Returns the largest difference to the numbers, which may have more elements behind.
double difference(const Complex& y, const Numbers& expected) {
  const auto re = cast(y.re, f64).to_vector<double>(), im = cast(y.im, f64).to_vector<double>();
  double result = 0;
  for (std::size_t i = 0; i < re.size(); ++i)
    result = std::max(result, std::abs(std::complex(re[i], im[i]) - expected[i]));
  return result;
}

TEST(TransformsTest, RfftHasTheNumbersOfSumsForAnySize) {
  for (const std::int64_t n : {1, 2, 3, 4, 5, 7, 8, 12, 16, 97, 360, 1021}) {
    const Numbers x = drawn_numbers(n, true), y = by_sums(x);
    const Complex wide = rfft(part_of(x, false), 0), narrow = rfft(part_of(x, false, f32), 0);
    EXPECT_EQ(wide.re.dim(0).size(), n / 2 + 1);
    EXPECT_LT(difference(wide, y), 1e-11) << n;
    EXPECT_LT(difference(narrow, y), 2e-6 * static_cast<double>(n) + 1e-6) << n;
  }
}

TEST(TransformsTest, FftAndItsInverseHaveTheNumbersOfSums) {
  for (const std::int64_t n : {1, 2, 3, 6, 31, 64, 211}) {
    const Numbers x = drawn_numbers(n, false);
    EXPECT_LT(difference(fft(complex_tensor(x), 0), by_sums(x)), 1e-11) << n;
    const Complex back = ifft(complex_tensor(by_sums(x)), 0);
    EXPECT_LT(difference(back, x), 1e-11) << n;
  }
}

TEST(TransformsTest, IrfftRestoresEvenAndOddSizes) {
  for (const std::int64_t n : {1, 2, 5, 6, 90, 1009}) {
    const Numbers x = drawn_numbers(n, true);
    const Tensor signal = part_of(x, false);
    expect_all_close(irfft(rfft(signal, 0), 0, Dim(n)), signal, 1e-12);
  }
  EXPECT_EQ(irfft(rfft(zeros({2, 6}, f32), 1), 1).dim(1).size(), 6);
}

TEST(TransformsTest, IrfftIgnoresImaginaryPartsOfSingleFrequencies) {
  const Tensor re = tensor({1., 2., 3.}), im = tensor({kNan, 1., kNan});
  expect_all_close(irfft({re, im}, 0), irfft({re, tensor({0., 1., 0.})}, 0), 0);
}

TEST(TransformsTest, LongSignalsComeBack) {
  const std::int64_t n = std::int64_t{1} << 20;
  const Tensor x = sin(cast(range(n), f32) * 0.37f);
  const Complex spectrum = rfft(x, 0);
  EXPECT_LT(max(abs(irfft(spectrum, 0) - x)).item<float>(), 1e-5f);
  // Parseval: Σ x² = (1/n) Σ |X|² over all frequencies.
  const double energy = sum(cast(square(x), f64)).item<double>();
  const Tensor squares = cast(squared_abs(spectrum), f64);
  const double half = 2 * sum(squares).item<double>() - squares.to_vector<double>()[0] -
                      squares.to_vector<double>().back();
  EXPECT_NEAR(half / static_cast<double>(n), energy, 1e-4 * energy);
}

/// Compares some frequencies with sums, and a round trip with the signal. Sums of n roundings grow
/// as the root of n.
void check_long_line(std::int64_t n) {
  const double root = std::sqrt(static_cast<double>(n));
  std::vector<double> values;
  std::mt19937_64 engine(7);
  std::normal_distribution<double> normal;
  for (std::int64_t i = 0; i < n; ++i) values.push_back(normal(engine));
  const Tensor x = tensor(values);
  const Complex wide = rfft(x, 0), narrow = rfft(cast(x, f32), 0);
  for (const std::int64_t k : {std::int64_t{0}, std::int64_t{1}, n / 3, n / 2}) {
    std::complex<long double> sum = 0;
    for (std::int64_t j = 0; j < n; ++j) {
      const double turn =
          2 * std::numbers::pi * static_cast<double>(j * k % n) / static_cast<double>(n);
      sum += std::complex<long double>(std::polar(values[static_cast<std::size_t>(j)], -turn));
    }
    const auto at = [&](const Tensor& part) {
      return gather(part, scalar(k, i64), 0).item<double>();
    };
    EXPECT_NEAR(at(wide.re), static_cast<double>(sum.real()), 1e-13 * root) << n << ' ' << k;
    EXPECT_NEAR(at(wide.im), static_cast<double>(sum.imag()), 1e-13 * root) << n << ' ' << k;
  }
  EXPECT_LT(max(abs(cast(narrow.re, f64) - wide.re)).item<double>(), 1e-5 * root) << n;
  EXPECT_LT(max(abs(cast(narrow.im, f64) - wide.im)).item<double>(), 1e-5 * root) << n;
  EXPECT_LT(max(abs(irfft(wide, 0, Dim(n)) - x)).item<double>(), 1e-13) << n;
}

/// Sizes with plans that are kept, and one without. 65,521 is prime, as 16,777,213 is. The
/// largest sizes take minutes: REEL_LONG_LINES=1 core_tests --gtest_filter='*LongLines*'.
TEST(TransformsTest, LongLinesHaveTheNumbersOfSumsInBothDtypes) {
  std::vector<std::int64_t> sizes{1 << 16, 65521, 1049600};
  if (std::getenv("REEL_LONG_LINES")) sizes = {1 << 24, 16777213};
  for (const std::int64_t n : sizes) check_long_line(n);
}

TEST(TransformsTest, ALineHasTheSameBitsBesideAnyOthers) {
  const Tensor x = sin(reshape(cast(range(7 * 30), f32), {7, 30}) * 1.7f);
  const Complex all = rfft(x, 1), turned = rfft(transpose(x, {1, 0}), 0);
  for (int row = 0; row < 7; ++row) {
    const Complex alone = rfft(gather(x, scalar(row), 0), 0);
    expect_same_bits(gather(all.re, scalar(row), 0), alone.re);
    expect_same_bits(gather(all.im, scalar(row), 0), alone.im);
    expect_same_bits(gather(turned.re, scalar(row), 1), alone.re);
  }
}

TEST(TransformsTest, DimsAreThoseOfDimArithmetic) {
  const Dim batch("batch", 2), window("window", 8), bins("bins", 5);
  const Tensor x = zeros({batch, window}, f32);
  EXPECT_TRUE(rfft(x, window).re.dims()[1] == window / 2 + 1);
  EXPECT_TRUE(rfft(x, window, bins).im.dims()[1] == bins);
  EXPECT_TRUE(irfft(rfft(x, window, bins), bins, window).dims()[1] == window);
  EXPECT_EQ(irfft(rfft(x, window, bins), bins).dims()[1].size(), 8);
  EXPECT_EQ(rfft(x, window, Dim("frequency")).re.dims()[1].name(), "frequency");
}

TEST(TransformsTest, NanInPaddingOfFramesStaysInPadding) {
  const Dim batch("batch", 2), window("window", 4);
  const Dim frames("frames", tensor({2, 1}, {batch}));
  Tensor x = sin(reshape(cast(range(16), f64), {batch, frames, window}));
  const Tensor junk = where(mask(frames), x, kNan);
  const auto loss = [&](const Tensor& of) { return sum(squared_abs(rfft(of, window))); };
  expect_all_close(loss(junk), loss(mask_padding(x)), 1e-12);
}

TEST(TransformsTest, GradientsInJitAndVmapAreThoseOfEagerMode) {
  const Tensor x = sin(reshape(cast(range(20), f64), {4, 5}));
  const auto loss = [](const Tensor& of) {
    const Complex y = rfft(of, -1);
    return sum(square(irfft(y * y, -1, Dim(5))) + 0.5 * abs(sum(y.im)));
  };
  const Tensor eager = grad(loss)(x);
  expect_gradient_of(loss, x, eager, 1e-6);
  expect_all_close(jit(grad(loss))(x), eager, 1e-12);
  const auto rows = [](const Tensor& row) { return rfft(row, 0).im; };
  expect_all_close(vmap(rows)(x), rfft(x, 1).im, 1e-12);
}

TEST(TransformsTest, ErrorsNameTheAxisAndTheRepair) {
  const Dim batch("batch", 2), window("window", 4);
  const Dim time("time", tensor({3, 1}, {batch}));
  EXPECT_EQ(message_of<ShapeError>([&] {
              rfft(zeros({batch, time}, f32), time);
            }),
            "rfft: axis time[batch=2] of f32[batch=2,time[batch=2]] is ragged; transform frames of "
            "one size, as stft does, or rename it to a dim of one size, which pads with zeros");
  EXPECT_EQ(message_of<ShapeError>([&] {
              rfft(zeros({2, 0}, f32), 1);
            }),
            "rfft: axis 1 of f32[2,0] has no elements");
  EXPECT_EQ(message_of<DTypeError>([&] { rfft(zeros({2}, i32), 0); }),
            "rfft: takes floats, got i32[2]; cast it to f32");
  const Tensor half = zeros({3}, f32);
  EXPECT_EQ(message_of<ShapeError>([&] {
              irfft({half, half}, 0, Dim(7));
            }),
            "irfft: dim to has size 7, whose spectrum has 4 frequencies, but x f32[3] has 3");
  EXPECT_EQ(message_of<ShapeError>([&] {
              fft({half, zeros({2}, f32)}, 0);
            }),
            "fft: the parts differ: re is f32[3], im is f32[2]");
}

// ---- Complex numbers ----------------------------------------------------------------------------

TEST(ComplexTest, ArithmeticIsThatOfStdComplex) {
  const Numbers a = drawn_numbers(6, false), b = drawn_numbers(7, false);
  const auto check = [&](const Complex& y, auto fn) {
    Numbers expected;
    for (std::size_t i = 0; i < a.size(); ++i) expected.push_back(fn(a[i], b[i]));
    EXPECT_LT(difference(y, expected), 1e-12);
  };
  const Complex x = complex_tensor(a), y = complex_tensor(Numbers(b.begin(), b.begin() + 6));
  check(x + y, [](auto p, auto q) { return p + q; });
  check(x - y, [](auto p, auto q) { return p - q; });
  check(x * y, [](auto p, auto q) { return p * q; });
  check(x / y, [](auto p, auto q) { return p / q; });
  check(2 - x, [](auto p, auto) { return 2. - p; });
  check(x - 2 + 0.5 * y, [](auto p, auto q) { return p - 2. + 0.5 * q; });
  check(1 / y, [](auto, auto q) { return 1. / q; });
  check(exp(-x), [](auto p, auto) { return std::exp(-p); });
  check(conj(x), [](auto p, auto) { return std::conj(p); });
  check({abs(x), zeros_like(x.re)}, [](auto p, auto) { return std::complex(std::abs(p), 0.); });
}

TEST(ComplexTest, RealTensorsAreBroadcast) {
  const Complex x{tensor({1., 2.}), tensor({3., 4.})};
  const Complex y = x + reshape(tensor({1., 2., 3.}), {3, 1});
  EXPECT_EQ(values_of(y.re), (std::vector<double>{2, 3, 3, 4, 4, 5}));
  EXPECT_EQ(values_of(y.im), (std::vector<double>{3, 4, 3, 4, 3, 4}));
}

TEST(ComplexTest, LargeAndSmallNumbersNeitherOverflowNorVanish) {
  const Complex large{tensor({3e30f, 3e-30f}), tensor({4e30f, 4e-30f})};
  expect_all_close(abs(large) / tensor({1e30f, 1e-30f}), tensor({5.f, 5.f}), 1e-6);
  expect_all_close((large / large).re, tensor({1.f, 1.f}), 1e-6);
}

TEST(ComplexTest, AbsOfZeroHasAGradientOfZeroAndNanStays) {
  const auto size = [](const Tensor& re) { return sum(abs(Complex{re, zeros_like(re)})); };
  EXPECT_EQ(values_of(grad(size)(tensor({0., -2.}))), (std::vector<double>{0, -1}));
  EXPECT_TRUE(std::isnan(values_of(abs(Complex{tensor({kNan}), tensor({0.})}))[0]));
}

TEST(ComplexTest, GradientsAreThoseOfDifferences) {
  const Tensor re = sin(cast(range(4), f64)) + 2, im = cos(cast(range(4), f64));
  const auto loss = [](const Complex& x) {
    const Complex y = exp(x * 0.3) / (x + 1) - 1 / x;
    return sum(abs(y) + y.im);
  };
  const Complex x{re, im};
  expect_gradient_of(loss, x, grad(loss)(x));
}

TEST(ComplexTest, StatesOfALinearRecurrenceAreOneStruct) {
  const auto f = jit([](const Complex& x) { return x * x + 1; });
  const Complex y = f(Complex{tensor({1., 2.}), tensor({3., 4.})});
  EXPECT_EQ(values_of(y.re), (std::vector<double>{-7, -11}));
  EXPECT_EQ(values_of(y.im), (std::vector<double>{6, 16}));
}

}  // namespace
}  // namespace reel
