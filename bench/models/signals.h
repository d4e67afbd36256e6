// bench/models/signals.h — Fourier transforms and log-mel features, with the gradient of the
// signal.
#pragma once

#include "model.h"

namespace reel::bench {

struct TransformSizes {
  int size = 1024, lines = 400;
};

/// X = rfft(x) of each line; the loss is Σ c·re X + d·im X with fixed c and d. The other form calls
/// pocketfft itself, with all lines in one call.
Model transform(const TransformSizes& sizes);

struct FeatureSizes {
  int batch = 1, seconds = 10, rate = 16000;
  int window = 400, hop = 160, size = 512, features = 80;
};

/// y = log_mel(x); the loss is Σ c·y with a fixed c. The other form is a loop by hand over frames,
/// which calls pocketfft for blocks of them.
Model features(const FeatureSizes& sizes);

}  // namespace reel::bench
