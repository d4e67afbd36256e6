// Edit distances compared with a table filled by hand, and error rates.
#include "reel/frontend/losses/edit_distance.h"

#include <algorithm>
#include <random>
#include <vector>

#include "reel/frontend/data/ragged.h"
#include "reel/tests/modes.h"

namespace reel {
namespace {

using Rows = std::vector<std::vector<int>>;

/// The table of Wagner & Fischer, one cell after another.
double distance_by_table(const std::vector<int>& a, const std::vector<int>& b) {
  std::vector<std::vector<int>> d(a.size() + 1, std::vector<int>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i)
    for (std::size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0)
        d[i][j] = static_cast<int>(i + j);
      else
        d[i][j] =
            std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (a[i - 1] != b[j - 1])});
    }
  return d[a.size()][b.size()];
}

class EditDistanceTest : public InEveryMode {
 protected:
  // With empty rows on one side and on both.
  Rows hypotheses{{1, 2, 3}, {}, {4, 4}, {}, {1, 2, 1, 2, 3, 1}, {5}};
  Rows references{{1, 3}, {2, 2}, {}, {}, {2, 1, 3, 3, 1}, {5}};
  const Dim batch{"batch", 6};

  static std::vector<double> expected(const Rows& a, const Rows& b) {
    std::vector<double> result;
    for (std::size_t i = 0; i < a.size(); ++i) result.push_back(distance_by_table(a[i], b[i]));
    return result;
  }
};
REEL_IN_EVERY_MODE(EditDistanceTest);

TEST_P(EditDistanceTest, IsTheLastCellOfTheTable) {
  const Tensor a = ragged(hypotheses, {batch, Dim("time")}, i32);
  const Tensor b = ragged(references, {batch, Dim("right")}, i32);
  const auto f = run([](const Tensor& a, const Tensor& b) {
    return edit_distance(a, b, {a.dim("time"), b.dim("right")});
  });
  EXPECT_EQ(f(a, b).type(), TensorType(i32, {batch}));
  expect_values(f(a, b), expected(hypotheses, references));
  expect_values(f(cast(a, i64), cast(b, i64)), expected(hypotheses, references));
  const auto backwards = run([](const Tensor& a, const Tensor& b) {
    return edit_distance(b, a, {b.dim("right"), a.dim("time")});
  });
  expect_values(backwards(a, b), expected(hypotheses, references));
}

TEST_P(EditDistanceTest, DrawnSequencesAgreeWithTheTable) {
  std::mt19937 random(3);
  const auto draw = [&] {
    std::vector<int> row(random() % 9);
    for (int& symbol : row) symbol = static_cast<int>(random() % 3);
    return row;
  };
  Rows a(40), b(40);
  std::generate(a.begin(), a.end(), draw);
  std::generate(b.begin(), b.end(), draw);
  const Dim many("batch", 40);
  const auto f = run([](const Tensor& a, const Tensor& b) {
    return edit_distance(a, b, {a.dim("time"), b.dim("right")});
  });
  expect_values(f(ragged(a, {many, Dim("time")}, i32), ragged(b, {many, Dim("right")}, i32)),
                expected(a, b));
}

TEST_P(EditDistanceTest, PaddingDoesNotCount) {
  const Tensor a = ragged(hypotheses, {batch, Dim("time")}, i32);
  const Tensor b = ragged(references, {batch, Dim("right")}, i32);
  const auto f = run([](const Tensor& a, const Tensor& b) {
    const Dim time = a.dim("time"), right = b.dim("right");
    return edit_distance(where(mask(time), a, 3), where(mask(right), b, 3), {time, right});
  });
  expect_values(f(a, b), expected(hypotheses, references));
}

TEST_P(EditDistanceTest, SeveralHypothesesShareAReference) {
  const Dim beam("beam", 2), time("time", 2), right("right", 3);
  const Tensor a = tensor({1, 2, 3, 4}, {beam, time}, i32), b = tensor({1, 2, 4}, {right}, i32);
  const auto f = run([&](const Tensor& a, const Tensor& b) {
    return edit_distance(a, b, {time, right});
  });
  expect_values(f(a, b), {1, 2});
}

TEST_P(EditDistanceTest, AxesWithoutElementsCountTheOthers) {
  const Dim entries("batch", 2), none("none", 0), right("right", 3);
  const auto f = run([&](const Tensor& a, const Tensor& b) {
    return std::pair{edit_distance(a, b, {none, right}), edit_distance(b, a, {right, none})};
  });
  const auto [to_others, to_none] =
      f(zeros({entries, none}, i32), tensor({1, 2, 3, 4, 5, 6}, {entries, right}, i32));
  expect_values(to_others, {3, 3});
  expect_values(to_none, {3, 3});
}

TEST_P(EditDistanceTest, RateDividesByTheLengthOfTheReferences) {
  const Tensor a = ragged(hypotheses, {batch, Dim("time")}, i32);
  const Tensor b = ragged(references, {batch, Dim("right")}, i32);
  const auto f = run([](const Tensor& a, const Tensor& b) {
    const Weighted errors = label_error_rate(a, b, {a.dim("time"), b.dim("right")});
    return std::tuple{errors.total, errors.weight, errors.mean()};
  });
  double total = 0;
  for (const double d : expected(hypotheses, references)) total += d;
  const auto [errors, symbols, rate] = f(a, b);
  expect_values(errors, {total});
  expect_values(symbols, {10});
  expect_values(rate, {total / 10}, 1e-6);
}

TEST_P(EditDistanceTest, ErrorsSayWhichDimsBelongWhere) {
  const Dim time("time", 2), right("right", 3);
  const Tensor a = zeros({time}, i32), b = zeros({right}, i32);
  const auto f = run([&](const Tensor& a, const Tensor& b) {
    return edit_distance(a, b, {time, right});
  });
  EXPECT_EQ(message_of<DTypeError>([&] { f(a, cast(b, i64)); }),
            "edit_distance: hypotheses and references must be i32, or both i64, got i32[time=2] and"
            " i64[right=3]");
  EXPECT_EQ(message_of<ShapeError>([&] {
              f(a, zeros({Dim("beam", 2), right}, i32));
            }),
            "edit_distance: hypotheses must have time=2, references right=3 and otherwise only dims"
            " of the hypotheses, got i32[time=2] and i32[beam=2,right=3]");
}

TEST(WordErrorRateTest, CountsWords) {
  const Weighted errors =
      word_error_rate({"the cat  sat", "", "a b c"}, {"the cat sat down", "hi", "a x c"});
  expect_values(errors.total, {3});
  expect_values(errors.weight, {8});
  expect_values(word_error_rate({}, {}).mean(), {0});
  EXPECT_EQ(message_of<ArgumentError>([] { word_error_rate({"a"}, {}); }),
            "word_error_rate: there are 1 hypotheses and 0 references");
}

}  // namespace
}  // namespace reel
