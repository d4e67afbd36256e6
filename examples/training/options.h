// examples/training/options.h — options that all training programs share.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

struct TrainingOptions {
  // Kept in checkpoints.
  std::string cell = "lstm", mode = "both";
  int steps = 1000, batch = 32, hidden = 128, layers = 1;
  std::uint64_t seed = 1;
  std::string losses, plot;
  std::string accuracy_plot;  ///< for tasks that have one
  int checkpoint_every = 500;

  // Apply to this run only.
  std::string checkpoint;
  int stop_after = 0;  ///< steps; 0: never
  std::string events;  ///< a folder for TensorBoard; empty: none
  bool resume = false;
  std::string last_loss;      ///< of the checkpoint that is resumed
  bool is_first_rank = true;  ///< false: another process prints and writes files
  /// Returns true if the argument is true on any rank, on which the program runs.
  std::function<bool(bool)> on_any_rank = [](bool is) { return is; };
};
