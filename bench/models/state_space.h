// bench/models/state_space.h — a linear state-space model: a diagonal recurrence.
#pragma once

#include "model.h"

namespace reel::bench {

struct StateSpaceSizes {
  int steps = 100'000, channels = 256;
  bool has_gradient = true;
};

/// h_t = a·h_{t-1} + b·x_t, by channel; with the gradients of a, b and x for a loss of mean h².
/// Its other form is a loop in C++, written by hand.
Model state_space(const StateSpaceSizes& sizes = {});

}  // namespace reel::bench
