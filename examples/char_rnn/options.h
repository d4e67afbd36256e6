// examples/char_rnn/options.h — the options of the program.
#pragma once

#include <set>
#include <string>

#include "../training/options.h"
#include "../training/settings.h"
#include "../training/user_error.h"

struct Options : TrainingOptions {
  Options() {
    steps = 7500;
    losses = "char_rnn.csv";
    checkpoint = "char_rnn.safetensors";
  }

  // Kept in checkpoints.
  std::string task = "text";  ///< or "adding"
  std::string data;
  int length = 64;
  int shards = 1;
  int characters = 400;
  double temperature = 0.8;

  // Apply to this run only.
  bool sample = false;
};

/// Returns the options that a checkpoint keeps.
Settings settings_in(Options& options);
reel::Metadata metadata_of(Options options);

/// Takes all settings that were not given from the checkpoint. Throws as Settings::take.
void take_settings(Options& options, const reel::SafetensorsFile& checkpoint,
                   const std::set<std::string>& given);
