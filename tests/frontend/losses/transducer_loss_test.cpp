// transducer_loss compared with a sum over all alignments, each entry alone, gradients, long
// sequences.
#include "reel/frontend/losses/transducer_loss.h"

#include <cmath>
#include <limits>
#include <vector>

#include "reel/tests/gradients.h"
#include "reel/tests/modes.h"

namespace reel {
namespace {

const double kInf = std::numeric_limits<double>::infinity();
const double kNan = std::numeric_limits<double>::quiet_NaN();

/// Six entries. The fifth has a label and no frames, the sixth has neither labels nor frames.
class TransducerLossTest : public InEveryMode {
 protected:
  static constexpr int kEntries = 6, kFrames = 4, kLabels = 3, kVocab = 3;
  const std::vector<int> frame_counts{3, 4, 1, 2, 0, 0}, label_counts{2, 1, 3, 0, 1, 0};
  const std::vector<std::vector<int>> spelt{{1, 2}, {2}, {1, 1, 2}, {}, {1}, {}};
  const Dim batch{"batch", kEntries}, vocab{"vocab", kVocab};
  const Dim time{"time", tensor(frame_counts, {batch})};
  const Dim letters{"letters", tensor(label_counts, {batch})};
  const Dim prefix = letters + 1;
  const TransducerDims dims{time, letters, prefix, vocab};
  Tensor logits;

