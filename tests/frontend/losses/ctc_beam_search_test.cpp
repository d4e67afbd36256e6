// ctc_beam_search compared with all alignments, and with a search over a map of prefixes.
#include "reel/frontend/losses/ctc_beam_search.h"

#include <algorithm>
#include <limits>
#include <map>
#include <vector>

#include "reel/frontend/tree/dim_lists.h"
#include "reel/tests/frontend/losses/ctc_entries.h"

namespace reel {
namespace {

const double kInf = std::numeric_limits<double>::infinity();

double log_sum(double a, double b) {
  const double m = std::max(a, b);
  return m == -kInf ? m : m + std::log(std::exp(a - m) + std::exp(b - m));
}

/// A hypothesis of a search: log p of its alignments, and the language model's part of its score.
struct Found {
  std::vector<int> labels;
  double by_blank = -kInf, by_label = -kInf, rank = 0;
  double log_p() const { return log_sum(by_blank, by_label); }
};

/// log p of a label behind another one; row 0 is for the first label.
const double kBigrams[3][3] = {{0, -0.5, -1.5}, {0, -2, -0.1}, {0, -0.3, -1}};

class CtcBeamSearchTest : public CtcEntries {
 protected:
  /// Searches the frames of an entry. scale: of kBigrams. Blank is symbol 0.
  std::vector<Found> searched(int entry, std::size_t size, double scale, double bonus) const {
    std::vector<Found> beam{{{}, 0, -kInf, 0}};
    for (const std::vector<double>& frame : frames_of(entry)) {
      double sum = 0;
      for (const double logit : frame) sum += std::exp(logit);
      std::map<std::vector<int>, Found> next;
      const auto at = [&](const std::vector<int>& labels, double rank) -> Found& {
        Found& found = next[labels];
        found.labels = labels;
        found.rank = rank;
        return found;
      };
      for (const Found& prefix : beam) {
        const int last = prefix.labels.empty() ? 0 : prefix.labels.back();
        for (int symbol = 0; symbol < kVocab; ++symbol) {
          const double p = frame[static_cast<std::size_t>(symbol)] - std::log(sum);
          if (symbol == 0) {
            Found& same = at(prefix.labels, prefix.rank);
            same.by_blank = log_sum(same.by_blank, prefix.log_p() + p);
            continue;
          }
          if (symbol == last) {
            Found& same = at(prefix.labels, prefix.rank);
            same.by_label = log_sum(same.by_label, prefix.by_label + p);
          }
          std::vector<int> labels = prefix.labels;
          labels.push_back(symbol);
          Found& longer = at(labels, prefix.rank + scale * kBigrams[last][symbol] + bonus);
          longer.by_label =
              log_sum(longer.by_label, (symbol == last ? prefix.by_blank : prefix.log_p()) + p);
        }
      }
      beam.clear();
      for (const auto& [labels, found] : next)
        if (found.log_p() > -kInf) beam.push_back(found);
      std::sort(beam.begin(), beam.end(), [](const Found& a, const Found& b) {
        return a.log_p() + a.rank > b.log_p() + b.rank;
      });
      if (beam.size() > size) beam.resize(size);
    }
    return beam;
  }
  void expect_found(const CtcBeams& actual, std::size_t size, double scale, double bonus) const {
    const auto labels = rows_of<std::vector<std::vector<int>>>(actual.labels);
    const std::vector<double> score = values_of(actual.score),
                              log_p = values_of(actual.log_probability);
    for (int b = 0; b < kEntries; ++b) {
      const std::vector<Found> expected = searched(b, size, scale, bonus);
      for (std::size_t k = 0; k < size; ++k) {
        const std::size_t at = static_cast<std::size_t>(b) * size + k;
        if (k >= expected.size()) {
          EXPECT_EQ(score[at], -kInf);
          EXPECT_TRUE(labels[static_cast<std::size_t>(b)][k].empty());
          continue;
        }
        EXPECT_EQ(labels[static_cast<std::size_t>(b)][k], expected[k].labels) << b << ' ' << k;
        EXPECT_NEAR(log_p[at], expected[k].log_p(), 1e-12);
        EXPECT_NEAR(score[at], expected[k].log_p() + expected[k].rank, 1e-12);
      }
    }
  }
};
REEL_IN_EVERY_MODE(CtcBeamSearchTest);

/// kBigrams as a recurrent model: the state counts labels, so that the test sees its order.
std::pair<Tensor, Tensor> bigram_step(const Tensor& count, const Tensor& symbol, const Dim& before,
                                      const Dim& vocab) {
  const Tensor table =
      tensor({{0., -0.5, -1.5}, {0., -2., -0.1}, {0., -0.3, -1.}}, {before, vocab}, f64);
  return {gather(table, symbol, before) + cast(count - count, f64), count + 1};
}

TEST_P(CtcBeamSearchTest, WideBeamsSumOverAllAlignments) {
  const Dim beam("beam", 64);
  const auto f = run([&](const Tensor& x) { return ctc_beam_search(x, {time, vocab, beam}); });
  const CtcBeams found = f(dirty());
  const auto labels = rows_of<std::vector<std::vector<int>>>(found.labels);
  const std::vector<double> log_p = values_of(found.log_probability);
  for (int b = 0; b < kEntries; ++b)
    for (std::size_t k = 0; k < 64; ++k) {
      const double actual = log_p[static_cast<std::size_t>(b) * 64 + k];
      if (actual == -kInf) continue;
      double total = 0;
      visit_alignments(frames_of(b), labels[static_cast<std::size_t>(b)][k], kVocab, 0,
                       [&](const std::vector<int>&, double p) { total += p; });
      EXPECT_NEAR(actual, std::log(total), 1e-12);
    }
  expect_found(found, 64, 0, 0);
}

TEST_P(CtcBeamSearchTest, NarrowBeamsKeepTheBestPrefixes) {
  for (const std::int64_t size : {1, 2, 4}) {
    const Dim beam("beam", size);
    const auto f = run([&](const Tensor& x) { return ctc_beam_search(x, {time, vocab, beam}); });
    expect_found(f(dirty()), static_cast<std::size_t>(size), 0, 0);
    expect_found(f(transpose(dirty(), {vocab, time, batch})), static_cast<std::size_t>(size), 0, 0);
  }
}

TEST_P(CtcBeamSearchTest, AScorerRanksHypotheses) {
  const Dim beam("beam", 3), before("before", kVocab);
  const auto f = run([&](const Tensor& x) {
    const auto scorer = [&](const Tensor& count, const Tensor& symbol) {
      return bigram_step(count, symbol, before, vocab);
    };
    return ctc_beam_search(x, {time, vocab, beam}, scalar(0), scorer,
                           {.scorer_scale = 0.7, .label_bonus = 0.2});
  });
  expect_found(f(dirty()), 3, 0.7, 0.2);
}

TEST_P(CtcBeamSearchTest, BlankMayBeTheLastSymbol) {
  const Dim beam("beam", 4);
  const auto f = run([&](const Tensor& x) {
    const Tensor is_last = expand(range(vocab) == kVocab - 1, x.dims());
    const Tensor moved =
        where(is_last, expand(gather(x, scalar(0), vocab), x.dims()), shift(x, vocab, -1));
    return ctc_beam_search(moved, {time, vocab, beam}, {.blank = -1});
  });
  const auto g = run([&](const Tensor& x) { return ctc_beam_search(x, {time, vocab, beam}); });
  const CtcBeams moved = f(dirty()), expected = g(dirty());
  expect_all_close(moved.score, expected.score, 1e-12);
  expect_values(mask_padding(moved.labels + 1), values_of(mask_padding(expected.labels)));
}

TEST_P(CtcBeamSearchTest, ImpossibleSymbolsAreNeverFound) {
  const Dim beam("beam", 5), frames("frames", 3);
  const auto f = run([&](const Tensor& x) { return ctc_beam_search(x, {frames, vocab, beam}); });
  const CtcBeams found =
      f(tensor({{0., -kInf, -kInf}, {-kInf, 0., 0.}, {0., -kInf, -kInf}}, {frames, vocab}, f64));
  expect_values(found.log_probability, {-std::log(2.), -std::log(2.), -kInf, -kInf, -kInf}, 1e-14);
  expect_values(found.score, values_of(found.log_probability));
}

TEST_P(CtcBeamSearchTest, NaNInAnEntryMakesItsScoresNaN) {
  const Dim beam("beam", 4);
  const auto f = run([&](const Tensor& x) { return ctc_beam_search(x, {time, vocab, beam}); });
  const CtcBeams expected = f(dirty());
  for (const double value : {std::nan(""), kInf}) {
    const CtcBeams actual = f(spoilt(value));
    for (const auto member : {&CtcBeams::score, &CtcBeams::log_probability}) {
      std::vector<double> values = values_of(expected.*member);
      std::fill_n(values.begin(), 4, std::nan(""));
      expect_values(actual.*member, values, 1e-14);
    }
    auto labels = rows_of<std::vector<std::vector<int>>>(expected.labels);
    labels[0].assign(4, {});
    EXPECT_EQ((rows_of<std::vector<std::vector<int>>>(actual.labels)), labels);
  }
  const std::vector<double> impossible = values_of(f(without_a_frame()).score);
  EXPECT_EQ(std::vector(impossible.begin(), impossible.begin() + 4), std::vector(4, -kInf));
}

TEST_P(CtcBeamSearchTest, NaNOfAScorerMakesScoresNaN) {
  const Dim beam("beam", 3);
  const auto f = run([&](const Tensor& x, const Tensor& p) {
    const auto scorer = [&](const Tensor& state, const Tensor& symbol) {
      return std::pair{expand(p, with_more(symbol.dims(), {vocab})), state};
    };
    return ctc_beam_search(x, {time, vocab, beam}, scalar(0), scorer);
  });
  const CtcBeams found = f(dirty(), tensor({0., std::nan(""), -1.}, {vocab}, f64));
  const std::vector<double> scores = values_of(found.score);
  for (std::size_t b = 0; b < kEntries; ++b)
    for (std::size_t k = 0; k < 3; ++k)
      EXPECT_EQ(std::isnan(scores[b * 3 + k]), frame_counts[b] > 0) << b << ' ' << k;
}

/// A model without memory: label 2 is forbidden, and label 1 has log p 0.
std::pair<Tensor, Tensor> step_without_label_2(const Tensor& state, const Tensor& symbol,
                                               const Dim& vocab) {
  const Tensor log_p = tensor({0., 0., -kInf}, {vocab}, f64);
  Dims dims = symbol.dims();
  dims.push_back(vocab);
  return {expand(log_p, dims), state};
}

TEST_P(CtcBeamSearchTest, AScorerScaleOfZeroLeavesTheScorerOut) {
  const Dim beam("beam", 3);
  const auto f = run([&](const Tensor& x) {
    const auto scorer = [&](const Tensor& state, const Tensor& symbol) {
      return step_without_label_2(state, symbol, vocab);
    };
    return ctc_beam_search(x, {time, vocab, beam}, scalar(0), scorer, {.scorer_scale = 0});
  });
  expect_found(f(dirty()), 3, 0, 0);
}

TEST_P(CtcBeamSearchTest, HypothesesThatTheScorerForbidsAreMissing) {
  const Dim beam("beam", 16);
  const auto f = run([&](const Tensor& x) {
    const auto scorer = [&](const Tensor& state, const Tensor& symbol) {
      return step_without_label_2(state, symbol, vocab);
    };
    return ctc_beam_search(x, {time, vocab, beam}, scalar(0), scorer);
  });
  const CtcBeams found = f(dirty());
  const auto labels = rows_of<std::vector<std::vector<int>>>(found.labels);
  const std::vector<double> score = values_of(found.score),
                            log_p = values_of(found.log_probability);
  for (std::size_t b = 0; b < kEntries; ++b) {
    // No label, and 1, 1 1, ... as far as the frames suffice.
    const auto possible = static_cast<std::size_t>((frame_counts[b] + 1) / 2 + 1);
    for (std::size_t k = 0; k < 16; ++k) {
      EXPECT_EQ(log_p[b * 16 + k] > -kInf, k < possible) << b << ' ' << k;
      EXPECT_EQ(score[b * 16 + k], log_p[b * 16 + k]);
      EXPECT_EQ(std::count(labels[b][k].begin(), labels[b][k].end(), 2), 0);
      if (k >= possible) EXPECT_TRUE(labels[b][k].empty());
    }
  }
}

TEST_P(CtcBeamSearchTest, AScorerThatReturnsAnotherNumberOfStatesIsAnError) {
  const Dim beam("beam", 2);
  for (const std::size_t count : {0, 1, 3}) {
    const auto f = run([&, count](const Tensor& x) {
      const auto scorer = [&, count](const std::vector<Tensor>&, const Tensor& symbol) {
        const Tensor log_p = step_without_label_2(symbol, symbol, vocab).first;
        return std::pair{log_p, std::vector<Tensor>(count, symbol)};
      };
      return ctc_beam_search(x, {time, vocab, beam}, std::vector<Tensor>{scalar(0), scalar(0)},
                             scorer);
    });
    EXPECT_EQ(message_of<StructureError>([&] { f(dirty()); }),
              str("ctc_beam_search: the scorer returns a state of ", count,
                  " tensors, but `initial` has 2; the state must keep its structure"));
  }
}

TEST_P(CtcBeamSearchTest, OneTraceServesAllLengths) {
  const Dim beam("beam", 2), batch("batch", 2);
  const auto f = run([&](const Tensor& x) {
    return ctc_beam_search(x, {x.dim("time"), vocab, beam}).log_probability;
  });
  for (const std::vector<int>& frames : {std::vector{3, 2}, {7, 1}, {0, 0}}) {
    const Dim time("time", tensor(frames, {batch}));
    for (const double p : values_of(f(zeros({batch, time, vocab})))) EXPECT_LE(p, 0);
  }
  EXPECT_EQ(f.trace_count(), 1);
}

TEST_P(CtcBeamSearchTest, RowsOfVmapAreSearchedAlone) {
  const Dim beam("beam", 3), speaker("speaker", 2);
  const Tensor both = stack({logits, reverse(logits, vocab)}, speaker);
  const auto best = [&](const Tensor& x) {
    const CtcBeams found = ctc_beam_search(x, {time, vocab, beam});
    return found.score;
  };
  const auto f = run([&](const Tensor& x) { return vmap(best, speaker)(x); });
  const auto g = run(best);
  const Tensor scores = f(both);
  expect_all_close(gather(scores, scalar(0), speaker), g(logits), 1e-12);
  expect_all_close(gather(scores, scalar(1), speaker), g(reverse(logits, vocab)), 1e-12);
}

TEST_P(CtcBeamSearchTest, ErrorsNameTheArguments) {
  const Dim beam("beam", 2);
  EXPECT_EQ(message_of<DTypeError>([&] {
              ctc_beam_search(labels(0), {time, vocab, beam});
            }),
            "ctc_beam_search: logits must be f32 or f64, got i32[batch=6,spelling[batch=6]]; cast "
            "them");
  EXPECT_EQ(message_of<ShapeError>([&] {
              ctc_beam_search(logits, {spelling, vocab, beam});
            }),
            "ctc_beam_search: logits must have named dims [..., spelling[batch=6],vocab=3] without "
            "beam=2, got f64[batch=6,time[batch=6],vocab=3]");
  EXPECT_EQ(message_of<ShapeError>([&] {
              const Dim frames("frames", 5);
              ctc_beam_search(zeros({frames, vocab, beam}), {frames, vocab, beam});
            }),
            "ctc_beam_search: logits must have named dims [..., frames=5,vocab=3] without beam=2, "
            "got f32[frames=5,vocab=3,beam=2]; give another Dim as beam");
  EXPECT_EQ(message_of<ArgumentError>([&] {
              ctc_beam_search(logits, {time, vocab, 2});
            }),
            "ctc_beam_search: beam must be a named dim of a size, at least 1, got 2");
  EXPECT_EQ(message_of<ArgumentError>([&] {
              ctc_beam_search(logits, {time, vocab, beam}, {.blank = 3});
            }),
            "ctc_beam_search: blank must be a position along vocab=3, got 3");
}

}  // namespace
}  // namespace reel
