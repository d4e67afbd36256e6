// ctc_alignment compared with the likeliest of all alignments.
#include "reel/frontend/losses/ctc_alignment.h"

#include "reel/tests/frontend/losses/ctc_entries.h"
#include "reel/tests/gradients.h"

namespace reel {
namespace {

const double kInf = std::numeric_limits<double>::infinity();

class CtcAlignmentTest : public CtcEntries {
 protected:
  struct Best {
    std::vector<double> log_probability, symbols, places, durations;
  };
  Best best(int blank) const {
    Best result;
    for (int b = 0; b < kEntries; ++b) {
      const std::vector<int> spelling = labels_of(b, blank);
      std::vector<int> likeliest(static_cast<std::size_t>(frame_counts[b]), blank);
      double highest = 0;
      visit_alignments(frames_of(b), spelling, kVocab, blank,
                       [&](const std::vector<int>& alignment, double p) {
                         if (p > highest) {
                           highest = p;
                           likeliest = alignment;
                         }
                       });
      result.log_probability.push_back(std::log(highest));
      std::vector<double> durations(kLabels, 0);
      int place = -1, last = blank;
      for (int t = 0; t < kFrames; ++t) {
        const bool is_frame = t < frame_counts[b];
        const int symbol = is_frame ? likeliest[static_cast<std::size_t>(t)] : blank;
        const bool is_label = symbol != blank;
        place += is_label && symbol != last;
        last = symbol;
        if (is_label) ++durations[static_cast<std::size_t>(place)];
        result.symbols.push_back(is_frame ? symbol : 0);
        result.places.push_back(!is_frame ? 0 : is_label ? place : -1);
      }
      result.durations.insert(result.durations.end(), durations.begin(), durations.end());
    }
    return result;
  }
};
REEL_IN_EVERY_MODE(CtcAlignmentTest);

TEST_P(CtcAlignmentTest, IsTheLikeliestOfAllAlignments) {
  for (const int blank : {0, 2, -1}) {
    const int place = blank < 0 ? kVocab + blank : blank;
    const auto f = run([&, blank](const Tensor& logits, const Tensor& labels) {
      return ctc_alignment(logits, labels, dims, {.blank = blank});
    });
    const CtcAlignment actual = f(dirty(), labels(place));
    const Best expected = best(place);
    EXPECT_EQ(expected.log_probability[3], -kInf);
    EXPECT_EQ(actual.symbols.type(), TensorType(i32, {batch, time}));
    EXPECT_EQ(actual.durations.type(), TensorType(i32, {batch, spelling}));
    expect_values(actual.log_probability, expected.log_probability, 1e-14);
    expect_values(mask_padding(actual.symbols), expected.symbols);
    expect_values(mask_padding(actual.places), expected.places);
    expect_values(mask_padding(actual.durations), expected.durations);
    const CtcAlignment of_floats = f(cast(dirty(), f32), cast(labels(place), i64));
    expect_same_bits(mask_padding(of_floats.symbols), mask_padding(actual.symbols));
  }
}

TEST_P(CtcAlignmentTest, EachEntryIsAsItIsAlone) {
  const auto f = run([&](const Tensor& logits, const Tensor& labels) {
    return ctc_alignment(logits, labels,
                         {logits.dim("time"), labels.dim("spelling"), logits.dim("vocab")});
  });
  const CtcAlignment together = f(dirty(), labels(0));
  for (int b = 0; b < kEntries; ++b) {
    const Dim alone("time", frame_counts[b]),
        letters("spelling", static_cast<int>(spelt[b].size()));
    std::vector<double> frames;
    for (const auto& frame : frames_of(b)) frames.insert(frames.end(), frame.begin(), frame.end());
    const CtcAlignment one =
        f(tensor(frames, {alone, vocab}, f64), tensor(labels_of(b, 0), {letters}, i32));
    const Tensor entry = slice(together.symbols, batch, b, b + 1);
    for (int t = 0; t < frame_counts[b]; ++t)
      EXPECT_EQ(values_of(entry)[static_cast<std::size_t>(t)],
                values_of(one.symbols)[static_cast<std::size_t>(t)]);
    expect_values(one.log_probability,
                  {values_of(together.log_probability)[static_cast<std::size_t>(b)]}, 1e-14);
  }
}

TEST_P(CtcAlignmentTest, GradientCountsTheFramesOfTheBestAlignment) {
  // The derivative of log p by a logit is 1 at the frame's symbol, minus its softmax.
  const auto f = run([&](const Tensor& logits, const Tensor& labels) {
    const auto g = grad([&](const Tensor& x) {
      const Tensor all = ctc_alignment(x, labels, dims).log_probability;
      return sum(where(all > -1e30, all, 0));
    });
    return std::pair{g(logits), ctc_alignment(logits, labels, dims)};
  });
  const auto [gradient, alignment] = f(logits, labels(0));
  const Tensor is_symbol = equal(expand(alignment.symbols, logits.dims()), range(vocab));
  const Tensor expected = cast(is_symbol, f64) - softmax(logits, vocab);
  const Tensor is_possible = alignment.log_probability > -1e30;
  expect_all_close(mask_padding(gradient), mask_padding(where(is_possible, expected, 0)), 1e-12);
}

TEST_P(CtcAlignmentTest, NaNInAnEntryMakesItsProbabilityNaN) {
  const auto f = run([&](const Tensor& logits, const Tensor& labels) {
    return ctc_alignment(logits, labels, dims);
  });
  const CtcAlignment expected = f(dirty(), labels(0));
  for (const double value : {std::nan(""), kInf}) {
    const CtcAlignment actual = f(spoilt(value), labels(0));
    std::vector<double> log_p = values_of(expected.log_probability),
                        symbols = values_of(mask_padding(expected.symbols)),
                        durations = values_of(mask_padding(expected.durations));
    log_p[0] = std::nan("");
    std::fill_n(symbols.begin(), kFrames, 0.);
    std::fill_n(durations.begin(), kLabels, 0.);
    expect_values(actual.log_probability, log_p, 1e-14);
    expect_values(mask_padding(actual.symbols), symbols);
    expect_values(mask_padding(actual.durations), durations);
  }
  EXPECT_EQ(values_of(f(without_a_frame(), labels(0)).log_probability)[0], -kInf);
}

TEST_P(CtcAlignmentTest, ErrorsNameTheFunction) {
  const auto f = run([&](const Tensor& logits, const Tensor& labels) {
    return ctc_alignment(logits, labels, {time, spelling, batch});
  });
  EXPECT_EQ(message_of<ShapeError>([&] { f(logits, labels(0)); }).find("ctc_alignment: logits"),
            0u);
}

}  // namespace
}  // namespace reel
