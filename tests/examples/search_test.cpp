// The beam search of examples/beam_search, compared with all possible sequences and with a search
// in plain C++.
#include "reel/examples/beam_search/search.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "reel/examples/char_rnn/model.h"
#include "reel/tests/modes.h"

namespace reel {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr int kLabels = 3, kEnd = 2, kEntries = 4;

struct Sequence {
  std::vector<int> labels;
  double log_prob = 0, score = 0;
};

double score_of(double log_prob, std::size_t length, double exponent) {
  return log_prob / std::pow(std::max<double>(static_cast<double>(length), 1), exponent);
}

/// A model in which the next label depends on the entry and on the two labels before.
class Trigrams {
 public:
  explicit Trigrams(unsigned seed) : table_(kEntries * kLabels * kLabels * kLabels) {
    std::mt19937 random(seed);
    for (double& x : table_) x = -0.01 - 3. * static_cast<double>(random()) / 4294967296.;
  }
  /// log p of a label after two others.
  double& at(int entry, int before, int last, int next) {
    return table_[static_cast<std::size_t>(((entry * kLabels + before) * kLabels + last) * kLabels +
                                           next)];
  }
  Tensor table(const Dim& batch) const {
    return cast(tensor(table_, {batch, context_, vocabulary_}), f32);
  }
  /// Returns the step for beam_search; the state is the label before the last.
  auto step(const Tensor& table) const {
    return [this, table](const Tensor& label, const Tensor& before) {
      return std::pair{gather(table, before * kLabels + label, context_), label};
    };
  }

  /// Returns all sequences of an entry, up to the end label or the limit.
  std::vector<Sequence> all(int entry, int limit, double exponent) {
    std::vector<Sequence> result, open{Sequence{}};
    while (!open.empty()) {
      Sequence one = open.back();
      open.pop_back();
      const std::size_t n = one.labels.size();
      if ((n && one.labels.back() == kEnd) || static_cast<int>(n) == limit) {
        one.score = score_of(one.log_prob, n, exponent);
        result.push_back(one);
        continue;
      }
      for (int label = 0; label < kLabels; ++label) open.push_back(extended(entry, one, label));
    }
    std::sort(result.begin(), result.end(),
              [](const Sequence& a, const Sequence& b) { return a.score > b.score; });
    return result;
  }

  /// Does the search with vectors and loops.
  std::vector<Sequence> search(int entry, int limit, int beam, double exponent, int& steps) {
    std::vector<Sequence> kept(static_cast<std::size_t>(beam), Sequence{{}, -kInf, -kInf});
    kept[0] = Sequence{};
    const auto has_finished = [](const Sequence& s) {
      return !s.labels.empty() && s.labels.back() == kEnd;
    };
    const auto goes_on = [&](const Sequence& s) { return !has_finished(s) && s.log_prob > -kInf; };
    for (steps = 0; steps < limit && std::any_of(kept.begin(), kept.end(), goes_on); ++steps) {
      std::vector<Sequence> next;
      for (const Sequence& one : kept)
        for (int label = 0; label < kLabels; ++label) {
          Sequence more = one;
          if (!has_finished(one))
            more = extended(entry, one, label);
          else if (label != kEnd)
            more.log_prob = -kInf;
          more.score = score_of(more.log_prob, more.labels.size(), exponent);
          next.push_back(more);
        }
      std::stable_sort(next.begin(), next.end(),
                       [](const Sequence& a, const Sequence& b) { return a.score > b.score; });
      kept.assign(next.begin(), next.begin() + beam);
    }
    kept.erase(std::remove_if(kept.begin(), kept.end(),
                              [](const Sequence& s) { return s.log_prob == -kInf; }),
               kept.end());
    return kept;
  }

 private:
  Sequence extended(int entry, const Sequence& one, int label) {
    Sequence more = one;
    const std::size_t n = one.labels.size();
    const int last = n ? one.labels[n - 1] : 0;
    const int before = n > 1 ? one.labels[n - 2] : 0;
    more.labels.push_back(label);
    more.log_prob += at(entry, before, last, label);
    return more;
  }

  std::vector<double> table_;
  Dim context_{"context", kLabels*kLabels}, vocabulary_{"vocabulary", kLabels};
};

class SearchTest : public InEveryMode {
 protected:
  const Dim batch{"batch", kEntries};

