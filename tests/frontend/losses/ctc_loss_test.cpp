// ctc_loss compared with a sum over all alignments, labels that fit no alignment, gradients.
#include "reel/frontend/losses/ctc_loss.h"

#include <limits>

#include "reel/core/ops/alignments/alignments.h"
#include "reel/tests/frontend/losses/ctc_entries.h"
#include "reel/tests/gradients.h"

namespace reel {
namespace {

const double kInf = std::numeric_limits<double>::infinity();
const double kNan = std::numeric_limits<double>::quiet_NaN();

class CtcLossTest : public CtcEntries {
 protected:
  /// Returns log p(labels) of each entry, by the sum over all alignments that spell them.
  std::vector<double> expected(int blank) const {
    std::vector<double> result;
    for (int b = 0; b < kEntries; ++b) {
      double total = 0;
      visit_alignments(frames_of(b), labels_of(b, blank), kVocab, blank,
                       [&](const std::vector<int>&, double p) { total += p; });
      result.push_back(std::log(total));
    }
    return result;
  }
};
REEL_IN_EVERY_MODE(CtcLossTest);

TEST_P(CtcLossTest, IsTheSumOverAllAlignments) {
  for (const int blank : {0, 2, -1}) {
    const int place = blank < 0 ? kVocab + blank : blank;
    const auto f = run([&, blank](const Tensor& logits, const Tensor& labels) {
      return ctc_log_likelihood(logits, labels, dims, {.blank = blank});
    });
    const Tensor actual = f(dirty(), labels(place));
    EXPECT_EQ(actual.type(), TensorType(f64, {batch}));
    const std::vector<double> reference = expected(place);
    EXPECT_EQ(reference[3], -kInf);  // [1, 1] needs three frames
    EXPECT_EQ(reference[5], 0);
    expect_values(actual, reference, 1e-14);
    expect_all_close(f(transpose(dirty(), {vocab, time, batch}),
                       cast(transpose(labels(place), {spelling, batch}), i64)),
                     actual, 1e-14);
    expect_all_close(f(log_softmax(logits, vocab), labels(place)), actual, 1e-14);
    expect_all_close(f(cast(dirty(), f32), labels(place)), actual, 1e-6);
  }
}

TEST_P(CtcLossTest, IsTheMeanOverEntries) {
  const auto f = run([&](const Tensor& logits, const Tensor& labels) {
    return std::pair{ctc_loss(logits, labels, dims),
                     ctc_loss(logits, labels, dims, {.zero_infinity = true})};
  });
  const auto [loss, without_impossible] = f(dirty(), labels(0));
  expect_values(loss, {kInf});
  double total = 0;
  for (const double value : expected(0))
    if (value != -kInf) total -= value;
  expect_values(without_impossible, {total / kEntries}, 1e-14);
}

TEST_P(CtcLossTest, EachEntryIsAsItIsAlone) {
  const auto f = run([&](const Tensor& logits, const Tensor& labels) {
    return ctc_log_likelihood(logits, labels,
                              {logits.dim("time"), labels.dim("spelling"), logits.dim("vocab")});
  });
  const Tensor together = f(dirty(), labels(0));
  for (int b = 0; b < kEntries; ++b) {
    const Dim frames("time", frame_counts[b]);
    const Dim letters("spelling", static_cast<std::int64_t>(spelt[b].size()));
    const Tensor alone =
        f(slice(gather(logits, scalar(b), batch), time, 0, frames.size(), frames),
          slice(gather(labels(0), scalar(b), batch), spelling, 0, letters.size(), letters));
    EXPECT_EQ(alone.rank(), 0);
    expect_all_close(alone, gather(together, scalar(b), batch), 1e-14);
  }
}

TEST_P(CtcLossTest, GradientAlsoWhereNoAlignmentFits) {
  // If no alignment fits, the likelihood is constant: differences and gradient are 0.
  const auto loss = [&](const Tensor& x) -> Tensor {
    return ctc_loss(x, labels(0), dims, {.zero_infinity = true});
  };
  const Tensor gradient = run(grad(loss))(logits);
  expect_gradient_of(loss, logits, gradient, 1e-8);
  expect_same_bits(run(grad(loss))(dirty()), gradient);
  // The value may be infinite; the gradient stays the same.
  const auto infinite = [&](const Tensor& x) -> Tensor { return ctc_loss(x, labels(0), dims); };
  expect_same_bits(run(grad(infinite))(logits), gradient);
}

TEST_P(CtcLossTest, SecondDerivativesAgreeWithDifferences) {
  const Tensor direction = random_normal({batch, time, vocab}, f64);
  const auto along = [&](const Tensor& x) -> Tensor {
    const auto loss = [&](const Tensor& x) -> Tensor { return ctc_loss(x, labels(0), dims); };
    return sum(grad(loss)(x) * direction);
  };
  expect_gradient_of(along, logits, run(grad(along))(logits));
}

TEST_P(CtcLossTest, SymbolsOfProbabilityZero) {
  // Only the alignment 0 1 1 of [1] with three frames is possible.
  const Dim time("time", 3), spelling("spelling", 1);
  const Tensor x =
      tensor({{0.0, -kInf, 0.0}, {-kInf, 0.0, 0.0}, {-kInf, 0.0, 0.0}}, {time, vocab}, f64);
  const auto loss = [&](const Tensor& x, const Tensor& labels) -> Tensor {
    return ctc_loss(x, labels, {time, spelling, vocab});
  };
  const auto f = run(value_and_grad(loss));
  const auto [value, gradient] = f(x, tensor({1}, {spelling}));
  expect_values(value, {3 * std::log(2.0)}, 1e-14);
  expect_values(gradient, {-0.5, 0, 0.5, 0, -0.5, 0.5, 0, -0.5, 0.5}, 1e-14);
  const auto [never, zero] =
      f(tensor({{0.0, -kInf, 0.0}, {0.0, -kInf, 0.0}, {0.0, -kInf, 0.0}}, {time, vocab}, f64),
        tensor({1}, {spelling}));
  expect_values(never, {kInf});
  expect_values(zero, std::vector<double>(9, 0.0));
  // NaN stays visible.
  expect_values(f(where(x == 0.0, kNan, x), tensor({1}, {spelling})).first, {kNan});
}

/// The op computes values and first gradients, a scan computes second derivatives.
TEST_P(CtcLossTest, AFrameWithoutASymbolHasZeroDerivatives) {
  const auto loss = [&](const Tensor& x) {
    const Tensor all = ctc_log_likelihood(x, labels(0), dims);
    return sum(where(all == -kInf, 0, all));
  };
  const auto slope = [&](const Tensor& x) { return sum(square(mask_padding(grad(loss)(x)))); };
  const auto f = run([&](const Tensor& x) {
    return std::array{ctc_log_likelihood(x, labels(0), dims), grad(loss)(x), grad(slope)(x)};
  });
  const std::array<Tensor, 3> expected = f(dirty()), actual = f(without_a_frame());
  EXPECT_EQ(values_of(actual[0])[0], -kInf);
  for (const std::size_t order : {1u, 2u}) {
    std::vector<double> values = values_of(mask_padding(expected[order]));
    std::fill_n(values.begin(), kFrames * kVocab, 0.);
    expect_values(mask_padding(actual[order]), values, 1e-12);
  }
}

TEST_P(CtcLossTest, OneTraceServesAllLengths) {
  const Dim batch("batch", 2);
  const auto f = run(value_and_grad([&](const Tensor& x, const Tensor& labels) -> Tensor {
    return ctc_loss(x, labels, {x.dim("time"), labels.dim("spelling"), vocab});
  }));
  for (const auto& [frames, letters] : {std::pair{std::vector{3, 2}, std::vector{1, 1}},
                                        {{9, 4}, {4, 0}},
                                        {{1, 1}, {0, 0}},
                                        {{0, 0}, {0, 0}}}) {
    const Dim time("time", tensor(frames, {batch})), spelling("spelling", tensor(letters, {batch}));
    const Tensor ones_everywhere = ones({batch, spelling}, i32);
    // Labels 1 2 1 2 ...
    const Tensor labels = ones_everywhere + expand(range(spelling) % 2, {batch, spelling});
    const auto [value, gradient] = f(zeros({batch, time, vocab}), labels);
    EXPECT_TRUE(std::isfinite(value.item<float>()));
    for (const double g : values_of(gradient)) EXPECT_TRUE(std::isfinite(g));
  }
  EXPECT_EQ(f.trace_count(), 1);
}

TEST_P(CtcLossTest, LongSequencesStayAccurate) {
  // With equal probabilities every alignment is equally likely, so the value counts the alignments.
  // n labels that differ from their neighbours and T frames have C(T + n, 2 n) alignments.
  const Dim time("time", 400), spelling("spelling", 50);
  const auto f = run([&](const Tensor& x) {
    return ctc_log_likelihood(x, range(spelling) % 2 + 1, {time, spelling, vocab});
  });
  const double expected =
      std::lgamma(451) - std::lgamma(101) - std::lgamma(351) - 400 * std::log(3.0);
  expect_values(f(zeros({time, vocab}, f64)), {expected}, 1e-12);
  expect_values(f(zeros({time, vocab})), {expected}, 1e-5);
}

/// Expects log p and its gradient as the scan in log space has them.
void expect_sums_of_the_scan(const Tensor& logits, const Tensor& labels, const CtcDims& dims) {
  const auto f = value_and_grad(
      [&](const Tensor& x) -> Tensor { return sum(ctc_log_likelihood(x, labels, dims)); });
  const auto [value, gradient] = f(logits);
  const AlignmentOpsOff ops_off;
  const auto [expected, expected_gradient] = f(logits);
  ASSERT_TRUE(std::isfinite(expected.item<double>()));
  expect_values(value, values_of(expected), 1e-12);
  expect_all_close(gradient, expected_gradient, 1e-9);
}

TEST(CtcSumsTest, PathsFarBelowTheLargestCount) {
  // Blanks are so likely that the labels are e^-1200 of the paths without them.
  const Dim time("time", 200), spelling("spelling", 80), vocab("vocab", 3);
  const Tensor labels = 1 + range(spelling) % 2;
  manual_seed(3);
  const Tensor x = random_normal({time, vocab}, f64) +
                   where(expand(range(vocab) == 0, {time, vocab}), scalar(15., f64), 0);
  expect_sums_of_the_scan(x, labels, {time, spelling, vocab});
}

TEST(CtcSumsTest, SymbolsBelowTheSmallestNumberCount) {
  // At three frames all symbols but one that fits no alignment have the probability e^-900.
  const Dim time("time", 12), spelling("spelling", 4), vocab("vocab", 4);
  const Tensor labels = 1 + range(spelling) % 2;
  manual_seed(3);
  const Dims dims{time, vocab};
  const Tensor is_other = expand(range(vocab) == 3, dims) && expand(range(time) % 4 == 1, dims);
  expect_sums_of_the_scan(random_normal(dims, f64) + where(is_other, scalar(900., f64), 0), labels,
                          {time, spelling, vocab});
}

TEST(CtcSumsTest, PathsThatAFrameOfUnlikelySymbolsHidesCount) {
  // The only likely path has the label first; it is e^-740, and the others are below.
  const Dim time("time", 3), spelling("spelling", 1), vocab("vocab", 4);
  const Tensor x =
      tensor({{0., -50., -100., -100.}, {-690., -1000., -1000., 0.}, {0., -80., -100., -100.}},
             {time, vocab}, f64);
  const Tensor labels = tensor({1}, {spelling});
  expect_values(ctc_log_likelihood(x, labels, {time, spelling, vocab}), {-740}, 1e-12);
  expect_sums_of_the_scan(x, labels, {time, spelling, vocab});
}

TEST(CtcSumsTest, ConfidentPredictionsInF32HaveAccurateLossesAndGradients) {
  const Dim time("time", 4), spelling("spelling", 1);
  for (const std::int64_t size : {2, 100}) {
    const Dim vocab("vocab", size);
    const Tensor x = where(expand(range(vocab) == 1, {time, vocab}), scalar(10., f64), 0);
    const auto f = value_and_grad([&](const Tensor& x) -> Tensor {
      return ctc_log_likelihood(x, tensor({1}, {spelling}), {time, spelling, vocab});
    });
    const auto [value, gradient] = f(cast(x, f32));
    const auto [expected, expected_gradient] = f(x);
    EXPECT_NEAR(value.item<float>() / expected.item<double>(), 1, 1e-6);
    const std::vector<double> actual = values_of(gradient), exact = values_of(expected_gradient);
    for (std::size_t i = 0; i < exact.size(); ++i)
      EXPECT_NEAR(actual[i], exact[i], 1e-10 + 1e-5 * std::abs(exact[i]));
  }
}

TEST_P(CtcLossTest, PaddedEntriesWithLabelsOutOfRangeHaveZeroGradients) {
  const Dim batch("batch", 2), item("item", tensor({2, 1}, {batch})), time("time", 4),
      letters("letters", 2);
  std::vector<double> values(48, 0);
  std::fill(values.begin() + 36, values.end(), kNan);  // of the entry in padding
  const Tensor labels = tensor({1, 2, 2, 1, 1, 2, 1000, 7}, {batch, item, letters});
  const auto f = run(grad([&](const Tensor& x) -> Tensor {
    return sum(square(ctc_log_likelihood(x, labels, {time, letters, vocab})));
  }));
  const std::vector<double> gradient =
      values_of(f(tensor(values, {batch, item, time, vocab}, f64)));
  for (std::size_t i = 0; i < 36; ++i) EXPECT_TRUE(std::isfinite(gradient[i]));
  for (std::size_t i = 36; i < 48; ++i) EXPECT_EQ(gradient[i], 0);
}

TEST_P(CtcLossTest, ABlankOutOfRangeOfASizeKnownAtRunTimeIsAnError) {
  const Dim time("time", 3), spelling("spelling", 1), symbols("symbols", scalar(3));
  for (const std::int64_t blank : {3, -4}) {
    const auto f = run([&, blank](const Tensor& x, const Tensor& labels) {
      return ctc_loss(x, labels, {time, spelling, x.dim("symbols")}, {.blank = blank});
    });
    EXPECT_NE(message_of<Error>([&] {
                f(zeros({time, symbols}), tensor({1}, {spelling}));
              }).find("ctc_loss: blank must be a position along symbols"),
              std::string::npos);
  }
}

TEST(CtcSumsTest, RandomFramesHaveTheSumsOfTheScan) {
  const Dim batch("batch", 3), time("time", tensor({40, 25, 9}, {batch})),
      spelling("spelling", tensor({11, 0, 4}, {batch})), vocab("vocab", 5);
  manual_seed(3);
  for (const double scale : {0.1, 3., 30.})
    expect_sums_of_the_scan(random_normal({batch, time, vocab}, f64) * scale,
                            random_integers({batch, spelling}, 1, 5), {time, spelling, vocab});
}

TEST_P(CtcLossTest, ErrorsNameBothTypes) {
  const auto f = run(
      [&](const Tensor& logits, const Tensor& labels) { return ctc_loss(logits, labels, dims); });
  EXPECT_EQ(message_of<DTypeError>([&] { f(labels(0), labels(0)); }),
            "ctc_loss: logits must be f32 or f64, got i32[batch=6,spelling[batch=6]]; cast them");
  EXPECT_EQ(message_of<DTypeError>([&] { f(logits, logits); }),
            "ctc_loss: labels must be i32 or i64, positions along vocab, got "
            "f64[batch=6,time[batch=6],vocab=3]");
  EXPECT_EQ(message_of<ShapeError>([&] { f(logits, zeros({spelling}, i32)); }),
            "ctc_loss: logits must have named dims [..., time[batch=6],vocab=3], and labels the "
            "same but with spelling[batch=6] in the place of these two: logits "
            "f64[batch=6,time[batch=6],vocab=3], labels i32[spelling[batch=6]]");
  EXPECT_EQ(message_of<ArgumentError>([&] { ctc_loss(logits, labels(0), dims, {.blank = 3}); }),
            "ctc_loss: blank must be a position along vocab=3, got 3");
  EXPECT_EQ(message_of<ArgumentError>([&] {
              ctc_loss(sum(logits, time), labels(0), {vocab, spelling, vocab});
            }),
            "ctc_loss: vocab=3 is named twice, as time and as vocab; the dims are {time, "
            "label_time, vocab}");
  // A label must not be the blank, negative or out of range.
  for (const int wrong : {0, 3, -1, -2})
    EXPECT_THROW(f(logits, where(labels(0) == 2, wrong, labels(0))), IndexError);
}

TEST_P(CtcLossTest, SaysWhichLabelIsTheBlankOrNone) {
  const Dim batch("batch", 2), time("time", 5), letters("letters", tensor({3, 2}, {batch})),
      symbols("symbols", 4);
  const auto f = [&](std::int64_t blank) {
    return run([&, blank](const Tensor& logits, const Tensor& labels) {
      return ctc_loss(logits, labels, {time, letters, symbols}, {.blank = blank});
    });
  };
  const Tensor logits = zeros({batch, time, symbols});
  EXPECT_EQ(message_of<IndexError>([&] {
              f(0)(logits, tensor({1, 2, 3, 1, 0, 77}, {batch, letters}));
            }),
            "ctc_loss: label 0 at [1,1] of i32[batch=2,letters[batch=2]] is the blank; labels are "
            "other positions along symbols=4");
  EXPECT_EQ(message_of<IndexError>([&] {
              f(-1)(logits, tensor({1, 2, 3, 1, 0, 77}, {batch, letters}));
            }),
            "ctc_loss: label 3 at [0,2] of i32[batch=2,letters[batch=2]] is the blank; labels are "
            "other positions along symbols=4");
  EXPECT_EQ(message_of<IndexError>([&] {
              f(0)(logits, tensor({1, 2, 4, 1, 1, 77}, {batch, letters}));
            }),
            "ctc_loss: label 4 at [0,2] of i32[batch=2,letters[batch=2]] is no position along "
            "symbols=4");
}

TEST(CtcLossGradients, SecondDerivativesTakeNoRandomNumbers) {
  const Dim time("time", 3), vocab("vocab", 2), letters("letters", 1);
  const Tensor logits = zeros({time, vocab}, f64), labels = tensor({1}, {letters});
  const auto slope = [&](const Tensor& x) {
    return sum(square(grad([&](const Tensor& y) {
      return ctc_loss(y, labels, {time, letters, vocab});
    })(x)));
  };
  manual_seed(5);
  const Tensor before = random_state();
  grad(slope)(logits);
  expect_same_bits(random_state(), before);
}

}  // namespace
}  // namespace reel
