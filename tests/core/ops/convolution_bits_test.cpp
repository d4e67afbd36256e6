// Bits of convolutions that take other ways by their sizes, and largest elements of many channels.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "reel/core/functions/convolutions.h"
#include "reel/core/ops.h"
#include "reel/tests/check.h"

namespace reel {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN(),
                 kInf = std::numeric_limits<double>::infinity();

class ConvBitsTest : public ::testing::TestWithParam<DType> {
 protected:
  ConvBitsTest() { manual_seed(7); }
  Tensor normal(const Dims& dims) const { return random_normal(dims, GetParam()); }
};

// Filters of more than 12 Ki elements are packed if there are enough windows.
TEST_P(ConvBitsTest, FewWindowsHaveTheBitsOfMany) {
  for (const std::int64_t in : {96, 300}) {
    const Tensor x = normal({6, 40, in}), filter = normal({3, in, 130}), all = conv(x, filter, 1);
    for (const std::int64_t windows : {1, 2, 3, 7, 12, 13})
      for (const std::int64_t entry : {0, 5}) {
        const Tensor some = slice(slice(x, 0, entry, entry + 1), 1, 0, windows + 2);
        expect_same_bits(conv(some, filter, 1),
                         slice(slice(all, 0, entry, entry + 1), 1, 0, windows));
      }
  }
}

TEST_P(ConvBitsTest, OneTapHasTheBitsOfEachEntryAlone) {
  for (const std::int64_t out : {8, 70}) {
    const Tensor x = normal({5, 37, 9, 48}), filter = normal({1, 1, 48, out}),
                 all = conv(x, filter, {1, 2});
    for (std::int64_t entry = 0; entry < 5; ++entry)
      for (const std::int64_t rows : {1, 37}) {
        const Tensor some = slice(slice(x, 0, entry, entry + 1), 1, 0, rows);
        expect_same_bits(conv(some, filter, {1, 2}),
                         slice(slice(all, 0, entry, entry + 1), 1, 0, rows));
      }
  }
}

// A filter of one tap is not packed, and a product of many positions may be oneDNN's.
TEST_P(ConvBitsTest, ManyPositionsOfOneTapHaveTheBitsOfFew) {
  const Tensor x = normal({2, 700, 192}), filter = normal({1, 192, 200}), all = conv(x, filter, 1);
  const Tensor padded = conv(x, filter, 1, {.padding = WindowPadding{1, 0}});
  expect_same_bits(all, slice(padded, 1, 1, 701));
  for (const std::int64_t positions : {1, 11, 12, 100, 479, 480}) {
    const Tensor some = slice(slice(x, 0, 1, 2), 1, 0, positions);
    expect_same_bits(conv(some, filter, 1), slice(slice(all, 0, 1, 2), 1, 0, positions));
  }
}

// With a stride, or an axis with padding, windows are copied. The numbers are the same.
TEST_P(ConvBitsTest, OneTapHasTheBitsOfCopiedWindows) {
  const Tensor x = normal({2, 21, 48}), filter = normal({1, 48, 70});
  const Tensor padded = conv(x, filter, 1, {.padding = WindowPadding{1, 0}});
  expect_same_bits(conv(x, filter, 1), slice(padded, 1, 1, 22));
  expect_values(slice(padded, 1, 0, 1), std::vector<double>(140, 0), 0);
}

TEST_P(ConvBitsTest, OneTapLeavesPaddingOut) {
  const Dim batch("batch", 2), time("time", tensor({5, 2}, {batch})), taps("taps", 1), in("in", 16),
      out("out", 8);
  const Tensor values = normal({batch, time, in}), filter = normal({taps, in, out}),
               x = where(mask(time), values, cast(scalar(kNan, f64), GetParam())),
               y = conv(x, filter, time, {.taps = {taps}, .in = {in}});
  EXPECT_TRUE(all(isfinite(mask_padding(y))).item<bool>());
  expect_same_bits(mask_padding(y),
                   mask_padding(conv(values, filter, time, {.taps = {taps}, .in = {in}})));
}

TEST_P(ConvBitsTest, OneTapOfNothingIsEmpty) {
  EXPECT_EQ(conv(normal({0, 4, 3}), normal({1, 3, 2}), 1).shape(),
            (std::vector<std::int64_t>{0, 4, 2}));
  EXPECT_EQ(conv(normal({2, 0, 3}), normal({1, 3, 2}), 1).shape(),
            (std::vector<std::int64_t>{2, 0, 2}));
  expect_values(conv(normal({1, 2, 0}), normal({1, 0, 2}), 1), {0, 0, 0, 0}, 0);
}

INSTANTIATE_TEST_SUITE_P(Floats, ConvBitsTest, ::testing::Values(f32, f64));

/// Returns the largest element of each window over axis 0 of x [size, channels]; a NaN wins.
std::vector<double> largest_by_loops(const std::vector<double>& x, std::int64_t size,
                                     std::int64_t channels, std::int64_t taps,
                                     std::int64_t before) {
  std::vector<double> result;
  for (std::int64_t window = 0; window < size; ++window)
    for (std::int64_t c = 0; c < channels; ++c) {
      double largest = -kInf;
      for (std::int64_t tap = 0; tap < taps; ++tap) {
        const std::int64_t place = window + tap - before;
        if (place < 0 || place >= size) continue;
        const double next = x[static_cast<std::size_t>(place * channels + c)];
        if (std::isnan(next) || next > largest) largest = next;
        if (std::isnan(largest)) break;
      }
      result.push_back(largest);
    }
  return result;
}

TEST(PoolBitsTest, ChannelsHaveTheLargestElementsOfPlainLoops) {
  manual_seed(9);
  for (const std::int64_t channels : {1, 3, 8, 37})
    for (const DType dtype : {f32, f64, i32}) {
      Tensor x = cast(random_normal({11, channels}) * 4, dtype);
      if (dtype != i32) {  // NaN and infinities at some places
        const Tensor place = reshape(range(Dim(11 * channels), dtype), {11, channels});
        const auto at = [&](double number, double value) {
          x = where(equal(place, number), cast(scalar(value, f64), dtype), x);
        };
        at(5, kNan), at(7, -kInf), at(10, kInf), at(10. * static_cast<double>(channels), kNan);
      }
      const Tensor y = max_pool(x, 0, {.size = 3, .stride = 1, .padding = WindowPadding{1, 1}});
      const std::vector<double> got = values_of(y),
                                expected = largest_by_loops(values_of(x), 11, channels, 3, 1);
      ASSERT_EQ(got.size(), expected.size());
      for (std::size_t i = 0; i < got.size(); ++i)
        EXPECT_TRUE(got[i] == expected[i] || (std::isnan(got[i]) && std::isnan(expected[i])))
            << i << ": " << got[i] << ", " << expected[i];
    }
}

}  // namespace
}  // namespace reel
