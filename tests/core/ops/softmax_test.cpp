// softmax, log_softmax and logsumexp against sums in double, for all lengths of rows and numbers of
// columns that kernels treat differently, with infinities and NaN.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "reel/tests/modes.h"

namespace reel {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

struct Expected {
  std::vector<double> softmax, log_softmax, logsumexp;
};

/// x: [outer, n, inner].
Expected expected(const std::vector<double>& x, std::int64_t outer, std::int64_t n,
                  std::int64_t inner) {
  Expected result{x, x, {}};
  for (std::int64_t o = 0; o < outer; ++o)
    for (std::int64_t j = 0; j < inner; ++j) {
      const auto at = [&](std::int64_t k) { return (o * n + k) * inner + j; };
      double most = -kInf, sum = 0;
      for (std::int64_t k = 0; k < n; ++k)
        if (const double value = x[at(k)]; value > most || std::isnan(value)) most = value;
      const double of = most == -kInf ? 0 : most;
      for (std::int64_t k = 0; k < n; ++k) sum += std::exp(x[at(k)] - of);
      for (std::int64_t k = 0; k < n; ++k) {
        result.softmax[at(k)] = sum == 0 ? 0 : std::exp(x[at(k)] - of) / sum;
        result.log_softmax[at(k)] = x[at(k)] == -kInf ? -kInf : x[at(k)] - of - std::log(sum);
      }
      result.logsumexp.push_back(std::isinf(most) ? most : most + std::log(sum));
    }
  return result;
}

void expect_all(const std::vector<double>& values, std::int64_t outer, std::int64_t n,
                std::int64_t inner, DType dtype) {
  SCOPED_TRACE(str(dtype, '[', outer, ',', n, ',', inner, ']'));
  const Tensor x = cast(reshape(tensor(values), {outer, n, inner}), dtype);
  const Expected e = expected(cast(x, f64).to_vector<double>(), outer, n, inner);
  const double tolerance = dtype == f64 ? 1e-13 : 2e-6;
  const auto expect = [&](const Tensor& y, const std::vector<double>& of) {
    expect_all_close(cast(y, f64), reshape(tensor(of), cast(y, f64).type().sizes()), tolerance);
  };
  expect(softmax(x, 1), e.softmax);
  expect(log_softmax(x, 1), e.log_softmax);
  expect(logsumexp(x, 1), e.logsumexp);
}

/// Returns numbers between -4 and 4.
std::vector<double> numbers(std::int64_t count) {
  std::vector<double> result(count);
  for (std::int64_t i = 0; i < count; ++i)
    result[i] = static_cast<double>(i * 7919 % 1001) / 125 - 4;
  return result;
}

TEST(SoftmaxTest, AllLengthsOfRows) {
  for (const DType dtype : {f32, f64}) {
    for (std::int64_t n = 1; n <= 70; ++n) expect_all(numbers(3 * n), 3, n, 1, dtype);
    for (const std::int64_t n : {127, 128, 129, 256, 300, 513})
      expect_all(numbers(2 * n), 2, n, 1, dtype);
  }
}

TEST(SoftmaxTest, AllNumbersOfColumns) {
  for (const DType dtype : {f32, f64})
    for (const std::int64_t n : {1, 2, 9})
      for (const std::int64_t inner :
           {2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65, 127, 128, 129, 200, 600})
        expect_all(numbers(2 * n * inner), 2, n, inner, dtype);
}

TEST(SoftmaxTest, RowsOfNothingAndRowsThatOverflow) {
  const std::vector<std::vector<double>> rows{
      {-kInf, -kInf, -kInf}, {-kInf, 1, -kInf}, {3e4, -3e4, 0}, {-3e4, -3e4, -3e4}, {0, 200, 90}};
  for (const DType dtype : {f32, f64})
    for (const std::int64_t repeats : {1, 5, 21, 60}) {
      std::vector<double> values, columns;
      for (const std::vector<double>& row : rows)
        for (std::int64_t r = 0; r < repeats; ++r)
          values.insert(values.end(), row.begin(), row.end());
      const auto count = static_cast<std::int64_t>(rows.size()), n = 3 * repeats;
      expect_all(values, count, n, 1, dtype);
      for (std::int64_t k = 0; k < n; ++k)
        for (std::int64_t o = 0; o < count; ++o) columns.push_back(values[o * n + k]);
      expect_all(columns, 1, n, count, dtype);
    }
}

// A NaN, like an infinity, makes its own row NaN, and no other one.
TEST(SoftmaxTest, NanStaysInItsRow) {
  for (const DType dtype : {f32, f64})
    for (const std::int64_t n : {1, 2, 7, 16, 17, 40, 64, 200})
      for (const std::int64_t at : {std::int64_t{0}, n / 2, n - 1}) {
        std::vector<double> values = numbers(3 * n);
        values[n + at] = kNaN;
        for (const bool is_row : {true, false}) {
          Tensor x = cast(reshape(tensor(values), {3, n}), dtype);
          if (!is_row) x = transpose(x, {1, 0});
          const Tensor y = cast(softmax(x, is_row ? 1 : 0), f64);
          const std::vector<double> sums =
              cast(sum(where(y == y, 0., 1.), is_row ? 1 : 0), f64).to_vector<double>();
          EXPECT_EQ(sums, (std::vector<double>{0, static_cast<double>(n), 0})) << n << ' ' << at;
          const std::vector<double> logs =
              cast(logsumexp(x, is_row ? 1 : 0), f64).to_vector<double>();
          EXPECT_EQ(std::isnan(logs[0]) + 2 * std::isnan(logs[1]) + 4 * std::isnan(logs[2]), 2);
        }
      }
}

}  // namespace
}  // namespace reel
