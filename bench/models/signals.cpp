#include "signals.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "reel/frontend/signals/mel.h"
#include "signals_by_hand.h"

namespace reel::bench {
namespace {

/// Throws Error unless numbers are equal up to rounding.
void check_equal(const std::string& name, const Floats& found, const Floats& expected) {
  if (found.size() != expected.size())
    throw Error(str(name, ": ", found.size(), " gradients, not ", expected.size()));
  double largest = 0, difference = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    largest = std::max(largest, std::abs(static_cast<double>(expected[i])));
    const double here = std::abs(static_cast<double>(found[i] - expected[i]));
    if (!(here <= difference)) difference = here;  // NaN, too
  }
  if (!(difference <= 1e-3 * largest))
    throw Error(str(name, ": gradients differ by ", difference, "; the largest is ", largest));
}

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
    const auto by_hand = std::make_shared<TransformByHand>(
        s.lines, s.size, x.to_vector<float>(), re.to_vector<float>(), im.to_vector<float>());
    by_hand->step();
    check_equal(name, by_hand->gradient(), grad(loss)(x).template to_vector<float>());
    return [=] { return by_hand->step(); };
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
    const auto by_hand = std::make_shared<FeaturesByHand>(
        FeaturesLayout{s.batch, s.seconds * s.rate, s.window, s.hop, s.size, s.features},
        x.to_vector<float>(), cotangent.to_vector<float>(),
        mel_filters(Dim(s.size / 2 + 1), Dim(s.features), options.mel).to_vector<float>());
    by_hand->step();
    check_equal(name, by_hand->gradient(), grad(loss)(x).template to_vector<float>());
    return [=] { return by_hand->step(); };
  };
  result.threads = 1;
  return result;
}

}  // namespace reel::bench
