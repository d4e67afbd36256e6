// examples/speech/options.h — the options of the program.
#pragma once

#include <string>
#include <vector>

#include "../training/options.h"
#include "../training/settings.h"

struct Options : TrainingOptions {
  Options() {
    steps = 1500;
    batch = 32;
    hidden = 64;
    layers = 2;
    losses = "speech.csv";
    plot = "speech_loss.svg";
    checkpoint = "speech.safetensors";
  }

  // Kept in checkpoints.
  std::string data = "recordings";
  std::string picture = "speech_alignment.svg";

  // Apply to this run only.
  std::vector<std::string> listen;  ///< files to recognise; empty: training
};

/// Returns the options that a checkpoint keeps.
Settings settings_in(Options& options);
