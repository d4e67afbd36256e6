#include "signals_by_hand.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <utility>

#define POCKETFFT_NO_MULTITHREADING
#define POCKETFFT_CACHE_SIZE 16
#include <pocketfft_hdronly.h>

namespace reel::bench {
namespace {

using Spectra = std::vector<std::complex<float>>;

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

}  // namespace

struct TransformByHand::Impl {
  Lines lines;
  Floats x, re, im, gradient;
  Spectra spectra;
};

TransformByHand::TransformByHand(int lines, int size, Floats x, Floats re, Floats im) {
  const std::size_t numbers = x.size(), frequencies = re.size();
  impl_ = std::make_unique<Impl>(
      Impl{Lines(static_cast<std::size_t>(lines), static_cast<std::size_t>(size)), std::move(x),
           std::move(re), std::move(im), Floats(numbers), Spectra(frequencies)});
}
TransformByHand::~TransformByHand() = default;

double TransformByHand::step() {
  Impl& to = *impl_;
  to.lines.forward(to.x, to.spectra);
  double sum = 0;
  for (std::size_t i = 0; i < to.spectra.size(); ++i) {
    sum += static_cast<double>(to.spectra[i].real() * to.re[i] + to.spectra[i].imag() * to.im[i]);
    to.spectra[i] = {to.re[i], to.im[i]};
  }
  to.lines.backward(to.spectra, to.gradient);
  return sum;
}
const Floats& TransformByHand::gradient() const { return impl_->gradient; }

struct FeaturesByHand::Impl {
 public:
  Impl(const FeaturesLayout& s, Floats x, Floats cotangent, Floats filters)
      : sizes_(s),
        samples_(static_cast<std::size_t>(s.samples)),
        size_(static_cast<std::size_t>(s.size)),
        count_(size_ / 2 + 1),
        features_(static_cast<std::size_t>(s.features)),
        frames_(samples_ / static_cast<std::size_t>(s.hop) + 1),
        x_(std::move(x)),
        cotangent_(std::move(cotangent)),
        window_(size_),
        filters_(std::move(filters)),
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

  FeaturesLayout sizes_;
  std::size_t samples_, size_, count_, features_, frames_;
  Floats x_, cotangent_, window_, filters_, weights_;  ///< weights: of all filters, without zeros
  std::vector<std::size_t> begins_, ends_;             ///< frequencies of each filter
  Floats frame_;
  Spectra spectra_;
  Floats power_, slopes_, signal_, gradient_, result_;
};

FeaturesByHand::FeaturesByHand(const FeaturesLayout& layout, Floats x, Floats cotangent,
                               Floats filters)
    : impl_(
          std::make_unique<Impl>(layout, std::move(x), std::move(cotangent), std::move(filters))) {}
FeaturesByHand::~FeaturesByHand() = default;
double FeaturesByHand::step() { return impl_->step(); }
const Floats& FeaturesByHand::gradient() const { return impl_->gradient(); }

}  // namespace reel::bench
