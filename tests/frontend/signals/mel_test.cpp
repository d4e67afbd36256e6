// mel_filters, log_mel, mfcc and resample: published and independent numbers, entries alone.
#include "reel/frontend/signals/mel.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "reel/core/functions/dim_arithmetic.h"
#include "reel/frontend/jit.h"
#include "reel/frontend/signals/resample.h"
#include "reel/frontend/transforms/grad.h"
#include "reel/tests/check.h"
#include "reel/tests/frontend/signals/signal_numbers.h"
#include "reel/tests/gradients.h"

namespace reel {
namespace {

/// Returns the weight of a triangle at a frequency, by its three corners.
double triangle(double hertz, double left, double top, double right) {
  if (hertz <= left || hertz >= right) return 0;
  return hertz <= top ? (hertz - left) / (top - left) : (right - hertz) / (right - top);
}

TEST(MelTest, HtkFiltersHaveTheirCornersOnTheFormula) {
  // 0 to 4000 Hz: 0 to 2146.06 mel; three filters have five corners, 536.516 mel apart.
  const double step = 2595 * std::log10(1 + 4000. / 700) / 4;
  std::vector<double> expected;
  for (int k = 0; k < 9; ++k)
    for (int m = 0; m < 3; ++m) {
      const auto corner = [&](int i) { return 700 * (std::pow(10, i * step / 2595) - 1); };
      expected.push_back(triangle(500. * k, corner(m), corner(m + 1), corner(m + 2)));
    }
  expect_values(
      mel_filters(9, 3,
                  {.rate = 8000, .scale = MelScale::htk, .has_unit_area = false, .dtype = f64}),
      expected, 1e-12);
}

TEST(MelTest, SlaneyFiltersAreEvenBelowAThousandHertz) {
  // 0 to 1000 Hz are 15 mel, so that four filters have corners 200 Hz apart.
  std::vector<double> expected;
  for (int k = 0; k < 11; ++k)
    for (int m = 0; m < 4; ++m)
      expected.push_back(triangle(100. * k, 200. * m, 200. * m + 200, 200. * m + 400) / 200);
  expect_values(mel_filters(11, 4, {.rate = 2000, .dtype = f64}), expected, 1e-12);
}

TEST(MelTest, SlaneyScaleIsLogarithmicAboveAThousandHertz) {
  // 6400 Hz are 15 + 27 mel: one filter from 0 to 6400 Hz has its top at 21 mel, 1000 · 6.4^(6/27).
  const double top = 1000 * std::pow(6.4, 6. / 27);
  const Tensor filters = mel_filters(65, 1, {.rate = 12800, .has_unit_area = false, .dtype = f64});
  std::vector<double> expected;
  for (int k = 0; k < 65; ++k) expected.push_back(triangle(100. * k, 0, top, 6400));
  expect_values(filters, expected, 1e-12);
}

TEST(MelTest, UnitAreaHoldsForAllFilters) {
  const Tensor sums = sum(mel_filters(4001, 20, {.dtype = f64}), 0) * 2.;  // every 2 Hz
  expect_all_close(sums, ones({20}, f64), 1e-3);
}

TEST(MelTest, LogMelIsTheLogarithmOfFilteredEnergies) {
  const Tensor x = tensor(drawn_signal(40), Dims{40}, f64);
  const LogMelOptions options{.stft = {.size = 16, .hop = 5}};
  const Complex y = stft(x, 0, options.stft);
  const std::vector<double> filters = values_of(mel_filters(9, 3, {.dtype = f64})),
                            re = values_of(y.re), im = values_of(y.im);
  std::vector<double> expected;
  for (std::size_t f = 0; f < 9; ++f)
    for (std::size_t m = 0; m < 3; ++m) {
      double sum = 0;
      for (std::size_t k = 0; k < 9; ++k)
        sum += filters[k * 3 + m] * (re[f * 9 + k] * re[f * 9 + k] + im[f * 9 + k] * im[f * 9 + k]);
      expected.push_back(std::log(std::max(sum, 1e-10)));
    }
  expect_values(log_mel(x, 0, 3, options), expected, 1e-11);
  expect_values(log_mel(zeros({40}), 0, 3, options), std::vector<double>(27, std::log(1e-10)),
                1e-5);
}

TEST(MelTest, EachEntryHasTheFeaturesThatItHasAlone) {
  const RaggedSignals x = ragged_signals({40, 7, 23});
  const Dim mel("mel", 4), cepstrum("cepstrum", 3);
  const LogMelOptions options{.stft = {.size = 16, .hop = 5}};
  const Tensor all = mfcc(log_mel(x.all, x.time, mel, options), mel, cepstrum);
  for (std::size_t b = 0; b < 3; ++b) {
    const Tensor alone = mfcc(log_mel(x.alone[b], 0, mel, options), mel, cepstrum);
    const auto entry = entry_values(all, static_cast<std::int64_t>(b), alone.dim(0).size());
    const std::vector<double> expected = values_of(alone);
    ASSERT_EQ(entry.size(), expected.size());
    for (std::size_t i = 0; i < entry.size(); ++i) EXPECT_NEAR(entry[i], expected[i], 1e-10);
  }
}

TEST(MelTest, CepstralCoefficientsAreAnOrthonormalCosineTransform) {
  const std::vector<double> x = drawn_signal(2 * 5);
  std::vector<double> expected;
  for (std::size_t row = 0; row < 2; ++row)
    for (int k = 0; k < 4; ++k) {
      double sum = 0;
      for (std::size_t m = 0; m < 5; ++m)
        sum +=
            x[row * 5 + m] * std::cos(std::numbers::pi * k * (2 * static_cast<double>(m) + 1) / 10);
      expected.push_back(10 / std::log(10.) * sum * std::sqrt((k ? 2 : 1) / 5.));
    }
  expect_values(mfcc(tensor(x, Dims{2, 5}, f64), 1, 4), expected, 1e-12);
}

TEST(MelTest, GradientsOfFeaturesAreThoseOfDifferences) {
  const Tensor x = tensor(drawn_signal(20), Dims{20}, f64);
  const auto loss = [](const Tensor& of) {
    return sum(square(log_mel(of, 0, 3, {.stft = {.size = 8, .hop = 4}})));
  };
  expect_gradient_of(loss, x, grad(loss)(x), 1e-5);
}

TEST(MelTest, ErrorsNameTheNumbers) {
  EXPECT_EQ(message_of<ArgumentError>([] { mel_filters(9, 3, {.high = 9000}); }),
            "mel_filters: low 0 and high 9000 must be between 0 and half of the rate 16000");
  EXPECT_EQ(message_of<ArgumentError>([] {
              mfcc(zeros({2, 3}), 1, 4);
            }),
            "mfcc: 4 are more coefficients than the features 3 of x f32[2,3]");
}

// ---- Other rates --------------------------------------------------------------------------------

/// Returns sample i of a signal at another rate: the sum over all samples, by the formula of a sinc
/// under a squared cosine.
double at_rate(const std::vector<double>& x, std::int64_t i, double from, double to) {
  const double cutoff = std::min(from, to) * 0.99;
  double sum = 0;
  for (std::size_t j = 0; j < x.size(); ++j) {
    const double t = (static_cast<double>(j) / from - static_cast<double>(i) / to) * cutoff;
    if (std::abs(t) >= 6) continue;
    const double angle = std::numbers::pi * t;
    sum += x[j] * (t == 0 ? 1 : std::sin(angle) / angle) * std::pow(std::cos(angle / 12), 2) *
           cutoff / from;
  }
  return sum;
}

TEST(ResampleTest, SamplesAreThoseOfTheWindowedSinc) {
  const std::vector<double> x = drawn_signal(37);
  for (const auto& [from, to] : {std::pair{2, 1}, {1, 2}, {3, 2}, {4, 7}, {441, 320}}) {
    const Tensor y = resample(tensor(x, Dims{37}, f64), 0, from * 50, to * 50);
    ASSERT_EQ(y.dim(0).size(), (37 * to + from - 1) / from);
    std::vector<double> expected;
    for (std::int64_t i = 0; i < y.dim(0).size(); ++i) expected.push_back(at_rate(x, i, from, to));
    expect_values(y, expected, 1e-11);
  }
}

TEST(ResampleTest, ASineKeepsItsFrequency) {
  std::vector<double> x;
  for (int i = 0; i < 800; ++i) x.push_back(std::sin(2 * std::numbers::pi * 440 * i / 16000));
  const std::vector<double> y = values_of(resample(tensor(x, Dims{800}, f64), 0, 16000, 8000));
  for (int i = 20; i < 380; ++i)
    EXPECT_NEAR(y[static_cast<std::size_t>(i)], std::sin(2 * std::numbers::pi * 440 * i / 8000),
                2e-3);
}

TEST(ResampleTest, EachEntryHasTheSamplesThatItHasAlone) {
  const RaggedSignals x = ragged_signals({30, 0, 7});
  const Tensor all = resample(x.all, x.time, 3, 2);
  EXPECT_TRUE(all.dims()[1] == ceildiv(x.time * 2, 3));
  for (std::size_t b = 0; b < 3; ++b) {
    const Tensor alone = resample(x.alone[b], 0, 3, 2);
    const auto entry = entry_values(all, static_cast<std::int64_t>(b), alone.dim(0).size());
    const std::vector<double> expected = values_of(alone);
    for (std::size_t i = 0; i < entry.size(); ++i) EXPECT_NEAR(entry[i], expected[i], 1e-12);
  }
}

TEST(ResampleTest, AxesBehindTimeStayAndEqualRatesReturnTheSignal) {
  const Tensor x = tensor(drawn_signal(3 * 20), Dims{20, 3}, f64);
  expect_all_close(gather(resample(x, 0, 5, 4), scalar(2), 1),
                   resample(gather(x, scalar(2), 1), 0, 5, 4), 1e-12);
  expect_same_bits(resample(x, 0, 7, 7), x);
  const auto loss = [](const Tensor& of) { return sum(square(resample(of, 0, 2, 3))); };
  expect_gradient_of(loss, x, grad(loss)(x), 1e-6);
}

}  // namespace
}  // namespace reel
