#include "ranks.h"

#include <iostream>

#ifdef REEL_HAS_DISTRIBUTED

Ranks::Ranks(int shards, TrainingOptions& options) : world_({.shards = shards}) {
  // A signal ends all ranks after the same step.
  if (world_.size() > 1) options.on_any_rank = [this](bool is) { return !world_.all(!is); };
  if (world_.rank() == 0) return;
  options.is_first_rank = false;
  options.losses = "/dev/null";
  options.plot = options.accuracy_plot = "";
  output_ = std::cout.rdbuf(&nowhere_);
}

#else

Ranks::Ranks(int, TrainingOptions&) {}

#endif

Ranks::~Ranks() {
  if (output_) std::cout.rdbuf(output_);
}
