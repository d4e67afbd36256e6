// Searches as RETURNN's users write them: P11 to P15, compared with numbers by hand and with all
// paths.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "reel/tests/cases/returnn/returnn.h"

namespace reel {
namespace {

using ReturnnSearch = ReturnnCase;
REEL_IN_EVERY_MODE(ReturnnSearch);

// ---- Label by label -----------------------------------------------------------------------------

struct Search {
  Tensor t, label, log_prob, length, finished;
  TensorArray labels, backrefs;
};

// a = 0, b = 1, the end e = 2. Entry 0 finds be (-2.5) and aaa (-3); after step 2 the order was aa,
// be, so the places change in step 3. Entry 1 has one step; entry 2 ends with its first or second
// label.
TEST_P(ReturnnSearch, P11_P12_BeamSearchWithTwoArraysInTheState) {
  const Dim beam("beam", 2), vocabulary("vocabulary", 3), last("last", 3);
  const int end = 2;
  const auto search = run([&](const Tensor& table, const Tensor& limits) {
    const Dims dims{batch, beam};
    const Tensor zero = zeros(dims, i32);
    const TensorArray none({i32, dims});
    const Tensor only_end = where(range(vocabulary) == end, full({}, 0.), -kInf);
    const Search s = while_loop(
        [&](const Search& s) { return any(!s.finished); },
        [&](const Search& s) {
          const Tensor scores = where(s.finished, only_end, gather(table, s.label, last));
          const Tensor log_prob = s.log_prob + scores;
          const auto [best, places, k] = top_k(log_prob, {beam, vocabulary}, beam);
          const Search from = gather_nested(s, places[0], beam);
          const Tensor t = s.t + 1;
          return Search{t,
                        places[1],
                        best,
                        from.length + cast(!from.finished, i32),
                        from.finished || places[1] == end || expand(t, dims) >= limits,
                        s.labels.push_back(places[1]),
                        s.backrefs.push_back(places[0])};
        },
        Search{scalar(0), zero, expand(tensor({0., -kInf}, {beam}), dims), zero,
               expand(limits, dims) <= 0, none, none});
    const Dim out("out", s.length);
    return std::tuple{backtrack(s.labels, s.backrefs, beam).stack(out), s.log_prob, s.length, s.t};
  });
  const double x = -5;
  const Tensor table = tensor({-1., -2., -4., -3., -1., -.5, x, x, x,   //
                               -1., -2., -4., -3., -1., -.5, x, x, x,   //
                               -5., -5., -1., -3., -1., -.5, x, x, x},  //
                              {batch, last, vocabulary});
  const auto [labels, log_prob, length, steps] = search(table, tensor({3, 1, 5}, {batch}));
  expect_values(steps, {3});
  expect_values(log_prob, {-2.5, -3, -1, -2, -1, -6});
  expect_values(length, {2, 3, 1, 1, 1, 2});
  expect_in_order(labels, {batch, beam, labels.dims()[0]},
                  {1, 2, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 2, 0, 0, 0, 2, 0});
  const auto [unsearched, start, lengths, none] = search(table, zeros({batch}, i32));
  expect_values(none, {0});
  expect_values(start, {0, -kInf, 0, -kInf, 0, -kInf});
}

// ---- Frame by frame -----------------------------------------------------------------------------

/// Frames of CTC scores, with 0 as the blank.
class ReturnnFrames : public ReturnnCase {
 protected:
  static constexpr int kVocabulary = 3;
  const Dim vocabulary{"vocabulary", kVocabulary}, before{"before", kVocabulary}, beam{"beam", 27};
  /// A language model: log p of a label after another one, or after none (0).
  const std::vector<double> bigrams{0, -.7013, -.9107, 0, -1.5031, -.2059, 0, -.4127, -1.1171};
  const std::vector<double> frames{-.9211,  -.8329,  -1.7419, -1.2503, -.5607,  -2.1701, -.3803,
                                   -1.9907, -1.4009, -.6121,  -1.3237, -1.8341, -2.2433, -1.0541,
                                   -.7643,  9,       9,       9,       -1.1743, -.4853,  -2.5951,
                                   9,       9,       9,       9,       9,       9};