  Hypotheses found(const Trigrams& model, const std::vector<int>& limits, int beam,
                   double exponent) const {
    const BeamSearch options{Dim("beam", beam), kEnd, exponent};
    return run([&](const Tensor& table, const Tensor& limits) {
      const Tensor start = zeros_like(limits);
      return beam_search(model.step(table), start, start, limits, options);
    })(model.table(batch), tensor(limits, {batch}));
  }
  /// Returns all hypotheses of an entry, in order.
  static std::vector<Sequence> sequences_of(const Hypotheses& found, int entry) {
    const std::vector<double> scores = values_of(found.score),
                              log_probs = values_of(found.log_prob),
                              lengths = values_of(found.length.lengths()),
                              labels = values_of(found.labels);
    const std::int64_t beam = found.score.dims().back().size(), longest = found.length.size();
    std::vector<Sequence> result;
    for (std::int64_t at = entry * beam; at < (entry + 1) * beam; ++at) {
      if (log_probs[at] == -kInf) continue;
      const auto first = labels.begin() + at * longest;
      result.push_back({std::vector<int>(first, first + static_cast<std::int64_t>(lengths[at])),
                        log_probs[at], scores[at]});
    }
    return result;
  }
  static void expect_sequences(const std::vector<Sequence>& found,
                               const std::vector<Sequence>& expected) {
    ASSERT_EQ(found.size(), expected.size());
    for (std::size_t k = 0; k < found.size(); ++k) {
      EXPECT_EQ(found[k].labels, expected[k].labels) << k;
      EXPECT_NEAR(found[k].log_prob, expected[k].log_prob, 1e-5);
      EXPECT_NEAR(found[k].score, expected[k].score, 1e-5);
    }
  }
  /// Expects these sequences, in any order among equal scores: the same pairs and triples of labels
  /// occur in several places.
  static void expect_all(const Hypotheses& found, int entry, std::vector<Sequence> expected) {
    std::vector<Sequence> all = sequences_of(found, entry);
    ASSERT_EQ(all.size(), expected.size());
    for (std::size_t k = 0; k < all.size(); ++k) EXPECT_NEAR(all[k].score, expected[k].score, 1e-5);
    for (std::vector<Sequence>* list : {&all, &expected})
      std::sort(list->begin(), list->end(),
                [](const Sequence& a, const Sequence& b) { return a.labels < b.labels; });
    expect_sequences(all, expected);
  }
};
REEL_IN_EVERY_MODE(SearchTest);

TEST_P(SearchTest, WideEnoughItFindsAllSequencesInOrder) {
  for (const unsigned seed : {1u, 2u}) {
    Trigrams model(seed);
    for (const double exponent : {0., 0.6, 1.}) {
      const std::vector<int> limits{4, 0, 2, 3};
      const Hypotheses all = found(model, limits, 81, exponent);
      EXPECT_EQ(all.labels.dims(), (Dims{batch, all.score.dims()[1], all.length}));
      expect_values(all.steps.lengths(), {4, 0, 2, 3});
      for (int entry = 0; entry < kEntries; ++entry)
        expect_all(all, entry, model.all(entry, limits[entry], exponent));
    }
  }
}

TEST_P(SearchTest, BeamsOfEverySizeAgainstASearchInPlainCpp) {
  for (const unsigned seed : {3u, 4u, 5u})
    for (const int beam : {1, 2, 3, 5, 9})
      for (const double exponent : {0., 1.}) {
        SCOPED_TRACE("seed " + std::to_string(seed) + ", beam " + std::to_string(beam));
        Trigrams model(seed);
        const std::vector<int> limits{7, 1, 12, 0};
        const Hypotheses some = found(model, limits, beam, exponent);
        const std::vector<double> steps = values_of(some.steps.lengths());
        for (int entry = 0; entry < kEntries; ++entry) {
          int expected_steps = 0;
          expect_sequences(sequences_of(some, entry),
                           model.search(entry, limits[entry], beam, exponent, expected_steps));
          EXPECT_EQ(steps[static_cast<std::size_t>(entry)], expected_steps);
        }
      }
}

TEST_P(SearchTest, AWiderBeamFindsALikelierSequence) {
  Trigrams model(1);
  const auto set = [&](int before, int last, std::vector<double> p) {
    for (int next = 0; next < kLabels; ++next)
      model.at(0, before, last, next) = std::log(p[static_cast<std::size_t>(next)]);
  };
  // 0 is likelier first, but the sequence that starts with 1 is likelier as a whole.
  set(0, 0, {.55, .45, 0.});
  set(0, 1, {.05, .05, .9});
  const Hypotheses greedy = found(model, {2, 0, 0, 0}, 1, 0),
                   wide = found(model, {2, 0, 0, 0}, 2, 0);
  EXPECT_NEAR(values_of(greedy.log_prob)[0], std::log(.55 * .55), 1e-5);
  EXPECT_NEAR(values_of(wide.log_prob)[0], std::log(.45 * .9), 1e-5);
}

TEST_P(SearchTest, AnEntryStopsWhenNothingCanGoOn) {
  // After two labels only the end can follow, on a single path: the beam never fills.
  Trigrams model(1);
  for (int before = 0; before < kLabels; ++before)
    for (int last = 0; last < kLabels; ++last)
      for (int next = 0; next < kLabels; ++next)
        model.at(0, before, last, next) = next == (last == 0 ? 1 : kEnd) ? -0.5 : -kInf;
  const Hypotheses few = found(model, {9, 9, 9, 9}, 4, 1);
  expect_values(slice(few.log_prob, batch, 0, 1), {-1, -kInf, -kInf, -kInf});
  expect_sequences(sequences_of(few, 0), {{{1, kEnd}, -1, -0.5}});
  EXPECT_EQ(values_of(few.steps.lengths())[0], 2);
}

TEST_P(SearchTest, NaNOfOneEntryStaysThere) {
  Trigrams model(6), broken = model;
  for (int next = 0; next < kLabels; ++next)
    broken.at(1, 0, 1, next) = std::numeric_limits<double>::quiet_NaN();
  const std::vector<int> limits{5, 5, 3, 4};
  const Hypotheses good = found(model, limits, 3, 1), bad = found(broken, limits, 3, 1);
  const std::vector<double> expected = values_of(good.score), scores = values_of(bad.score);
  for (const std::size_t entry : {0, 2, 3})
    for (std::size_t k = 0; k < 3; ++k) EXPECT_EQ(scores[entry * 3 + k], expected[entry * 3 + k]);
  EXPECT_TRUE(std::isnan(scores[3]));
}

TEST_P(SearchTest, ASearchRunsWithoutABatchOrWithoutEntries) {
  Trigrams model(8);
  const BeamSearch options{Dim("beam", 27), kEnd, 1};
  const auto search = run([&](const Tensor& table, const Tensor& limits) {
    const Tensor start = zeros_like(limits);
    return beam_search(model.step(table), start, start, limits, options);
  });
  const Tensor first = gather(model.table(batch), scalar(0), batch);
  expect_all(search(first, scalar(3)), 0, model.all(0, 3, 1));
  const Dim nobody("batch", 0);
  const Hypotheses none =
      search(slice(model.table(batch), batch, 0, 0, nobody), zeros({nobody}, i32));
  EXPECT_EQ(none.labels.shape(), (std::vector<std::int64_t>{0, 27, 0}));
}

TEST_P(SearchTest, OneTraceServesAllLimits) {
  const Trigrams model(7);
  const BeamSearch options{Dim("beam", 2), kEnd, 1};
  const auto search = run([&](const Tensor& table, const Tensor& limits) {
    const Tensor start = zeros_like(limits);
    return beam_search(model.step(table), start, start, limits, options).steps.lengths();
  });
  for (int limit = 0; limit < 4; ++limit)
    expect_values(search(model.table(batch), tensor({limit, 0, 1, 1}, {batch})),
                  {limit * 1., 0, 1, 1});
  EXPECT_EQ(search.trace_count(), 1);
}

/// A recurrent model: the scores of hypotheses equal the scores of their texts, read at once.
TEST_P(SearchTest, ScoresAreThoseOfTheTextsReadAtOnce) {
  manual_seed(3);
  const auto random = CharModel<LstmCell>::random(kLabels, 5, 2);
  const auto model = tree_map([](const Tensor& w) { return w * 3.; }, random);
  const Tensor limits = tensor({4, 2, 0, 3}, {batch}), start = tensor({0, 1, 1, 0}, {batch});
  const Hypotheses all = run([&](const CharModel<LstmCell>& m, const Tensor& start) {
    const auto step = [&](const Tensor& label, const CharModel<LstmCell>::State& state) {
      auto [logits, next] = m(label, state);
      return std::pair{log_softmax(logits, m.readout.out), next};
    };
    return beam_search(step, start, m.network.initial_state({batch}), limits,
                       BeamSearch{Dim("beam", 81), kEnd, 1});
  })(model, start);

  const std::vector<int> starts{0, 1, 1, 0};
  for (int entry = 0; entry < kEntries; ++entry) {
    double probability = 0;
    for (const Sequence& one : sequences_of(all, entry)) {
      probability += std::exp(one.log_prob);
      const auto length = static_cast<std::int64_t>(one.labels.size());
      if (!length) continue;
      std::vector<int> text{starts[static_cast<std::size_t>(entry)]};
      text.insert(text.end(), one.labels.begin(), one.labels.end());
      const Dim single("batch", 1), time("time", length);
      const auto window = [&](std::int64_t from) {
        return tensor(std::vector<int>(text.begin() + from, text.begin() + from + length),
                      {single, time});
      };
      const double loss =
          text_loss(model, model.network.initial_state({single}), window(0), window(1), time)
              .first.item<float>();
      EXPECT_NEAR(one.log_prob, -loss * static_cast<double>(length), 1e-4);
    }
    EXPECT_NEAR(probability, 1, 1e-4) << entry;  // no sequence is missing or doubled
  }
}

}  // namespace
}  // namespace reel
