// Reductions of rows, which kernels reduce side by side.
#include <gtest/gtest.h>

#include <array>
#include <limits>

#include "reel/tests/modes.h"

namespace reel {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

class ShortRowsTest : public InEveryMode {};
REEL_IN_EVERY_MODE(ShortRowsTest);

// Rows are reduced side by side, to the bits of a row by itself. Few vectors of a row have code of
// their own, and rows without NaN.
TEST_P(ShortRowsTest, HaveTheBitsOfOneRow) {
  manual_seed(5);
  const auto each_row = [](const Tensor& x) {
    return std::array{sum(x, 1), prod(x / 16 + 1, 1), max(x, 1), min(x, 1)};
  };
  for (const DType dtype : {f32, f64})
    for (const std::int64_t columns :
         {4, 6, 8, 12, 16, 24, 31, 32, 33, 40, 48, 63, 64, 65, 80, 130, 257})
      for (const std::int64_t rows : {1, 7, 8, 16, 35}) {
        SCOPED_TRACE(::testing::Message() << rows << " rows of " << columns);
        const Tensor values = random_normal({rows, columns}, dtype);
        const Tensor x = where(values > 2.5, kNaN, values);
        const auto all = run(each_row)(x);
        for (std::int64_t row = 0; row < rows; ++row) {
          const auto one = each_row(slice(x, 0, row, row + 1));
          for (std::size_t i = 0; i < all.size(); ++i)
            expect_same_bits(slice(all[i], 0, row, row + 1), one[i]);
        }
      }
}

// Each place of a row once holds NaN: blocks before it are compared as numbers.
TEST_P(ShortRowsTest, NanIsTheExtremeWhereverItStands) {
  for (const DType dtype : {f32, f64})
    for (const std::int64_t columns : {1, 15, 16, 17, 63, 64, 65, 200}) {
      SCOPED_TRACE(::testing::Message() << columns << " columns of " << str(dtype));
      const Tensor x = where(range(columns) == reshape(range(columns), {columns, 1}), kNaN,
                             random_normal({columns, columns}, dtype));
      for (const Tensor& extreme :
           {run([](Tensor x) { return max(x, 1); })(x), run([](Tensor x) { return min(x, 1); })(x)})
        EXPECT_TRUE(all(isnan(extreme)).item<bool>());
      expect_same_bits(run([](Tensor x) { return argmax(x, 1); })(x), range(columns));
    }
}

TEST_P(ShortRowsTest, RowsOfInfinitiesHaveThemAsExtremes) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const double value : {kInfinity, -kInfinity}) {
    const Tensor x = full({20, 70}, value);
    expect_values(run([](Tensor x) { return max(x, 1); })(x), std::vector<double>(20, value));
    expect_values(run([](Tensor x) { return min(x, 1); })(x), std::vector<double>(20, value));
  }
}

}  // namespace
}  // namespace reel
