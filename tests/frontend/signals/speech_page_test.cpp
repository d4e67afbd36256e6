// The programs of docs/speech.md: each runs here and does as the page says.
#include <gtest/gtest.h>

#include <vector>

#include "reel/core/functions/transforms.h"
#include "reel/core/ops.h"
#include "reel/frontend/data/ragged.h"
#include "reel/frontend/signals/mel.h"
#include "reel/frontend/signals/resample.h"
#include "reel/frontend/signals/spec_augment.h"
#include "reel/frontend/signals/stft.h"
#include "reel/tests/check.h"

namespace reel {
namespace {

std::vector<std::vector<float>> recordings() {
  return {std::vector<float>(22050, 0.5f), std::vector<float>(11025, 0.25f)};
}

TEST(SpeechPageTest, FeaturesOfRecordings) {
  const auto features = [] {
    const Dim batch("batch"), time("time"), mel("mel", 80);
    const Tensor at_22050 = ragged(recordings(), {batch, time});
    const Tensor x = resample(at_22050, at_22050.dims()[1], 22050, 16000);
    const LogMelOptions options{.stft = {.size = 400, .hop = 160}, .mel = {.rate = 16000}};
    return log_mel(x, x.dims()[1], mel, options);
  };
  const Tensor y = features();
  EXPECT_EQ(y.dims()[1].lengths().to_vector<int>(), (std::vector<int>{101, 51}));
  EXPECT_EQ(y.dims()[2].size(), 80);
}

TEST(SpeechPageTest, SignalIsRestored) {
  const Dim batch("batch"), name("time");
  const Tensor x = ragged(recordings(), {batch, name});
  const Dim time = x.dims()[1];
  const StftOptions options{.size = 512, .hop = 128};
  const Complex y = stft(x, time, options);
  const Tensor quiet = istft(y * 0.5, stft_frames(time, options), time, options);
  expect_all_close(mask_padding(quiet), mask_padding(x) * 0.5, 1e-5);
}

TEST(SpeechPageTest, AugmentationMasksFeatures) {
  const Dim batch("batch", 2), frames("frames", tensor({50, 30}, {batch})), mel("mel", 80);
  const Tensor features = ones({batch, frames, mel});
  const auto augmented = [&](const Tensor& features) {
    return spec_augment(features, frames, mel, {.time_width = 20, .time_part = 0.3});
  };
  EXPECT_LT(sum(augmented(features)).item<float>(), 80 * 80);
}

TEST(SpeechPageTest, FilterInTheSpectrum) {
  const auto smoothed = [] {
    const Tensor x = tensor({1., 0., 0., 0., 0., 0.}), filter = tensor({0.5, 0.5, 0., 0., 0., 0.});
    return irfft(rfft(x, 0) * rfft(filter, 0), 0);  // {0.5, 0.5, 0, 0, 0, 0}
  };
  expect_values(smoothed(), {0.5, 0.5, 0, 0, 0, 0}, 1e-6);
}

}  // namespace
}  // namespace reel
