// Entries with a ragged dim, as words in sentences: the padding of the dim is not an entry.
#include <limits>

#include "reel/tests/gradients.h"
#include "reel/tests/modes.h"

namespace reel {
namespace {

class EntriesInPaddingTest : public InEveryMode {};
REEL_IN_EVERY_MODE(EntriesInPaddingTest);

const Dim batch("batch", 3);

Dim words_of(const std::vector<int>& lengths) { return Dim("words", tensor(lengths, {batch})); }
Tensor ones_along(const Dim& words) { return ones({batch, words}, f64); }

/// Doubles a state of the sentences while a word of them runs, at most `trips` times. The condition
/// is true in padding.
Tensor doubled(const Tensor& state, const Dim& words, int trips, bool cond_before_body) {
  return scan(Scan{.spatial_dim = Dim("steps"),
                   .cond_dims = {batch, words},
                   .cond_before_body = cond_before_body,
                   .initial = state,
                   .xs = None{},
                   .cond =
                       [&](const Tensor&) {
                         return full({batch, words}, true, boolean);
                       },
                   .body =
                       [](const None&, const Tensor& s) {
                         return std::pair{None{}, s * 2.};
                       },
                   .max_seq_len = trips})
      .state;
}

TEST_P(EntriesInPaddingTest, ASentenceWithoutWordsKeepsItsState) {
  for (const bool cond_before_body : {true, false}) {
    const auto f = run([=](const Tensor& state, const Tensor& x) {
      return doubled(state, x.dim("words"), 2, cond_before_body);
    });
    const auto gradient = run(grad([=](const Tensor& state, const Tensor& x) {
      return sum(doubled(state, x.dim("words"), 2, cond_before_body));
    }));
    const Tensor state = tensor({1., 10., 100.}, {batch}, f64);
    expect_values(f(state, ones_along(words_of({0, 1, 2}))), {1, 40, 400});
    expect_values(f(state, ones_along(words_of({2, 0, 0}))), {4, 10, 100});
    expect_values(f(state, ones_along(words_of({0, 0, 0}))), {1, 10, 100});
    expect_values(gradient(state, ones_along(words_of({1, 0, 3}))), {4, 1, 4});
  }
}

TEST_P(EntriesInPaddingTest, RowsOfVmapWithoutWordsKeepTheirState) {
  const auto row = [](const Tensor& state, const Tensor& x) {
    const Dim words = x.dim("words");
    return scan(Scan{.spatial_dim = Dim("steps"),
                     .cond_dims = {words},
                     .initial = state,
                     .xs = None{},
                     .cond = [=](const Tensor&) { return full({words}, true, boolean); },
                     .body =
                         [](const None&, const Tensor& s) {
                           return std::pair{None{}, s * 2.};
                         },
                     .max_seq_len = 2})
        .state;
  };
  const auto f =
      run([&](const Tensor& state, const Tensor& x) { return vmap(row, batch)(state, x); });
  const Tensor state = tensor({1., 10., 100.}, {batch}, f64);
  expect_values(f(state, ones_along(words_of({0, 1, 2}))), {1, 40, 400});
  expect_values(f(state, ones_along(words_of({2, 0, 1}))), {4, 10, 400});
}

// Finished entries read the first running one, which must not be in padding: its elements may be
// zeros, which are no divisors.
TEST_P(EntriesInPaddingTest, FinishedWordsReadNoPadding) {
  const auto f = [](const Tensor& divisors, const Tensor& x) {
    const Dim words = x.dim("words"), letters = x.dim("letters");
    return scan(Scan{.spatial_dim = letters,
                     .initial = zeros({batch, words}, f64),
                     .xs = x,
                     .body =
                         [&](const Tensor& letter, const Tensor& s) {
                           return std::pair{None{}, s + sqrt(letter / divisors)};
                         }})
        .state;
  };
  const Dim words = words_of({0, 2, 1});
  // Lengths may hold anything in padding.
  const Dim letters("letters", tensor({{9, 9}, {3, 1}, {2, 9}}, {batch, words}));
  const Tensor x = full({batch, words, letters}, 4., f64);
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  const Tensor divisors = tensor({{kNone, 0.}, {1., 4.}, {16., -1.}}, {batch, words}, f64);
  const DetectNan scope;
  const auto loss = [&](const Tensor& divisors, const Tensor& x) { return sum(f(divisors, x)); };
  expect_values(run(loss)(divisors, x), {3 * 2. + 1. + 2 * 0.5});
  const Tensor gradient = run(grad(loss))(divisors, x);
  expect_values(mask_padding(gradient), {0, 0, -3., -0.125, -1. / 32, 0});
}

// Finished entries read the values of a running entry, and their cotangents are added to it. An
// entry in padding reads none.
TEST_P(EntriesInPaddingTest, CapturesTakeNoCotangentsFromPadding) {
  const auto loss = [](const Tensor& weights, const Tensor& x) {
    return sum(square(scan(Scan{.spatial_dim = x.dim("letters"),
                                .initial = None{},
                                .xs = x,
                                .body =
                                    [&](const Tensor&, const None&) {
                                      return std::pair{rsqrt(weights), None{}};
                                    }})
                          .ys));
  };
  const Dim pair("pair", 2);
  const Dim words("words", tensor({1, 2}, {pair}));
  const Dim letters("letters", tensor({{2, 9}, {0, 3}}, {pair, words}));
  const Tensor x = ones({pair, words, letters}, f64);
  for (const double padding : {std::numeric_limits<double>::quiet_NaN(), 0., -1.}) {
    const Tensor weights = tensor({{4., padding}, {2., 1.}}, {pair, words}, f64);
    // The sum of n / w, its gradient -n / w², and the gradient of the gradient's sum 2n / w³.
    expect_values(run(loss)(weights, x), {2 / 4. + 3.});
    expect_values(mask_padding(run(grad(loss))(weights, x)), {-2 / 16., 0, 0, -3.});
    const auto slope = [&](const Tensor& w, const Tensor& x) { return sum(grad(loss)(w, x)); };
    expect_values(mask_padding(run(grad(slope))(weights, x)), {4 / 64., 0, 0, 6.});
  }
}

}  // namespace
}  // namespace reel
