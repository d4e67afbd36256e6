// print in the body of a scan with entries that finish one by one: finished entries print nothing.
#include <algorithm>
#include <sstream>

#include "reel/tests/frontend/policies/policies.h"
#include "reel/tests/modes.h"

namespace reel {
namespace {

using PrintedEntriesTest = InEveryMode;
REEL_IN_EVERY_MODE(PrintedEntriesTest);

template <class F>
std::string printed_by(const F& f) {
  testing::internal::CaptureStdout();
  f();
  return testing::internal::GetCapturedStdout();
}

/// Expects these lines in any order, because an executor that overlaps iterations may print in
/// another one.
template <class F>
void expect_lines(const F& f, std::vector<std::string> expected) {
  std::istringstream text(printed_by(f));
  std::vector<std::string> lines;
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  std::sort(lines.begin(), lines.end());
  std::sort(expected.begin(), expected.end());
  EXPECT_EQ(lines, expected);
}

const std::vector<std::string> kSums{"sum, iteration 0: f32[batch=3] [1. -  3.]",
                                     "sum, iteration 1: f32[batch=3] [3. -  7.]",
                                     "sum, iteration 2: f32[batch=3] [ -   -  12.]"};

class Sums {
 public:
  Dim batch{"batch", 3}, time{"time", tensor({2, 0, 3}, {batch})};
  Tensor x = tensor({{1., 2., 0.}, {0., 0., 0.}, {3., 4., 5.}}, {batch, time});

  Tensor operator()(const Tensor& x, const LoopPolicy& policy = {}) const {
    return scan(Scan{.spatial_dim = x.dim("time"),
                     .initial = zeros({x.dim("batch")}),
                     .xs = x,
                     .body =
                         [](const Tensor& x, const Tensor& s) {
                           const Tensor next = print(s + x, "sum");
                           return std::pair{next, next};
                         },
                     .checkpoint = policy.checkpoint})
        .ys;
  }
};

TEST_P(PrintedEntriesTest, FinishedEntriesPrintAsPadding) {
  const Sums sums;
  expect_lines([&] { run([&](const Tensor& x) { return sums(x); })(sums.x); }, kSums);
}

TEST_P(PrintedEntriesTest, GradientsAndPoliciesPrintEachLineOnce) {
  const Sums sums;
  for (const LoopPolicy& policy : {LoopPolicy{}, LoopPolicy{.checkpoint = Checkpoint::every(2)}}) {
    const auto loss = [&](const Tensor& x) { return sum(square(sums(x, policy))); };
    expect_lines([&] { run(value_and_grad(loss))(sums.x); }, kSums);
  }
}

TEST_P(PrintedEntriesTest, EntriesFinishedByAConditionPrintAsPadding) {
  const Dim batch("batch", 3);
  const auto f = [&](const Tensor& x) {
    return scan(Scan{.cond_dims = {batch},
                     .initial = x,
                     .cond = [](const Tensor& s) { return s < 6.; },
                     .body =
                         [](const Tensor& s) {
                           const Tensor next = print(s + 1.);
                           return std::pair{next, next};
                         },
                     .max_seq_len = 3})
        .ys;
  };
  expect_lines(
      [&] {
        run(f)(tensor({1., 5., 2.}, {batch}));
      },
      {"iteration 0: f32[batch=3] [2. 6. 3.]", "iteration 1: f32[batch=3] [3. -  4.]",
       "iteration 2: f32[batch=3] [4. -  5.]"});
}

/// Letters beyond a word's end and words beyond a sentence's end print nothing.
TEST_P(PrintedEntriesTest, PaddingOfWordsAndLettersPrintsNothing) {
  const Dim batch("batch", 2), words("words", tensor({2, 1}, {batch})),
      letters("letters", tensor({{1, 2}, {2, 0}}, {batch, words}));
  const Tensor x = tensor({{{1., 0.}, {2., 3.}}, {{4., 5.}, {0., 0.}}}, {batch, words, letters});
  const auto f = [&](const Tensor& x) {
    return map(
        [&](const Tensor& word) {
          return map([](const Tensor& letter) { return print(letter); }, word,
                     {.spatial_dim = letters});
        },
        x, {.spatial_dim = words});
  };
  expect_lines([&] { run(f)(x); },
               {"iteration 0: f32[batch=2] [1. 4.]", "iteration 1: f32[batch=2] [-  5.]",
                "iteration 0: f32[batch=2] [2. - ]", "iteration 1: f32[batch=2] [3. - ]"});
}

TEST_P(PrintedEntriesTest, ReversedScanPrintsFinishedEntriesAsPadding) {
  const Dim batch("batch", 2), time("time", tensor({1, 2}, {batch}));
  const auto f = [&](const Tensor& x) {
    return scan(Scan{.spatial_dim = time,
                     .xs = x,
                     .body = [](const Tensor& x) { return print(x, "x"); },
                     .reverse = true})
        .ys;
  };
  expect_lines(
      [&] {
        run(f)(tensor({{1., 0.}, {2., 3.}}, {batch, time}));
      },
      {"x, iteration 0: f32[batch=2] [1. 3.]", "x, iteration 1: f32[batch=2] [-  2.]"});
}

/// Values that entries share, and loops without entries, print as they are.
TEST_P(PrintedEntriesTest, OthersAreWhole) {
  const Dim batch("batch", 2), time("time", tensor({0, 2}, {batch}));
  const auto shared = [&](const Tensor& x) {
    return scan(Scan{.spatial_dim = time,
                     .initial = 1,
                     .xs = x,
                     .body =
                         [](const Tensor& x, const Tensor& i) {
                           return std::pair{x, print(i, "i") + 1};
                         }})
        .state;
  };
  expect_lines(
      [&] {
        run(shared)(ones({batch, time}));
      },
      {"i, iteration 0: i32[] 1", "i, iteration 1: i32[] 2"});
  const auto plain = [](const Tensor& x) {
    return map([](const Tensor& x) { return print(x, "x"); }, x);
  };
  expect_lines([&] { run(plain)(tensor({4., 5.})); }, {"x: f32[] 4.0", "x: f32[] 5.0"});
}

}  // namespace
}  // namespace reel