  void SetUp() override {
    manual_seed(9);
    logits = random_normal({batch, time, prefix, vocab}, f64) * 2;
  }
  /// Returns the labels, counted from 1 and shifted if the blank is last. Padding holds `garbage`.
  Tensor labels(int blank, int garbage = 1000) const {
    std::vector<int> all;
    for (const auto& entry : spelt)
      for (std::size_t i = 0; i < kLabels; ++i)
        all.push_back(i < entry.size() ? entry[i] - (blank == 0 ? 0 : 1) : garbage);
    return tensor(all, {batch, letters});
  }
  Tensor dirty() const {
    const Dims all{batch, time, prefix};
    const Tensor is_valid = expand(mask(time), all) && expand(mask(prefix), all);
    return where(expand(is_valid, logits.dims()), logits, scalar(kNan, f64));
  }
  /// Returns log p of a symbol behind a prefix, at a frame.
  double log_p(int entry, int t, int s, int symbol) const {
    const double* row =
        logits.data<double>() + ((entry * kFrames + t) * (kLabels + 1) + s) * kVocab;
    double sum = 0;
    for (int v = 0; v < kVocab; ++v) sum += std::exp(row[v]);
    return row[symbol] - std::log(sum);
  }
  /// Returns the sum of the probabilities of all alignments from a state on.
  double sum_from(int entry, int t, int s, int blank) const {
    const int frames = frame_counts[entry], count = label_counts[entry];
    if (t == frames) return s == count ? 1 : 0;
    double sum = std::exp(log_p(entry, t, s, blank)) * sum_from(entry, t + 1, s, blank);
    if (s < count)
      sum += std::exp(log_p(entry, t, s, spelt[entry][s] - (blank == 0 ? 0 : 1))) *
             sum_from(entry, t, s + 1, blank);
    return sum;
  }
  std::vector<double> expected(int blank) const {
    std::vector<double> result;
    for (int b = 0; b < kEntries; ++b) result.push_back(std::log(sum_from(b, 0, 0, blank)));
    return result;
  }
  /// Returns ctc's counterpart with zero_infinity, as a function of logits.
  auto finite_loss() const {
    return [labels = labels(0), dims = dims](const Tensor& x) -> Tensor {
      return transducer_loss(x, labels, dims, {.zero_infinity = true});
    };
  }
};
REEL_IN_EVERY_MODE(TransducerLossTest);

TEST_P(TransducerLossTest, IsTheSumOverAllAlignments) {
  for (const int blank : {0, 2, -1}) {
    const int place = blank < 0 ? kVocab + blank : blank;
    const auto f = run([&, blank](const Tensor& logits, const Tensor& labels) {
      return transducer_log_likelihood(logits, labels, dims, {.blank = blank});
    });
    const Tensor actual = f(dirty(), labels(place));
    EXPECT_EQ(actual.type(), TensorType(f64, {batch}));
    const std::vector<double> reference = expected(place);
    EXPECT_EQ(reference[4], -kInf);
    EXPECT_EQ(reference[5], 0);
    expect_values(actual, reference, 1e-14);
    expect_all_close(f(transpose(dirty(), {vocab, time, batch, prefix}),
                       cast(transpose(labels(place), {letters, batch}), i64)),
                     actual, 1e-14);
    expect_all_close(f(log_softmax(logits, vocab), labels(place)), actual, 1e-14);
    expect_all_close(f(cast(dirty(), f32), labels(place)), actual, 1e-6);
  }
}

TEST_P(TransducerLossTest, IsTheMeanOverEntries) {
  double total = 0;
  for (const double value : expected(0))
    if (value != -kInf) total -= value;
  const auto f = run([&](const Tensor& x) -> Tensor { return finite_loss()(x); });
  expect_values(f(dirty()), {total / kEntries}, 1e-14);
}

TEST_P(TransducerLossTest, AnEntryWithoutAlignmentIsNamed) {
  const auto f =
      run([&](const Tensor& x, const Tensor& labels) { return transducer_loss(x, labels, dims); });
  EXPECT_EQ(message_of<AssertionError>([&] { f(dirty(), labels(0)); }),
            "assert_that: transducer_loss: the entry has an alignment; one without frames has none "
            "(zero_infinity leaves it out)\nfalse at [batch=4]");
}

TEST_P(TransducerLossTest, ABatchWithoutEntriesHasALossOfZero) {
  const Dim none("batch", 0);
  for (const bool is_ragged : {true, false}) {
    const auto dim = [&](const char* name, int size) {
      return is_ragged ? Dim(name, zeros({none}, i32)) : Dim(name, size);
    };
    const Dim time = dim("time", 3), letters = dim("letters", 2);
    const Tensor labels = zeros({none, letters}, i32);
    for (const Dim& prefix : {letters + 1, dim("prefix", 3)}) {
      const Tensor logits = zeros({none, time, prefix, vocab}, f64);
      const auto likelihood = run([&](const Tensor& logits, const Tensor& labels) {
        return transducer_log_likelihood(
            logits, labels, {logits.dim("time"), labels.dim("letters"), logits.dims()[2], vocab});
      })(logits, labels);
      EXPECT_EQ(likelihood.dims(), Dims{none});
      const auto gradient = run([&](const Tensor& logits, const Tensor& labels) {
        return grad([&](const Tensor& x) {
          return transducer_loss(x, labels,
                                 {x.dim("time"), labels.dim("letters"), x.dims()[2], vocab});
        })(logits);
      })(logits, labels);
      EXPECT_EQ(gradient.dims(), logits.dims());
    }
  }
}

TEST_P(TransducerLossTest, EachEntryIsAsItIsAlone) {
  const auto f = run([&](const Tensor& logits, const Tensor& labels) {
    const Dim letters = labels.dim("spelling");
    return transducer_log_likelihood(logits, labels,
                                     {logits.dim("time"), letters, letters + 1, vocab});
  });
  const Dim spelling("spelling", tensor(label_counts, {batch}));
  const Tensor together =
      f(rename(dirty(), prefix, spelling + 1), rename(labels(0), letters, spelling));
  for (int b = 0; b < kEntries; ++b) {
    const Dim frames("time", frame_counts[b]), own("spelling", label_counts[b]);
    const Tensor of_entry = slice(gather(logits, scalar(b), batch), time, 0, frames.size(), frames);
    const Tensor alone = f(slice(of_entry, prefix, 0, own.size() + 1, own + 1),
                           slice(gather(labels(0), scalar(b), batch), letters, 0, own.size(), own));
    EXPECT_EQ(alone.rank(), 0);
    expect_all_close(alone, gather(together, scalar(b), batch), 1e-14);
  }
}

TEST_P(TransducerLossTest, GradientMatchesDifferences) {
  const Tensor gradient = run(grad(finite_loss()))(logits);
  expect_gradient_of(finite_loss(), logits, gradient, 1e-8);
  for (const double g : values_of(run(grad(finite_loss()))(dirty()))) EXPECT_FALSE(std::isnan(g));
  expect_same_bits(run(grad(finite_loss()))(dirty()), gradient);
}

TEST_P(TransducerLossTest, SecondDerivativesAgreeWithDifferences) {
  const Tensor direction = random_normal(logits.dims(), f64);
  const auto along = [&](const Tensor& x) -> Tensor {
    return sum(grad(finite_loss())(x) * direction);
  };
  expect_gradient_of(along, logits, run(grad(along))(logits));
}

TEST_P(TransducerLossTest, SecondDerivativesInWeightsOfEntries) {
  const Tensor direction = random_normal(logits.dims(), f64);
  const auto along = [&](const Tensor& weights) -> Tensor {
    const auto weighted = [&](const Tensor& x) -> Tensor {
      const Tensor p = transducer_log_likelihood(x, labels(0), dims);
      return sum(weights * where(p == -kInf, 0, p));
    };
    return sum(grad(weighted)(logits) * direction);
  };
  const Tensor weights = tensor({1., 0., 2., -1., 0.5, 0.}, {batch}, f64);
  expect_gradient_of(along, weights, run(grad(along))(weights));
}

TEST_P(TransducerLossTest, SymbolsOfProbabilityZero) {
  // One label in two frames: behind it a blank is impossible at the first frame, so that the only
  // alignment is blank, label, blank.
  const Dim time("time", 2), letters("letters", 1), prefix = letters + 1;
  const TransducerDims dims{time, letters, prefix, vocab};
  const Tensor x = tensor({{{0., 0., 0.}, {-kInf, 0., 0.}}, {{0., 0., 0.}, {0., -kInf, 0.}}},
                          {time, prefix, vocab}, f64);
  const auto f = run(value_and_grad([&](const Tensor& x, const Tensor& labels) -> Tensor {
    return 0 - transducer_log_likelihood(x, labels, dims);
  }));
  const auto [value, gradient] = f(x, tensor({1}, {letters}));
  expect_values(value, {2 * std::log(3.) + std::log(2.)}, 1e-14);
  const double third = 1. / 3;
  expect_values(gradient,
                {third - 1, third, third, 0, 0, 0,  //
                 third, third - 1, third, -0.5, 0, 0.5},
                1e-14);
  const Tensor never = where(expand(range(vocab) == 1, x.dims()), scalar(-kInf, f64), x);
  const auto [nothing, zero] = f(never, tensor({1}, {letters}));
  expect_values(nothing, {kInf});
  expect_values(zero, std::vector<double>(12, 0.));
  expect_values(f(where(x == -kInf, kNan, x), tensor({1}, {letters})).first, {kNan});
}

/// The op computes values and first gradients, scans compute second derivatives.
TEST_P(TransducerLossTest, AFrameWithoutASymbolHasZeroDerivatives) {
  const Dims all{batch, time, prefix, vocab};
  const Tensor none = where(expand(range(batch) == 0, all) && expand(range(time) == 1, all),
                            scalar(-kInf, f64), dirty());
  const auto loss = finite_loss();
  const auto slope = [&](const Tensor& x) { return sum(square(mask_padding(grad(loss)(x)))); };
  const auto f = run([&](const Tensor& x) {
    return std::array{transducer_log_likelihood(x, labels(0), dims), grad(loss)(x), grad(slope)(x)};
  });
  const std::array<Tensor, 3> expected = f(dirty()), actual = f(none);
  EXPECT_EQ(values_of(actual[0])[0], -kInf);
  for (const std::size_t order : {1u, 2u}) {
    std::vector<double> values = values_of(mask_padding(expected[order]));
    std::fill_n(values.begin(), kFrames * (kLabels + 1) * kVocab, 0.);
    expect_values(mask_padding(actual[order]), values, 1e-12);
  }
}

TEST_P(TransducerLossTest, PaddedEntriesWithLabelsOutOfRangeHaveZeroGradients) {
  const Dim batch("batch", 2), item("item", tensor({2, 1}, {batch})), time("time", 2),
      letters("letters", 2), prefix = letters + 1;
  std::vector<double> values(72, 0);
  std::fill(values.begin() + 54, values.end(), kNan);  // of the entry in padding
  const Tensor labels = tensor({1, 2, 2, 1, 1, 2, 1000, 7}, {batch, item, letters});
  const auto f = run(grad([&](const Tensor& x) -> Tensor {
    return sum(square(transducer_log_likelihood(x, labels, {time, letters, prefix, vocab})));
  }));
  const std::vector<double> gradient =
      values_of(f(tensor(values, {batch, item, time, prefix, vocab}, f64)));
  for (std::size_t i = 0; i < 54; ++i) EXPECT_TRUE(std::isfinite(gradient[i]));
  for (std::size_t i = 54; i < 72; ++i) EXPECT_EQ(gradient[i], 0);
}

TEST_P(TransducerLossTest, ABlankOutOfRangeOfASizeKnownAtRunTimeIsAnError) {
  const Dim time("time", 3), letters("letters", 1), symbols("symbols", scalar(3));
  const auto f = run([&](const Tensor& x, const Tensor& labels) {
    return transducer_loss(x, labels, {time, letters, letters + 1, x.dim("symbols")}, {.blank = 3});
  });
  EXPECT_NE(message_of<Error>([&] {
              f(zeros({time, letters + 1, symbols}), tensor({1}, {letters}));
            }).find("transducer_loss: blank must be a position along symbols"),
            std::string::npos);
}

TEST_P(TransducerLossTest, ConfidentPredictionsInF32HaveAccurateLossesAndGradients) {
  // The likely symbols make the only likely alignment: the label, then blanks.
  const Dim time("time", 2), letters("letters", 1), prefix = letters + 1;
  const Tensor x = tensor({{{0., 10., 0.}, {10., 0., 0.}}, {{0., 10., 0.}, {10., 0., 0.}}},
                          {time, prefix, vocab}, f64);
  const auto f = run(value_and_grad([&](const Tensor& x) -> Tensor {
    return transducer_log_likelihood(x, tensor({1}, {letters}), {time, letters, prefix, vocab});
  }));
  const auto [value, gradient] = f(cast(x, f32));
  const auto [expected, expected_gradient] = f(x);
  EXPECT_NEAR(value.item<float>() / expected.item<double>(), 1, 1e-6);
  const std::vector<double> actual = values_of(gradient), exact = values_of(expected_gradient);
  for (std::size_t i = 0; i < exact.size(); ++i)
    EXPECT_NEAR(actual[i], exact[i], 1e-10 + 1e-5 * std::abs(exact[i]));
}

TEST_P(TransducerLossTest, OneTraceServesAllLengths) {
  const Dim batch("batch", 2);
  const auto f = run(value_and_grad([&](const Tensor& x, const Tensor& labels) -> Tensor {
    const Dim letters = labels.dim("letters");
    return transducer_loss(x, labels, {x.dim("time"), letters, letters + 1, vocab});
  }));
  for (const auto& [frames, counts] : {std::pair{std::vector{3, 2}, std::vector{1, 1}},
                                       {{9, 4}, {4, 0}},
                                       {{1, 1}, {0, 0}},
                                       {{0, 0}, {0, 0}}}) {
    const Dim time("time", tensor(frames, {batch})), letters("letters", tensor(counts, {batch}));
    const auto [value, gradient] =
        f(zeros({batch, time, letters + 1, vocab}), ones({batch, letters}, i32));
    EXPECT_TRUE(std::isfinite(value.item<float>()));
    for (const double g : values_of(gradient)) EXPECT_TRUE(std::isfinite(g));
  }
  EXPECT_EQ(f.trace_count(), 1);
}

TEST_P(TransducerLossTest, CountsAlignmentsOfLongSequences) {
  // With equal probabilities each of the C(T - 1 + n, n) alignments of n labels has T + n symbols.
  const Dim time("time", 5000), letters("letters", 8), prefix = letters + 1;
  const auto f = run(value_and_grad([&](const Tensor& x) -> Tensor {
    return transducer_log_likelihood(x, ones({letters}, i32), {time, letters, prefix, vocab});
  }));
  const double expected =
      std::lgamma(5008) - std::lgamma(5000) - std::lgamma(9) - 5008 * std::log(3.);
  const auto [value, gradient] = f(zeros({time, prefix, vocab}));
  expect_values(value, {expected}, 1e-6);
  // Blanks at all frames, and the labels: each symbol of an alignment counts once.
  double blanks = 0;
  const std::vector<double> all = values_of(gradient);
  for (std::size_t i = 0; i < all.size(); i += kVocab) blanks += all[i];
  EXPECT_NEAR(blanks, 5000 - 5008 / 3., 1e-2);
}

TEST_P(TransducerLossTest, LongSequencesInF32AreAccurate) {
  const Dim time("time", 5000), letters("letters", 5), prefix = letters + 1;
  manual_seed(4);
  const Tensor x = random_normal({time, prefix, vocab}, f64) * 3;
  const auto f = run(value_and_grad([&](const Tensor& x) -> Tensor {
    return transducer_log_likelihood(x, ones({letters}, i32), {time, letters, prefix, vocab});
  }));
  const auto [value, gradient] = f(x);
  const auto [rounded, rounded_gradient] = f(cast(x, f32));
  expect_values(rounded, values_of(value), 1e-6);
  const std::vector<double> exact = values_of(gradient), actual = values_of(rounded_gradient);
  for (std::size_t i = 0; i < exact.size(); ++i) EXPECT_NEAR(actual[i], exact[i], 1e-3);
}

TEST_P(TransducerLossTest, PrefixMayHaveFurtherElements) {
  const Dim longer("longer", tensor({4, 2, 4, 3, 2, 1}, {batch}));
  Tensor wide = rename(logits, prefix, longer);
  const Dims all{batch, time, longer};
  const Tensor counts = expand(letters.lengths(), all);
  wide = where(expand(expand(range(longer), all) > counts, wide.dims()), 7., wide);
  const auto f = run([&](const Tensor& x, const Tensor& labels) {
    return transducer_log_likelihood(x, labels, {time, letters, longer, vocab});
  });
  expect_values(f(wide, labels(0)), expected(0), 1e-14);
  const Dim shorter("shorter", tensor({3, 1, 4, 1, 2, 1}, {batch}));
  const auto g = run([&](const Tensor& x, const Tensor& labels) {
    return transducer_log_likelihood(x, labels, {time, letters, shorter, vocab});
  });
  EXPECT_THROW(g(rename(logits, prefix, shorter), labels(0)), AssertionError);
}

TEST_P(TransducerLossTest, RowsOfVmapAreAsAlone) {
  const Dim beam("beam", 2);
  const Tensor many = random_normal({beam, batch, time, prefix, vocab}, f64);
  const auto f = run([&](const Tensor& many) {
    const auto row = [&](const Tensor& x) {
      return std::pair{finite_loss()(x), grad(finite_loss())(x)};
    };
    return vmap(row, beam)(many);
  });
  const auto [values, gradients] = f(many);
  for (int i = 0; i < 2; ++i) {
    const Tensor x = gather(many, scalar(i), beam);
    expect_all_close(gather(values, scalar(i), beam), finite_loss()(x), 1e-14);
    expect_all_close(mask_padding(gather(gradients, scalar(i), beam)),
                     mask_padding(grad(finite_loss())(x)), 1e-14);
  }
}

TEST_P(TransducerLossTest, IterationsOfALoopAreAsAlone) {
  const Dim epochs("epochs", 3);
  const Tensor rates = tensor({0.5, 1., 2.}, {epochs}, f64);
  const auto losses = [&](const Tensor& x) {
    return scan(Scan{.spatial_dim = epochs,
                     .initial = x,
                     .xs = rates,
                     .body = [&](const Tensor& rate, const Tensor& x) {
                       const auto [value, gradient] = value_and_grad(finite_loss())(x);
                       return std::pair{value, mask_padding(x - rate * gradient)};
                     }});
  };
  Tensor x = mask_padding(logits);
  std::vector<double> expected;
  for (const double rate : values_of(rates)) {
    expected.push_back(finite_loss()(x).item<double>());
    x = mask_padding(x - rate * grad(finite_loss())(x));
  }
  const auto made = run([&](const Tensor& x) { return losses(x); })(mask_padding(logits));
  expect_values(made.ys, expected, 1e-12);
  const auto end = [&](const Tensor& x) -> Tensor { return sum(losses(x).ys); };
  expect_gradient_of(end, mask_padding(logits), run(grad(end))(mask_padding(logits)), 1e-6);
}

TEST_P(TransducerLossTest, ErrorsNameBothTypes) {
  const auto f = run([&](const Tensor& logits, const Tensor& labels) {
    return transducer_loss(logits, labels, dims);
  });
  EXPECT_EQ(message_of<DTypeError>([&] { f(labels(0), labels(0)); }),
            "transducer_loss: logits must be f32 or f64, got i32[batch=6,letters[batch=6]]; cast "
            "them");
  EXPECT_EQ(message_of<DTypeError>([&] {
              f(logits, sum(logits, {time, prefix, vocab}));
            }),
            "transducer_loss: labels must be i32 or i64, positions along vocab, got f64[batch=6]");
  EXPECT_EQ(message_of<ShapeError>([&] { transducer_loss(logits, zeros({batch}, i32), dims); }),
            "transducer_loss: logits must have named dims [..., "
            "time[batch=6],letters+1[batch=6],vocab=3], and labels the same but with "
            "letters[batch=6] in the place of these three: logits "
            "f64[batch=6,time[batch=6],letters+1[batch=6],vocab=3], labels i32[batch=6]");
  EXPECT_EQ(
      message_of<ArgumentError>([&] { transducer_loss(logits, labels(0), dims, {.blank = 3}); }),
      "transducer_loss: blank must be a position along vocab=3, got 3");
  for (const int wrong : {0, 3, -1})
    EXPECT_THROW(f(logits, where(labels(0) == 2, wrong, labels(0))), IndexError);
  const Dim some("some", 2), more("more", 4), frames("frames", 3);
  EXPECT_EQ(message_of<ShapeError>([&] {
              transducer_loss(zeros({frames, more, vocab}), ones({some}, i32),
                              {frames, some, more, vocab});
            }),
            "transducer_loss: prefix must have one element more than some=2, got more=4");
  EXPECT_EQ(
      message_of<ArgumentError>([&] {
        transducer_loss(zeros({frames, vocab}), ones({some}, i32), {frames, some, frames, vocab});
      }),
      "transducer_loss: frames=3 is named twice; the dims are {time, label_time, prefix, "
      "vocab}");
}

}  // namespace
}  // namespace reel
