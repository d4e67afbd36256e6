#include "alignments.h"

#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include "reel/core/runtime/denormals.h"

namespace reel::bench {
namespace {

struct Problem {
  Tensor logits, labels;
  Dim time = 0, letters = 0, vocab = 0;
};

/// Neighbouring labels differ, so that an alignment needs no blanks.
Problem problem_of(const AlignmentSizes& s) {
  manual_seed(1);
  const Dim batch("batch", s.batch), time("time", s.frames), letters("letters", s.labels),
      vocab("vocab", s.symbols);
  Dims dims{batch, time, vocab};
  if (s.is_transducer) dims = {batch, time, letters + 1, vocab};
  return {random_normal(dims), 1 + expand(range(letters), {batch, letters}) % (s.symbols - 1), time,
          letters, vocab};
}

Tensor loss_of(const AlignmentSizes& s, const Problem& at, const Tensor& logits) {
  if (s.is_transducer)
    return transducer_loss(logits, at.labels, {at.time, at.letters, at.letters + 1, at.vocab});
  return ctc_loss(logits, at.labels, {at.time, at.letters, at.vocab});
}

constexpr double kNone = -std::numeric_limits<double>::infinity();

double log_sum(double a, double b) {
  if (a < b) std::swap(a, b);
  return b == kNone ? a : a + std::log1p(std::exp(b - a));
}

/// The loop by hand, for a batch of one length.
struct ByHand {
  int batch, frames, labels, symbols;
  std::vector<float> logits, gradient, log_p;
  std::vector<std::int32_t> spelt;

  ByHand(const AlignmentSizes& s, const Problem& at)
      : batch(s.batch),
        frames(s.frames),
        labels(s.labels),
        symbols(s.symbols),
        logits(at.logits.to_vector<float>()),
        gradient(logits.size()),
        log_p(logits.size()),
        spelt(at.labels.to_vector<std::int32_t>()) {}

  void normalise() {
    const auto width = static_cast<std::size_t>(symbols);
    for (std::size_t row = 0; row < logits.size(); row += width) {
      float m = logits[row], sum = 0;
      for (std::size_t v = 1; v < width; ++v) m = std::max(m, logits[row + v]);
      for (std::size_t v = 0; v < width; ++v) sum += std::exp(logits[row + v] - m);
      const float shift = m + std::log(sum);
      for (std::size_t v = 0; v < width; ++v) log_p[row + v] = logits[row + v] - shift;
    }
  }
  /// Writes the gradient of a row of logits, without the symbols that are emitted.
  void spread(std::size_t row, double emitted) {
    for (int v = 0; v < symbols; ++v)
      gradient[row + static_cast<std::size_t>(v)] =
          static_cast<float>(emitted / batch) * std::exp(log_p[row + static_cast<std::size_t>(v)]);
  }

  double transducer() {
    normalise();
    const int states = labels + 1;
    std::vector<double> alpha(static_cast<std::size_t>(frames * states)), beta(alpha.size());
    double loss = 0;
    for (int b = 0; b < batch; ++b) {
      const std::int32_t* label = spelt.data() + b * labels;
      const auto row = [&](int t, int s) {
        return (static_cast<std::size_t>(b * frames + t) * static_cast<std::size_t>(states) +
                static_cast<std::size_t>(s)) *
               static_cast<std::size_t>(symbols);
      };
      const auto p = [&](int t, int s, int v) {
        return static_cast<double>(log_p[row(t, s) + static_cast<std::size_t>(v)]);
      };
      const auto at = [&](int t, int s) { return static_cast<std::size_t>(t * states + s); };
      for (int t = 0; t < frames; ++t)
        for (int s = 0; s < states; ++s)
          alpha[at(t, s)] =
              t == 0 && s == 0
                  ? 0
                  : log_sum(t ? alpha[at(t - 1, s)] + p(t - 1, s, 0) : kNone,
                            s ? alpha[at(t, s - 1)] + p(t, s - 1, label[s - 1]) : kNone);
      const double total = alpha.back() + p(frames - 1, labels, 0);
      loss -= total;
      for (int t = frames - 1; t >= 0; --t)
        for (int s = labels; s >= 0; --s) {
          const double after = t + 1 < frames ? beta[at(t + 1, s)] : s == labels ? 0 : kNone;
          const double by_blank = p(t, s, 0) + after;
          const double by_label = s < labels ? p(t, s, label[s]) + beta[at(t, s + 1)] : kNone;
          beta[at(t, s)] = log_sum(by_blank, by_label);
          const double before = alpha[at(t, s)] - total;
          const double blank = std::exp(before + by_blank), next = std::exp(before + by_label);
          spread(row(t, s), blank + next);
          gradient[row(t, s)] -= static_cast<float>(blank / batch);
          if (s < labels)
            gradient[row(t, s) + static_cast<std::size_t>(label[s])] -=
                static_cast<float>(next / batch);
        }
    }
    return loss / batch;
  }

