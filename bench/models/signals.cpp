#include "signals.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <memory>
#include <vector>

#include "reel/frontend/signals/mel.h"

#define POCKETFFT_NO_MULTITHREADING
#define POCKETFFT_CACHE_SIZE 16
#include <pocketfft_hdronly.h>

namespace reel::bench {
namespace {

using Floats = std::vector<float>;
using Spectra = std::vector<std::complex<float>>;

/// Throws Error unless numbers are equal up to rounding.
void check_equal(const std::string& name, const Floats& found, const Floats& expected) {
  if (found.size() != expected.size())
    throw Error(str(name, ": ", found.size(), " gradients, not ", expected.size()));
  double largest = 0, difference = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    largest = std::max(largest, std::abs(static_cast<double>(expected[i])));
    difference = std::max(difference, std::abs(static_cast<double>(found[i] - expected[i])));
  }
  if (!(difference <= 1e-3 * largest))
    throw Error(str(name, ": gradients differ by ", difference, "; the largest is ", largest));
}

/// Transforms lines of real numbers there and back, by pocketfft.
class Lines {
 public:
  Lines(std::size_t lines, std::size_t size)
      : shape_{lines, size},
        real_{static_cast<std::ptrdiff_t>(size * sizeof(float)), sizeof(float)},
        complex_{static_cast<std::ptrdiff_t>((size / 2 + 1) * 2 * sizeof(float)),
                 2 * sizeof(float)} {}

  void forward(const Floats& x, Spectra& to) const {
    pocketfft::r2c(shape_, real_, complex_, 1, pocketfft::FORWARD, x.data(), to.data(), 1.f);
  }
  /// The gradient of x. Consumes the cotangents: c2r counts all frequencies twice, except those
  /// without a conjugate.
  void backward(Spectra& cotangents, Floats& to) const {
    const std::size_t size = shape_[1], count = size / 2 + 1;
    for (std::size_t line = 0; line < shape_[0]; ++line)
      for (std::size_t k = 1; k < (size + 1) / 2; ++k) cotangents[line * count + k] *= 0.5f;
    pocketfft::c2r(shape_, complex_, real_, 1, pocketfft::BACKWARD, cotangents.data(), to.data(),
                   1.f);
  }

 private:
  pocketfft::shape_t shape_;
  pocketfft::stride_t real_, complex_;
};

/// Returns Reel's step: the loss and the gradient of x.
template <class Loss>
std::function<Step(bool)> steps_of(const std::string& name, const Tensor& x, const Loss& loss) {
  return [=](bool is_traced) -> Step {
    const auto gradient = value_and_grad(loss);
    const auto step_of = [=](auto function) -> Step {
      return [=] { return static_cast<double>(function(x).first.template item<float>()); };
    };
    return is_traced ? step_of(jit(gradient, {.name = name})) : step_of(gradient);
  };
}

/// log-mel features and their gradient by hand. Frames and spectra stay in the cache.
class FeaturesByHand {
 public:
  FeaturesByHand(const FeatureSizes& s, const Tensor& x, const Tensor& cotangent)
      : sizes_(s),
        samples_(static_cast<std::size_t>(s.seconds * s.rate)),
        size_(static_cast<std::size_t>(s.size)),
        count_(size_ / 2 + 1),
        features_(static_cast<std::size_t>(s.features)),
        frames_(samples_ / static_cast<std::size_t>(s.hop) + 1),
        x_(x.to_vector<float>()),
        cotangent_(cotangent.to_vector<float>()),
        window_(size_),
        filters_(mel_filters(Dim(count_), Dim(features_), {.rate = static_cast<double>(s.rate)})
                     .to_vector<float>()),
        begins_(features_),
        ends_(features_),
        frame_(kBlock * size_),
        spectra_(kBlock * count_),
        power_(count_),
        slopes_(count_),
        signal_(samples_ + size_),
        gradient_(signal_.size()) {
    const auto window = static_cast<std::size_t>(s.window), front = (size_ - window) / 2;
    for (std::size_t i = 0; i < window; ++i)
      window_[front + i] = static_cast<float>(
          0.5 - 0.5 * std::cos(2 * 3.14159265358979323846 * static_cast<double>(i) /
                               static_cast<double>(window)));
    for (std::size_t m = 0; m < features_; ++m) {
      const auto at = [&](std::size_t k) { return filters_[k * features_ + m]; };
      while (begins_[m] < count_ && at(begins_[m]) == 0) ++begins_[m];
      for (ends_[m] = count_; ends_[m] > begins_[m] && at(ends_[m] - 1) == 0;) --ends_[m];
      for (std::size_t k = begins_[m]; k < ends_[m]; ++k) weights_.push_back(at(k));
    }
  }

  double step() {
    double loss = 0;
    result_.clear();
    for (std::size_t b = 0; b < static_cast<std::size_t>(sizes_.batch); ++b) {
      std::copy_n(x_.begin() + static_cast<std::ptrdiff_t>(b * samples_), samples_,
                  signal_.begin() + static_cast<std::ptrdiff_t>(size_ / 2));
      std::fill(gradient_.begin(), gradient_.end(), 0.f);
      for (std::size_t first = 0; first < frames_; first += kBlock)
        loss += block(b, first, std::min(kBlock, frames_ - first));
      const auto begin = gradient_.begin() + static_cast<std::ptrdiff_t>(size_ / 2);
      result_.insert(result_.end(), begin, begin + static_cast<std::ptrdiff_t>(samples_));
    }
    return loss;
  }
  const Floats& gradient() const { return result_; }

