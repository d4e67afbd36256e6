// frame, overlap_add, windows, stft and istft: numbers of plain loops, entries alone, NaN in
// padding.
#include "reel/frontend/signals/stft.h"

#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <numbers>

#include "reel/core/functions/dim_arithmetic.h"
#include "reel/frontend/jit.h"
#include "reel/frontend/signals/frames.h"
#include "reel/frontend/signals/windows.h"
#include "reel/frontend/transforms/grad.h"
#include "reel/tests/check.h"
#include "reel/tests/frontend/signals/signal_numbers.h"
#include "reel/tests/gradients.h"

namespace reel {
namespace {

constexpr double kTurn = 2 * std::numbers::pi;

/// Returns |X|² [frames, frequency] of a centred stft with a Hann window, by sums.
std::vector<double> energies(const std::vector<double>& x, std::int64_t size, std::int64_t hop) {
  std::vector<double> result;
  const auto length = static_cast<std::int64_t>(x.size());
  for (std::int64_t f = 0; f * hop <= length; ++f)
    for (std::int64_t k = 0; k <= size / 2; ++k) {
      std::complex<double> sum = 0;
      for (std::int64_t i = 0; i < size; ++i) {
        const std::int64_t at = f * hop + i - size / 2;
        if (at < 0 || at >= length) continue;
        const double t = kTurn * static_cast<double>(i) / static_cast<double>(size);
        sum += x[static_cast<std::size_t>(at)] * (0.5 - 0.5 * std::cos(t)) *
               std::polar(1., -t * static_cast<double>(k));
      }
      result.push_back(std::norm(sum));
    }
  return result;
}

TEST(WindowsTest, HaveTheNumbersOfTheirCosines) {
  expect_values(hann_window(4), {0, 0.5, 1, 0.5});
  expect_values(hann_window(5, {.is_periodic = false}), {0, 0.5, 1, 0.5, 0});
  expect_values(hamming_window(4), {0.08, 0.54, 1, 0.54});
  expect_values(blackman_window(4), {0, 0.34, 1, 0.34});
  expect_values(hann_window(1), {1});
  EXPECT_EQ(hann_window(Dim("window", 6), {.dtype = f64}).dtype(), f64);
}

TEST(FramesTest, OverlapAndEndAsWindowsOfConv) {
  const Tensor x = tensor({1., 2., 3., 4., 5., 6., 7.});
  expect_values(frame(x, 0, 3, 2), {1, 2, 3, 3, 4, 5, 5, 6, 7});
  expect_values(frame(x, 0, 2, 3), {1, 2, 4, 5});
  expect_values(frame(x, 0, 3, 3, WindowPadding{1, 1}), {0, 1, 2, 3, 4, 5, 6, 7, 0});
  expect_values(frame(x, 0, 3, 4, WindowPadding::causal), {0, 0, 1, 3, 4, 5});
  EXPECT_EQ(frame(x, 0, 8, 2).dim(0).size(), 0);
}

TEST(FramesTest, OverlapAddIsTheTransposeOfFrame) {
  for (const std::int64_t hop : {1, 2, 3, 5}) {
    const Dim time("time", 11), window("window", 4);
    const Tensor x = tensor(drawn_signal(11), Dims{time}, f64);
    const Tensor frames = frame(x, time, window, hop, WindowPadding{2, 1});
    const Tensor y = tensor(drawn_signal(frames.dim(0).size() * 4, 7), frames.dims(), f64);
    const Tensor back = overlap_add(y, frames.dims()[0], hop, time, 2);
    expect_all_close(sum(frames * y), sum(x * back), 1e-12);
    expect_all_close(grad([&](const Tensor& of) {
                       return sum(frame(of, time, window, hop, WindowPadding{2, 1}) * y);
                     })(x),
                     back, 1e-12);
  }
}

TEST(FramesTest, EachEntryHasTheFramesOfItsOwnSignal) {
  const RaggedSignals x = ragged_signals({9, 0, 2, 5});
  const Dim window("window", 4);
  for (const WindowPadding& padding : {WindowPadding::valid, WindowPadding{2, 2}}) {
    const Tensor all = frame(x.all, x.time, window, 2, padding);
    for (std::size_t b = 0; b < 4; ++b) {
      const Tensor alone = frame(x.alone[b], 0, window, 2, padding);
      EXPECT_EQ(entry_values(all, static_cast<std::int64_t>(b), alone.dim(0).size()),
                values_of(alone));
    }
    EXPECT_EQ(all.dims()[1].lengths().to_vector<int>().size(), 4u);
  }
}

TEST(StftTest, EnergiesAreThoseOfSums) {
  for (const auto& [size, hop] : {std::pair{8, 2}, {8, 3}, {9, 4}, {6, 6}, {4, 7}}) {
    const std::vector<double> x = drawn_signal(29);
    const Complex y = stft(tensor(x, Dims{29}, f64), 0, {.size = size, .hop = hop});
    if (size % 2 == 0) EXPECT_EQ(y.re.dim(0).size(), 29 / hop + 1);
    std::vector<double> expected = energies(x, size, hop);
    expected.resize(static_cast<std::size_t>(y.re.dim(0).size() * (size / 2 + 1)));
    expect_values(squared_abs(y), expected, 1e-11);
  }
}

TEST(StftTest, ShortWindowsStandInTheMiddle) {
  const Tensor x = tensor(drawn_signal(20), Dims{20}, f64);
  const Tensor window = tensor({1., 2., 3.}, Dims{3}, f64);
  const Tensor padded = tensor({0., 0., 1., 2., 3., 0., 0., 0.}, Dims{8}, f64);
  expect_all_close(stft(x, 0, {.size = 8, .window = window}).im,
                   stft(x, 0, {.size = 8, .window = padded}).im, 1e-12);
}

TEST(StftTest, EachEntryHasTheSpectraThatItHasAlone) {
  const RaggedSignals x = ragged_signals({17, 3, 0, 8});
  const StftOptions options{.size = 6, .hop = 2, .frequency = Dim("frequency", 4)};
  const Complex all = stft(x.all, x.time, options);
  EXPECT_TRUE(all.re.dims()[1] == stft_frames(x.time, options));
  EXPECT_TRUE(all.re.dims()[2] == options.frequency);
  for (std::size_t b = 0; b < 4; ++b) {
    const Complex alone = stft(x.alone[b], 0, options);
    const auto entry = static_cast<std::int64_t>(b), frames = alone.re.dim(0).size();
    EXPECT_EQ(entry_values(all.re, entry, frames), values_of(alone.re));
    EXPECT_EQ(entry_values(all.im, entry, frames), values_of(alone.im));
  }
}

TEST(StftTest, IstftRestoresPlainAndRaggedSignals) {
  const Tensor x = tensor(drawn_signal(2 * 50), Dims{2, 50}, f64);
  for (const bool is_centred : {true, false}) {
    const StftOptions options{.size = 12, .hop = 4, .is_centred = is_centred};
    const Tensor back = istft(stft(x, 1, options), 1, 50, options);
    // Without zeros around, no window reaches the first sample, and no frame the last two.
    const std::int64_t from = is_centred ? 0 : 1, to = is_centred ? 50 : 47;
    expect_all_close(slice(back, 1, from, to), slice(x, 1, from, to), 1e-10);
  }
  const RaggedSignals ragged = ragged_signals({23, 9, 16});
  const StftOptions options{.size = 8, .hop = 2};
  const Complex y = stft(ragged.all, ragged.time, options);
  const Tensor back = istft(y, stft_frames(ragged.time, options), ragged.time, options);
  EXPECT_TRUE(back.dims()[1] == ragged.time);
  expect_all_close(mask_padding(back), mask_padding(ragged.all), 1e-10);
}

TEST(StftTest, AxesBehindTimeStay) {
  const Tensor x = tensor(drawn_signal(2 * 30), Dims{30, 2}, f64);
  const StftOptions options{.size = 8, .hop = 3};
  const Complex y = stft(x, 0, options);
  const Tensor channel = gather(x, scalar(1), 1);
  expect_all_close(gather(y.im, scalar(1), 2), stft(channel, 0, options).im, 1e-12);
  expect_all_close(istft(y, 0, 30, options), x, 1e-10);
}

TEST(StftTest, GradientsAreThoseOfDifferencesAndJitHasThem) {
  const RaggedSignals x = ragged_signals({11, 4, 0});
  const Tensor clean = mask_padding(x.all);
  const StftOptions options{.size = 4, .hop = 2};
  const auto loss = [&](const Tensor& of) {
    const Complex y = stft(of, x.time, options);
    const Complex louder = y * squared_abs(y);
    return sum(square(istft(louder, stft_frames(x.time, options), x.time, options)));
  };
  const Tensor g = grad(loss)(clean);
  expect_gradient_of(loss, clean, g, 1e-5);
  expect_all_close(mask_padding(grad(loss)(x.all)), g, 1e-12);
  expect_all_close(jit(grad(loss))(clean), g, 1e-11);
  for (const Executor executor : {Executor::interpreter, Executor::dataflow})
    expect_all_close(jit(loss, {.executor = executor})(x.all), loss(clean), 1e-11);
}

TEST(StftTest, ErrorsNameTheArgument) {
  const Tensor x = zeros({20});
  EXPECT_EQ(message_of<ArgumentError>([&] { stft(x, 0, {.size = 4, .hop = -1}); }),
            "stft: size 4 and hop -1 must be positive");
  EXPECT_EQ(message_of<ArgumentError>([&] { stft(x, 0, {.size = 4, .window = zeros({5})}); }),
            "stft: the window is f32[5]; it has one axis of at most 4 elements");
  EXPECT_EQ(message_of<ArgumentError>([&] { frame(x, 0, 4, 0); }),
            "frame: hop is 0; it must be positive");
  EXPECT_EQ(message_of<ShapeError>([&] { frame(x, 0, Dim("window", 4), 2); }),
            "frame: named and plain dims meet: x f32[20], window window=4");
}

}  // namespace
}  // namespace reel
