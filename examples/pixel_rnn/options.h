// examples/pixel_rnn/options.h — the options of the program.
#pragma once

#include <string>

#include "../training/options.h"
#include "../training/settings.h"

struct Options : TrainingOptions {
  Options() {
    steps = 6000;
    batch = 64;
    losses = "pixel_rnn.csv";
    plot = "pixel_rnn_loss.svg";
    accuracy_plot = "pixel_rnn_accuracy.svg";
    checkpoint = "pixel_rnn.safetensors";
  }

  // Kept in checkpoints.
  std::string data = "/usr/share/datasets/fashion-mnist";
  std::string confusion_plot = "pixel_rnn_confusion.svg";
  bool has_single_pixels = false;  ///< a step of the sequence is one pixel instead of four
};

/// Returns the options that a checkpoint keeps.
Settings settings_in(Options& options);
