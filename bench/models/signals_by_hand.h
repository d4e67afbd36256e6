// bench/models/signals_by_hand.h — transforms of lines and log-mel features by pocketfft, without
// Reel. Compiled with -ffast-math for this processor, so it shares no inline function with Reel.
#pragma once

#include <memory>
#include <vector>

namespace reel::bench {

using Floats = std::vector<float>;

/// X = rfft(x) of lines of one size; the loss is Σ re·re X + im·im X.
class TransformByHand {
 public:
  TransformByHand(int lines, int size, Floats x, Floats re, Floats im);
  ~TransformByHand();

  /// Returns the loss, and computes the gradient of x.
  double step();
  const Floats& gradient() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// The sizes of log-mel features: `samples` of each entry, filters of shape [size / 2 + 1,
/// features].
struct FeaturesLayout {
  int batch, samples, window, hop, size, features;
};

/// y = log_mel(x) with a Hann window; the loss is Σ c·y. Frames and spectra stay in the cache.
class FeaturesByHand {
 public:
  FeaturesByHand(const FeaturesLayout& layout, Floats x, Floats cotangent, Floats filters);
  ~FeaturesByHand();

  /// Returns the loss, and computes the gradient of x.
  double step();
  const Floats& gradient() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace reel::bench
