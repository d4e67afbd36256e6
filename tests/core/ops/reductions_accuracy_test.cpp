// Accuracy of reductions, all sizes of vectors and tails, overflow, NaN.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "reel/tests/modes.h"

namespace reel {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

TEST(ReductionsAccuracyTest, SumsOfAMillionFloatsAreAccurate) {
  const std::int64_t count = 1'000'000;
  std::vector<float> values(count);
  double exact = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    values[i] = 0.1f + 0.9f * static_cast<float>(i * 7919 % 1000) / 1000;
    exact += values[i];
  }
  for (const std::vector<std::int64_t>& shape :
       {std::vector<std::int64_t>{count}, {1, count}, {count, 1}}) {
    const Tensor x = reshape(tensor(values), shape);
    EXPECT_NEAR(sum(x).item<float>() / exact, 1, 1e-7);
  }
  double first = 0;
  for (std::int64_t i = 0; i < count; i += 2) first += values[i];
  EXPECT_NEAR(sum(reshape(tensor(values), {count / 2, 2}), 0).to_vector<float>()[0] / first, 1,
              1e-7);
}

TEST(ReductionsAccuracyTest, AllSizesOfRowsAndColumns) {
  for (const DType dtype : {f32, f64, i32, i64})
    for (std::int64_t rows : {1, 2, 3, 5, 8, 31, 130})
      for (std::int64_t columns : {1, 2, 3, 7, 16, 33, 64, 600}) {
        std::vector<double> values, by_row(rows), by_column(columns), most_by_row(rows, -1e9),
            most_by_column(columns, -1e9), least_by_row(rows, 1e9), least_by_column(columns, 1e9);
        for (std::int64_t i = 0; i < rows; ++i)
          for (std::int64_t j = 0; j < columns; ++j) {
            const double value = (i * 37 + j * 101) % 53 - 20.;
            values.push_back(value);
            by_row[i] += value, by_column[j] += value;
            most_by_row[i] = std::max(most_by_row[i], value),
            most_by_column[j] = std::max(most_by_column[j], value);
            least_by_row[i] = std::min(least_by_row[i], value),
            least_by_column[j] = std::min(least_by_column[j], value);
          }
        const Tensor x = tensor(values, {rows, columns}, dtype);
        SCOPED_TRACE(str(x.type()));
        expect_values(sum(x, 1), by_row);
        expect_values(sum(x, 0), by_column);
        expect_values(max(x, 1), most_by_row);
        expect_values(max(x, 0), most_by_column);
        expect_values(min(x, 1), least_by_row);
        expect_values(min(x, 0), least_by_column);
        for (int axis : {0, 1}) expect_same_bits(argmin(x, axis), argmax(x * -1, axis));
        for (int axis : {0, 1}) {
          const Tensor at = argmax(x, axis);
          const auto found = at.to_vector<std::int32_t>();
          for (std::size_t k = 0; k < found.size(); ++k) {
            const auto value = [&](std::int64_t n) {
              return axis ? values[k * columns + n] : values[n * columns + k];
            };
            EXPECT_EQ(value(found[k]), axis ? most_by_row[k] : most_by_column[k]);
            for (std::int64_t n = 0; n < found[k]; ++n) EXPECT_LT(value(n), value(found[k]));
          }
        }
        if (!is_float(dtype)) continue;
        for (int axis : {0, 1}) {
          const Tensor total = logsumexp(x, axis);
          std::vector<double> expected(axis ? rows : columns);
          for (std::int64_t i = 0; i < rows; ++i)
            for (std::int64_t j = 0; j < columns; ++j)
              expected[axis ? i : j] += std::exp(values[i * columns + j]);
          for (double& value : expected) value = std::log(value);
          expect_values(total, expected);
          expect_all_close(softmax(x, axis), exp(log_softmax(x, axis)), 1e-5);
          expect_values(sum(softmax(x, axis), axis), std::vector<double>(expected.size(), 1));
        }
      }
}

TEST(ReductionsAccuracyTest, TruthOfAllSizes) {
  for (std::int64_t columns : {1, 3, 64, 600}) {
    const Tensor x = range(7 * columns) == 5 * columns;  // one element, in row 5 and column 0
    const Tensor at = reshape(x, {7, columns});
    expect_values(any(at, 1), {0, 0, 0, 0, 0, 1, 0});
    expect_values(all(!at, 1), {1, 1, 1, 1, 1, 0, 1});
    EXPECT_EQ(any(at, 0).to_vector<bool>()[0], true);
    EXPECT_EQ(all(!at, 0).to_vector<bool>()[0], false);
    EXPECT_EQ(sum(cast(any(at, 0), i32)).item<std::int32_t>(), 1);
  }
}

TEST(ReductionsAccuracyTest, LargeNumbersDoNotOverflow) {
  const Tensor x = tensor({1000., 1000., -1000.});
  expect_values(logsumexp(x, 0), {1000 + std::log(2)});
  expect_values(softmax(x, 0), {0.5, 0.5, 0});
  expect_values(log_softmax(x, 0), {-std::log(2), -std::log(2), -2000 - std::log(2)});
  expect_values(logsumexp(tensor({kInf, 1.}), 0), {kInf});
}

TEST(ReductionsAccuracyTest, NaNWins) {
  const Tensor x = tensor({{1., kNaN, 3.}, {3., 2., 1.}});
  expect_values(sum(x, 1), {kNaN, 6});
  expect_values(max(x, 1), {kNaN, 3});
  expect_values(max(x, 0), {3, kNaN, 3});
  expect_values(argmax(x, 1), {1, 0});
  expect_values(argmax(x, 0), {1, 0, 0});
  expect_values(min(x, 1), {kNaN, 1});
  expect_values(min(x, 0), {1, kNaN, 1});
  expect_values(argmin(x, 1), {1, 2});
  expect_values(argmin(x, 0), {0, 0, 1});
  expect_values(prod(x, 1), {kNaN, 6});
  for (const DType dtype : {f32, f64})
    for (const int at : {0, 9, 70, 255, 299}) {
      std::vector<double> many(300, 1.);
      many[at] = kNaN;
      expect_values(max(tensor(many, {}, dtype)), {kNaN});
      expect_values(argmax(tensor(many, {}, dtype), 0), {static_cast<double>(at)});
      expect_values(max(max(tensor(many, {10, 30}, dtype), 0), 0), {kNaN});
      expect_values(min(tensor(many, {}, dtype)), {kNaN});
      expect_values(argmin(tensor(many, {}, dtype), 0), {static_cast<double>(at)});
      expect_values(sum(softmax(tensor(many, {}, dtype), 0)), {kNaN});
      expect_values(logsumexp(tensor(many, {}, dtype), 0), {kNaN});
    }
}

TEST(ReductionsAccuracyTest, IntegersWrapAround) {
  expect_values(sum(tensor({2147483647, 1})), {-2147483648.});
  expect_values(prod(tensor({65536, 65537})), {65536});
}

}  // namespace
}  // namespace reel
