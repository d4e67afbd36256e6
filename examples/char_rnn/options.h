// options.h — what a run of the program is told to do, and which of it a checkpoint keeps.
#pragma once

#include <reel/reel.h>

#include <cstdint>
#include <set>
#include <stdexcept>
#include <string>

/// What a user can put right: main prints it as one line.
class UserError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct Options {
  // Kept in checkpoints.
  std::string task = "text";  ///< or "adding"
  std::string data;
  std::string cell = "lstm", mode = "both";
  int steps = 7500, length = 64, batch = 32, hidden = 128, layers = 1;
  std::uint64_t seed = 1;
  std::string losses = "char_rnn.csv", plot;
  int checkpoint_every = 500;
  int characters = 400;
  double temperature = 0.8;

  // Of this run only.
  std::string checkpoint = "char_rnn.safetensors";
  int stop_after = 0;  ///< steps; 0: never
  bool resume = false, sample = false;
};

/// What a checkpoint keeps, as strings; files in its folder, or below it, as seen from there.
reel::Metadata settings_of(const Options& options);

/// Replaces all settings that were not given by those of a checkpoint. given: the names of flags.
/// Throws UserError, which names all of those given that would make another model, or another
/// training of it, than the checkpoint holds.
void take_settings(Options& options, const std::set<std::string>& given,
                   const reel::Metadata& stored);
