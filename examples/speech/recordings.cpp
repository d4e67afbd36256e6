#include "recordings.h"

#include <algorithm>
#include <filesystem>

#include "../training/user_error.h"

using namespace reel;

namespace {

/// Returns the labels of digits; 0 is blank.
std::vector<int> labels_of(const std::string& digits, const std::string& table) {
  std::vector<int> labels;
  for (const char digit : digits) {
    if (digit < '0' || digit > '9')
      throw UserError(table + " has \"" + digits + "\" among its digits");
    labels.push_back(digit - '0' + 1);
  }
  return labels;
}

/// Returns the samples with white noise. samples: {recording, time}.
Tensor with_noise(const Tensor& samples) {
  const Dim recording = samples.dims()[0], time = samples.dims()[1];
  const Tensor level = sqrt(mean(square(samples), time));
  const Tensor decibels = random_uniform({recording}) * 25 + 5;
  return samples + random_normal(samples.dims()) * (level * exp(decibels * -0.1151293));
}

}  // namespace

Tensor features_of(const Tensor& samples, std::int64_t rate) {
  const Tensor x = resample(samples, samples.dim("time"), rate, kRate);
  const LogMelOptions options{.stft = {.size = 400, .hop = 160}, .mel = {.rate = kRate}};
  const Dim time = x.dim(x.rank() - 1);
  const Tensor features = log_mel(x, time, mel, options);
  const Dim frames = stft_frames(time, options.stft), named("time", frames.lengths());
  const Tensor spread = sqrt(variance(features, frames) + 0.01);
  return rename((features - mean(features, frames)) / spread, frames, named);
}

Tensor features_of_file(const std::string& path) {
  const Audio audio = load_audio(path, {.time = Dim("time")});
  return features_of(audio.samples, audio.rate);
}

SpokenDigits read_recordings(const std::string& folder, const std::string& name) {
  const std::string path = folder + '/' + name + ".csv";
  const CsvTable table = load_csv(path);
  if (table.rows() == 0) throw UserError(path + " names no recordings");
  SpokenDigits result{{}, table.texts("file"), table.texts("voice"), table.texts("digits")};
  std::vector<std::vector<int>> labels;
  for (const std::string& digits : result.digits) labels.push_back(labels_of(digits, path));

  constexpr std::size_t kAtOnce = 64;  // recordings with samples in memory
  std::vector<std::vector<std::vector<float>>> features;
  for (std::size_t begin = 0; begin < result.files.size(); begin += kAtOnce) {
    std::vector<std::vector<float>> samples;
    std::int64_t rate = 0;
    for (std::size_t i = begin; i < std::min(begin + kAtOnce, result.files.size()); ++i) {
      const Audio audio = load_audio(folder + '/' + result.files[i]);
      if (rate && audio.rate != rate)
        throw UserError(folder + '/' + result.files[i] + " has another rate than the file before");
      rate = audio.rate;
      samples.push_back(audio.samples.to_vector<float>());
    }
    const Tensor x = with_noise(ragged(samples, {Dim("recording"), Dim("time")}));
    for (auto& frames : rows_of<std::vector<std::vector<float>>>(features_of(x, rate)))
      features.push_back(std::move(frames));
  }
  const Dim recording("recording", static_cast<std::int64_t>(features.size()));
  result.data = {ragged(features, {recording, Dim("time"), mel}),
                 ragged(labels, {recording, Dim("label_time")})};
  return result;
}