  Tensor scores(double padding) const {
    return mask_padding(tensor(frames, {batch, time, vocabulary}, f64), padding);
  }
  /// Calls fn(path, score) for every path through an entry's frames. The score includes the
  /// language model.
  template <class Fn>
  void each_path(int entry, const Fn& fn) const {
    const int length = 3 - entry;
    for (int code = 0; code < std::pow(kVocabulary, length); ++code) {
      std::vector<int> path;
      for (int t = 0, rest = code; t < length; ++t, rest /= kVocabulary)
        path.push_back(rest % kVocabulary);
      double score = 0;
      int previous = 0, last_label = 0;
      for (int t = 0; t < length; ++t) {
        score += frames[static_cast<std::size_t>((entry * 3 + t) * kVocabulary + path[t])];
        if (path[t] != 0 && path[t] != previous) {
          score += bigrams[static_cast<std::size_t>(last_label * kVocabulary + path[t])];
          last_label = path[t];
        }
        previous = path[t];
      }
      fn(path, score);
    }
  }
  static std::vector<int> labels_of(const std::vector<int>& path) {
    std::vector<int> labels;
    for (std::size_t t = 0; t < path.size(); ++t)
      if (path[t] != 0 && (t == 0 || path[t] != path[t - 1])) labels.push_back(path[t]);
    return labels;
  }
  /// Returns the frame, or, for padding, 0 for the blank and -inf for all else.
  Tensor padded_as_blank(const Tensor& frame, const Tensor& is_valid) const {
    const Tensor blank = where(range(vocabulary) == 0, full({}, 0., f64), -kInf);
    return where(is_valid, frame, blank);
  }
  /// Returns the scores to add for each symbol, and whether it is a new label: {batch, beam,
  /// vocabulary}.
  std::pair<Tensor, Tensor> additions(const Tensor& frame, const Tensor& symbol,
                                      const Tensor& label) const {
    const Dims dims{batch, beam, vocabulary};
    const Tensor next = expand(range(vocabulary), dims);
    const Tensor is_new = next != 0 && next != symbol;
    const Tensor lm = gather(tensor(bigrams, {before, vocabulary}, f64), label, before);
    return {expand(frame, dims) + where(is_new, lm, 0), is_new};
  }
};
REEL_IN_EVERY_MODE(ReturnnFrames);

struct Labels {
  Tensor score, symbol, label, labels;
  Dim count;
};

TEST_P(ReturnnFrames, P13_TimeSynchronousSearchWithHistoriesOfTheirOwnLengths) {
  const auto search = run([&](const Tensor& x) {
    const Dim time = x.dim("time"), none("labels", zeros({batch, beam}, i32));
    const TensorArray all_frames = TensorArray::unstack(x, time);
    const Dims dims{batch, beam};
    const Tensor only_first = where(range(beam) == 0, full({}, 0., f64), -kInf);
    const auto [t, last] = while_loop(
        [&](const Tensor& t, const Labels&) { return t < all_frames.size(); },
        [&](const Tensor& t, const Labels& s) {
          const Tensor frame = padded_as_blank(all_frames[t], t < time.lengths());
          const Tensor total = s.score + additions(frame, s.symbol, s.label).first;
          const auto [best, places, k] = top_k(total, {beam, vocabulary}, beam);
          Labels from = gather_nested(s, places[0], beam);
          const Tensor& symbol = places[1];
          const Tensor is_new = symbol != 0 && symbol != from.symbol;
          auto [longer, more] = cum_concat(symbol, from.labels, from.count);
          const auto [labels, count] =
              where_nested(is_new, std::pair{longer, more}, std::pair{from.labels, from.count});
          return std::tuple{t + 1,
                            Labels{best, symbol, where(is_new, symbol, from.label), labels, count}};
        },
        std::tuple{scalar(0), Labels{expand(only_first, dims), zeros(dims, i32), zeros(dims, i32),
                                     zeros({batch, beam, none}, i32), none}});
    return last;
  });
  for (const double padding : kPaddings) {
    const Labels found = search(scores(padding));
    const std::vector<double> all = values_of(found.score),
                              lengths = values_of(found.count.lengths()),
                              labels =
                                  values_of(transpose(found.labels, {batch, beam, found.count}));
    const std::int64_t longest = found.count.size();
    for (int entry = 0; entry < 3; ++entry) {
      std::vector<std::pair<double, std::vector<int>>> expected, actual;
      each_path(entry, [&](const std::vector<int>& path, double score) {
        expected.emplace_back(score, labels_of(path));
      });
      std::sort(expected.rbegin(), expected.rend());
      for (int k = 0; k < 27; ++k) {
        const int at = entry * 27 + k;
        if (all[at] == -kInf) continue;
        std::vector<int> sequence;
        for (int i = 0; i < lengths[at]; ++i)
          sequence.push_back(static_cast<int>(labels[at * longest + i]));
        actual.emplace_back(all[at], sequence);
      }
      ASSERT_EQ(actual.size(), expected.size()) << entry;
      for (std::size_t k = 0; k < actual.size(); ++k) {
        EXPECT_NEAR(actual[k].first, expected[k].first, 1e-9);
        EXPECT_EQ(actual[k].second, expected[k].second) << "entry " << entry << " at " << k;
      }
    }
  }
}

struct Prefixes {
  Tensor score, symbol, label, count;
  Tensor labels;  ///< {batch, beam, room}: zeros beyond the count
};

/// Merges the hypotheses of a beam that differ only by score: the first gets the sum of their
/// probabilities, the others zero.
Prefixes recombined(Prefixes s, const Dim& batch, const Dim& beam, const Dim& room,
                    bool by_symbol) {
  const Dim other("other beam", beam.size());
  const Dims pairs{batch, beam, other};
  const auto dual = [&](const Tensor& x) { return rename(x, beam, other); };
  const auto are_equal = [&](const Tensor& x) {
    return expand(x, pairs) == expand(dual(x), pairs);
  };
  const Dims histories{batch, beam, other, room};
  Tensor same = are_equal(s.count) &&
                reel::all(expand(s.labels, histories) == expand(dual(s.labels), histories), room);
  if (by_symbol) same = same && are_equal(s.symbol);
  const Tensor first = argmax(cast(same, i32), other);
  const Tensor sum = logsumexp(where(same, expand(dual(s.score), pairs), -kInf), other);
  s.score = where(first == expand(range(beam), first.dims()), sum, -kInf);
  return s;
}

TEST_P(ReturnnFrames, P14_EqualPrefixesAreRecombined) {
  const Dim room("room", 3);
  const auto search = run([&](const Tensor& x) {
    const Dims dims{batch, beam};
    const Tensor only_first = where(range(beam) == 0, full({}, 0., f64), -kInf);
    const auto [ys, last, d] = scan(Scan{
        .spatial_dim = x.dim("time"),
        .initial = Prefixes{expand(only_first, dims), zeros(dims, i32), zeros(dims, i32),
                            zeros(dims, i32), zeros({batch, beam, room}, i32)},
        .xs = x,
        .body =
            [&](const Tensor& frame, const Prefixes& s) {
              const Tensor total = s.score + additions(frame, s.symbol, s.label).first;
              const auto [best, places, k] = top_k(total, {beam, vocabulary}, beam);
              Prefixes from = gather_nested(s, places[0], beam);
              const Tensor& symbol = places[1];
              const Tensor is_new = symbol != 0 && symbol != from.symbol;
              const Tensor here = expand(range(room), {batch, beam, room}) == from.count;
              return std::pair{
                  None{}, recombined({best, symbol, where(is_new, symbol, from.label),
                                      from.count + cast(is_new, i32),
                                      where(here && is_new, expand(symbol, {batch, beam, room}),
                                            from.labels)},
                                     batch, beam, room, true)};
            },
    });
    return recombined(last, batch, beam, room, false);
  });
  for (const double padding : kPaddings) {
    const Prefixes found = search(scores(padding));
    const std::vector<double> all = values_of(found.score), counts = values_of(found.count),
                              labels = values_of(found.labels);
    for (int entry = 0; entry < 3; ++entry) {
      std::map<std::vector<int>, double> expected, actual;
      each_path(entry, [&](const std::vector<int>& path, double score) {
        expected[labels_of(path)] += std::exp(score);
      });
      for (int k = 0; k < 27; ++k) {
        const int at = entry * 27 + k;
        if (all[at] == -kInf) continue;
        std::vector<int> sequence;
        for (int i = 0; i < counts[at]; ++i)
          sequence.push_back(static_cast<int>(labels[at * 3 + i]));
        EXPECT_TRUE(actual.emplace(sequence, std::exp(all[at])).second) << "twice";
      }
      ASSERT_EQ(actual.size(), expected.size()) << entry;
      for (const auto& [sequence, probability] : expected)
        EXPECT_NEAR(actual[sequence], probability, 1e-12);
    }
  }
}

// ---- Beams and rows that change -----------------------------------------------------------------

struct Growing {
  Tensor t, score, sum;
  Dim beam;
};

TEST_P(ReturnnSearch, P15_ABeamThatGrowsStepByStep) {
  // Labels 1, 2, 3 with these scores: the best sums of three steps, and the labels as digits.
  const Dim vocabulary("vocabulary", 3);
  const auto search = run([&](const Tensor& scores, const Tensor& most) {
    const Dim one("beam", scalar(1));
    return while_loop([](const Growing& s) { return s.t < 3; },
                      [&](const Growing& s) {
                        const Dims dims{batch, s.beam, vocabulary};
                        const Tensor score = expand(s.score, dims) + scores;
                        const Tensor sum = expand(s.sum, dims) * 10 + range(vocabulary) + 1;
                        const Dim wider("beam", minimum(s.beam.lengths() * 3, most));
                        const auto [best, places, k] = top_k(score, {s.beam, vocabulary}, wider);
                        const Tensor from = gather(sum, places[0], s.beam);
                        return Growing{s.t + 1, best, gather(from, places[1], vocabulary), wider};
                      },
                      Growing{scalar(0), zeros({batch, one}), zeros({batch, one}, i32), one});
  });
  const Tensor scores = tensor({-1., -2., -4., -8., -1., -2.5, -3., -9., -1.}, {batch, vocabulary});
  const Growing found = search(scores, scalar(4));
  EXPECT_EQ(found.beam.size(), 4);
  expect_values(found.score, {-3, -4, -4, -4, -3, -4.5, -4.5, -4.5, -3, -5, -5, -5});
  // Hypotheses with equal scores keep the order of their beginnings.
  expect_values(found.sum, {111, 112, 121, 211, 222, 223, 232, 322, 333, 331, 313, 133});
  expect_values(search(scores, scalar(2)).score, {-3, -4, -3, -4.5, -3, -5});
}

struct Decoder {
  Tensor h, labels;
  Dim count;
};

TEST_P(ReturnnSearch, P15_OnlyRowsWithANewLabelAreComputed) {
  const Dim beam("beam", 2), feature("feature", 2), next("feature", 2);
  const Tensor w = tensor({.5, -1., 2., .25}, {feature, next}, f64);
  const auto advance = [&](const Decoder& s, const Tensor& label) {
    auto [longer, more] = cum_concat(label, s.labels, s.count);
    return Decoder{rename(tanh(matmul(s.h, w, feature) + label), next, feature), longer, more};
  };
  // Three steps; in each, other rows get a label.
  const auto decode = [&](const Tensor& h, const Tensor& labels, bool packs) {
    const Dim none("labels", zeros({batch, beam}, i32));
    const Dim steps = labels.dims()[0];
    return scan(Scan{.spatial_dim = steps,
                     .initial = Decoder{h, zeros({batch, beam, none}, h.dtype()), none},
                     .xs = labels,
                     .body =
                         [&](const Tensor& label, const Decoder& s) {
                           const Tensor is_new = label > 0;
                           if (!packs)
                             return std::pair{None{}, where_nested(is_new, advance(s, label), s)};
                           const auto [rows, packed] = pack_nested(std::pair{s, label}, is_new);
                           return std::pair{None{}, unpack_nested(advance(rows.first, rows.second),
                                                                  packed, is_new, s)};
                         }})
        .state;
  };
  const Dim steps("steps", 3);
  const Tensor h = tensor(std::vector<double>{.1, .2, .3, .4, .5, .6, .7, .8, .9, 1., 1.1, 1.2},
                          {batch, beam, feature});
  const Tensor labels =
      tensor(std::vector<double>{1, 0, 2, 3, 0, 0, 0, 0, 0, 0, 0, 0, 4, 5, 0, 6, 0, 7},
             {steps, batch, beam});
  const auto both = run([&](const Tensor& h, const Tensor& labels) {
    return std::pair{decode(h, labels, true), decode(h, labels, false)};
  });
  const auto [packed, chosen] = both(h, labels);
  expect_values(packed.count.lengths(), {2, 1, 1, 2, 0, 1});
  const Tensor rows = transpose(packed.labels, {batch, beam, packed.count});
  expect_values(mask_padding(rows), {1, 4, 5, 0, 2, 0, 3, 6, 0, 0, 7, 0});
  expect_all_close(transpose(packed.h, h.dims()), transpose(chosen.h, h.dims()), 1e-12);
  expect_all_close(mask_padding(rows),
                   mask_padding(transpose(chosen.labels, {batch, beam, chosen.count})));
  const auto loss = [&](const Tensor& h) {
    const Decoder s = decode(h, labels, true);
    return sum(square(s.h)) + sum(s.labels);
  };
  expect_gradient_of(loss, h, run(grad(loss))(h));
}

}  // namespace
}  // namespace reel