  /// By probabilities that are scaled to the sum 1 at each frame.
  double ctc() {
    const auto width = static_cast<std::size_t>(symbols);
    for (std::size_t row = 0; row < logits.size(); row += width) {
      float m = logits[row], sum = 0;
      for (std::size_t v = 1; v < width; ++v) m = std::max(m, logits[row + v]);
      for (std::size_t v = 0; v < width; ++v) sum += log_p[row + v] = std::exp(logits[row + v] - m);
      for (std::size_t v = 0; v < width; ++v) log_p[row + v] /= sum;
    }
    const std::vector<float>& p = log_p;
    const auto states = static_cast<std::size_t>(2 * labels + 1);
    std::vector<double> alpha(static_cast<std::size_t>(frames) * states), beta(states),
        arrivals(states + 2), skips(states + 2);
    std::vector<std::size_t> symbol(states);
    double loss = 0;
    for (int b = 0; b < batch; ++b) {
      for (std::size_t i = 1; i < states; i += 2) {
        symbol[i] = static_cast<std::size_t>(
            spelt[static_cast<std::size_t>(b) * static_cast<std::size_t>(labels) + i / 2]);
        skips[i] = i > 1 && symbol[i] != symbol[i - 2];
      }
      const auto row = [&](int t) { return static_cast<std::size_t>(b * frames + t) * width; };
      for (int t = 0; t < frames; ++t) {
        double* const to = alpha.data() + static_cast<std::size_t>(t) * states;
        const double* const from = to - states;
        double sum = 0;
        for (std::size_t i = 0; i < states; ++i) {
          double all = i < 2;
          if (t) all = from[i] + (i > 0 ? from[i - 1] : 0) + (i > 1 ? skips[i] * from[i - 2] : 0);
          sum += to[i] = all * static_cast<double>(p[row(t) + symbol[i]]);
        }
        for (std::size_t i = 0; i < states; ++i) to[i] /= sum;
        loss -= std::log(sum);
      }
      loss -= std::log(alpha[alpha.size() - 1] + alpha[alpha.size() - 2]);
      for (int t = frames - 1; t >= 0; --t) {
        for (std::size_t i = 0; i < states; ++i)
          beta[i] = t + 1 == frames
                        ? i + 2 >= states
                        : arrivals[i] + arrivals[i + 1] + skips[i + 2] * arrivals[i + 2];
        double sum = 0, both = 0;
        for (std::size_t i = 0; i < states; ++i) sum += beta[i];
        for (std::size_t i = 0; i < states; ++i) {
          beta[i] /= sum;
          both += alpha[static_cast<std::size_t>(t) * states + i] * beta[i];
          arrivals[i] = beta[i] * static_cast<double>(p[row(t) + symbol[i]]);
        }
        for (std::size_t v = 0; v < width; ++v)
          gradient[row(t) + v] = p[row(t) + v] / static_cast<float>(batch);
        for (std::size_t i = 0; i < states; ++i)
          gradient[row(t) + symbol[i]] -= static_cast<float>(
              alpha[static_cast<std::size_t>(t) * states + i] * beta[i] / both / batch);
      }
    }
    return loss / batch;
  }
};

}  // namespace

Model alignments(const AlignmentSizes& s) {
  const std::string name = str(s.is_transducer ? "transducer" : "ctc", " T=", s.frames,
                               " V=", s.symbols, " B=", s.batch, " labels=", s.labels);
  Model result{name, [=](bool is_traced) -> Step {
                 const Problem at = problem_of(s);
                 const auto gradient = value_and_grad(
                     [=](const Tensor& logits) -> Tensor { return loss_of(s, at, logits); });
                 const auto step_of = [=](auto function) -> Step {
                   return [=] {
                     return static_cast<double>(function(at.logits).first.template item<float>());
                   };
                 };
                 return is_traced ? step_of(jit(gradient, {.name = name})) : step_of(gradient);
               }};
  result.other_name = "by_hand";
  result.has_other_loss = false;
  result.other = [=]() -> Step {
    const auto loop = std::make_shared<ByHand>(s, problem_of(s));
    return [=] {
      // As a plan does: denormal numbers take a hundred times as long.
      const DenormalMode before = DenormalMode::now();
      DenormalMode::flushing().set();
      const double loss = s.is_transducer ? loop->transducer() : loop->ctc();
      before.set();
      return loss;
    };
  };
  result.threads = 1;
  return result;
}

}  // namespace reel::bench
