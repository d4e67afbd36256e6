// examples/speech/recordings.h — reads recordings of spoken digits, and their features.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model.h"

/// Recordings in a folder, with the speaker of each.
struct SpokenDigits {
  Recordings data;
  std::vector<std::string> files, voices;  ///< of each recording
  std::vector<std::string> digits;         ///< "3014"
};

/// Samples per second that features are made of.
constexpr std::int64_t kRate = 16000;
/// Seconds that a frame of the recogniser is behind the frame before: four frames of features.
constexpr double kFrameSeconds = 0.04;

/// Returns log-mel features, a frame for every ten milliseconds. Each feature has mean 0 and
/// variance 1 over a recording.
/// samples: {..., time}. rate: samples per second.
reel::Tensor features_of(const reel::Tensor& samples, std::int64_t rate);

/// Returns the features of one WAV or FLAC file, {time, mel}. Throws IoError.
reel::Tensor features_of_file(const std::string& path);

/// Reads FOLDER/NAME.csv, which has the columns file, voice and digits, and the files that it
/// names, beside it. Adds noise to each recording, 5 to 30 dB below it. Draws random numbers.
/// Throws IoError, or UserError for a table without rows, or with other characters than digits.
SpokenDigits read_recordings(const std::string& folder, const std::string& name);