 private:
  static constexpr std::size_t kBlock = 16;  // frames: a multiple of pocketfft's vectors

  double block(std::size_t entry, std::size_t first, std::size_t frames) {
    const auto hop = static_cast<std::size_t>(sizes_.hop);
    const Lines lines(frames, size_);
    for (std::size_t f = 0; f < frames; ++f)
      for (std::size_t i = 0; i < size_; ++i)
        frame_[f * size_ + i] = signal_[(first + f) * hop + i] * window_[i];
    lines.forward(frame_, spectra_);
    double loss = 0;
    for (std::size_t f = 0; f < frames; ++f)
      loss += frame_features(spectra_.data() + f * count_,
                             cotangent_.data() + (entry * frames_ + first + f) * features_);
    lines.backward(spectra_, frame_);
    for (std::size_t f = 0; f < frames; ++f)
      for (std::size_t i = 0; i < size_; ++i)
        gradient_[(first + f) * hop + i] += frame_[f * size_ + i] * window_[i];
    return loss;
  }

  /// Replaces a spectrum by its cotangent.
  double frame_features(std::complex<float>* spectrum, const float* cotangent) {
    for (std::size_t k = 0; k < count_; ++k) power_[k] = std::norm(spectrum[k]);
    std::fill(slopes_.begin(), slopes_.end(), 0.f);
    double loss = 0;
    const float* weights = weights_.data();
    for (std::size_t m = 0; m < features_; ++m) {
      const std::size_t begin = begins_[m], count = ends_[m] - begin;
      float energy = 0;
      for (std::size_t k = 0; k < count; ++k) energy += weights[k] * power_[begin + k];
      loss += static_cast<double>(cotangent[m] * std::log(std::max(energy, 1e-10f)));
      if (energy > 1e-10f) {
        const float slope = 2 * cotangent[m] / energy;
        for (std::size_t k = 0; k < count; ++k) slopes_[begin + k] += weights[k] * slope;
      }
      weights += count;
    }
    for (std::size_t k = 0; k < count_; ++k) spectrum[k] *= slopes_[k];
    return loss;
  }

  FeatureSizes sizes_;
  std::size_t samples_, size_, count_, features_, frames_;
  Floats x_, cotangent_, window_, filters_, weights_;  ///< weights: of all filters, without zeros
  std::vector<std::size_t> begins_, ends_;             ///< frequencies of each filter
  Floats frame_;
  Spectra spectra_;
  Floats power_, slopes_, signal_, gradient_, result_;
};

}  // namespace

Model transform(const TransformSizes& s) {
  manual_seed(1);
  const std::string name = str("rfft size=", s.size, " lines=", s.lines);
  const Dim count = Dim(s.size / 2 + 1);
  const Tensor x = random_normal({s.lines, s.size}), re = random_normal({s.lines, count}),
               im = random_normal({s.lines, count});
  const auto loss = [=](const Tensor& x) {
    const Complex spectrum = rfft(x, 1);
    return sum(spectrum.re * re) + sum(spectrum.im * im);
  };
  Model result{name, steps_of(name, x, loss)};
  result.other_name = "pocketfft";
  result.other = [=]() -> Step {
    struct Buffers {
      Floats x, re, im, gradient;
      Spectra spectra;
    };
    const auto to = std::make_shared<Buffers>(Buffers{x.to_vector<float>(), re.to_vector<float>(),
                                                      im.to_vector<float>(), Floats(), Spectra()});
    to->gradient.resize(to->x.size());
    to->spectra.resize(to->re.size());
    const Lines lines(static_cast<std::size_t>(s.lines), static_cast<std::size_t>(s.size));
    const Step step = [=] {
      lines.forward(to->x, to->spectra);
      double sum = 0;
      for (std::size_t i = 0; i < to->spectra.size(); ++i) {
        sum += static_cast<double>(to->spectra[i].real() * to->re[i] +
                                   to->spectra[i].imag() * to->im[i]);
        to->spectra[i] = {to->re[i], to->im[i]};
      }
      lines.backward(to->spectra, to->gradient);
      return sum;
    };
    step();
    check_equal(name, to->gradient, grad(loss)(x).template to_vector<float>());
    return step;
  };
  result.threads = 1;
  return result;
}

Model features(const FeatureSizes& s) {
  manual_seed(1);
  const std::string name = str("log_mel seconds=", s.seconds, " batch=", s.batch);
  const Dim batch("batch", s.batch), time("time", s.seconds * s.rate), mel("mel", s.features);
  const Tensor x = random_normal({batch, time});
  const LogMelOptions options{
      .stft = {.size = s.size, .hop = s.hop, .window = hann_window(Dim(s.window))},
      .mel = {.rate = static_cast<double>(s.rate)}};
  const Tensor cotangent = random_normal(log_mel(x, time, mel, options).dims());
  const auto loss = [=](const Tensor& x) {
    return sum(log_mel(x, time, mel, options) * cotangent);
  };
  Model result{name, steps_of(name, x, loss)};
  result.other_name = "by_hand";
  result.other = [=]() -> Step {
    const auto by_hand = std::make_shared<FeaturesByHand>(s, x, cotangent);
    by_hand->step();
    check_equal(name, by_hand->gradient(), grad(loss)(x).template to_vector<float>());
    return [=] { return by_hand->step(); };
  };
  result.threads = 1;
  return result;
}

}  // namespace reel::bench
