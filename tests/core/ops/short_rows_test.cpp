// Reductions of short rows, which kernels reduce side by side.
#include <gtest/gtest.h>

#include <array>
#include <limits>

#include "reel/tests/modes.h"

namespace reel {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

class ShortRowsTest : public InEveryMode {};
REEL_IN_EVERY_MODE(ShortRowsTest);

// Rows of a few vectors are reduced side by side, to the bits of a row by itself.
TEST_P(ShortRowsTest, HaveTheBitsOfOneRow) {
  manual_seed(5);
  const auto each_row = [](const Tensor& x) {
    return std::array{sum(x, 1), prod(x, 1), max(x, 1), min(x, 1)};
  };
  for (const DType dtype : {f32, f64})
    for (const std::int64_t columns : {4, 6, 8, 12, 16, 24, 32, 40, 48, 64, 80})
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

}  // namespace
}  // namespace reel
