// spec_augment, and random integers between bounds that differ by entry.
#include "reel/frontend/signals/spec_augment.h"

#include <gtest/gtest.h>

#include <limits>
#include <set>
#include <vector>

#include "reel/core/functions/random_bounds.h"
#include "reel/core/ops.h"
#include "reel/frontend/jit.h"
#include "reel/frontend/transforms/grad.h"
#include "reel/tests/check.h"

namespace reel {
namespace {

TEST(RandomBoundsTest, EveryIntegerBetweenTheBoundsOfAnEntryComes) {
  manual_seed(3);
  const Dim entry("entry", 3), draw("draw", 400);
  const Tensor low = tensor({-2, 0, 5}, Dims{entry}), high = tensor({1, 1, 9}, Dims{entry});
  const std::vector<double> drawn = values_of(random_integers({entry, draw}, low, high));
  const std::set<double> expected[] = {{-2, -1, 0}, {0}, {5, 6, 7, 8}};
  for (std::size_t e = 0; e < 3; ++e)
    EXPECT_EQ(std::set<double>(drawn.begin() + static_cast<std::ptrdiff_t>(e * 400),
                               drawn.begin() + static_cast<std::ptrdiff_t>((e + 1) * 400)),
              expected[e]);
}

TEST(RandomBoundsTest, DrawsAreThoseOfNumbersAndOfJit) {
  const Dims dims{Dim("draw", 50)};
  const auto by_tensor = [&](const Tensor& high) { return random_integers(dims, 3, high, i64); };
  manual_seed(4);
  const Tensor expected = random_integers(dims, std::int64_t{3}, std::int64_t{17}, i64);
  manual_seed(4);
  expect_same_bits(by_tensor(scalar(17)), expected);
  manual_seed(4);
  expect_same_bits(jit(by_tensor)(scalar(17)), expected);
}

TEST(RandomBoundsTest, AnEmptyRangeGivesItsLowerBound) {
  expect_values(random_integers({Dim(2)}, tensor({4, -1}), tensor({4, -5})), {4, -1});
}

TEST(RandomBoundsTest, ErrorsNameTheBound) {
  EXPECT_EQ(message_of<DTypeError>([] {
              random_integers({Dim(2)}, 0, tensor({1., 2.}));
            }),
            "random_integers: high is f32[2]; cast it to i32 or i64");
}

/// Returns the longest run of zeros of a row, and the number of zeros.
std::pair<int, int> zeros_of(const std::vector<double>& x, std::size_t begin, std::size_t count,
                             std::size_t step) {
  int longest = 0, run = 0, all = 0;
  for (std::size_t i = 0; i < count; ++i) {
    run = x[begin + i * step] == 0 ? run + 1 : 0;
    all += x[begin + i * step] == 0;
    longest = std::max(longest, run);
  }
  return {longest, all};
}

TEST(SpecAugmentTest, OneMaskIsASpanOfAtMostItsWidth) {
  manual_seed(1);
  const Tensor y = spec_augment(ones({200, 12, 5}), 1, 2,
                                {.time_masks = 1, .frequency_masks = 0, .time_width = 4});
  const std::vector<double> values = values_of(y);
  std::set<int> widths;
  for (std::size_t row = 0; row < 200; ++row) {
    const auto [longest, all] = zeros_of(values, row * 60, 12, 5);
    EXPECT_EQ(longest, all);
    widths.insert(all);
    for (std::size_t bin = 1; bin < 5; ++bin)
      EXPECT_EQ(zeros_of(values, row * 60 + bin, 12, 5).second, all);
  }
  EXPECT_EQ(widths, (std::set<int>{0, 1, 2, 3, 4}));
}

TEST(SpecAugmentTest, MasksOfFrequenciesCoverAllFrames) {
  manual_seed(2);
  const Tensor y = spec_augment(ones({100, 3, 8}), 1, 2,
                                {.time_masks = 0, .frequency_masks = 1, .frequency_width = 3});
  expect_same_bits(gather(y, scalar(0), 1), gather(y, scalar(2), 1));
  EXPECT_GT(values_of(sum(cast(y == 0, i32)))[0], 0);
}

TEST(SpecAugmentTest, MasksFitIntoTheLengthOfTheirEntry) {
  manual_seed(6);
  const Dim batch("batch", 3), frequency("frequency", 2);
  const Dim time("time", tensor({40, 2, 0}, {batch}));
  const SpecAugmentOptions options{
      .time_masks = 1, .frequency_masks = 0, .time_width = 10, .time_part = 0.5};
  std::set<double> of_short;
  for (int i = 0; i < 60; ++i) {
    const Tensor y = spec_augment(ones({batch, time, frequency}), time, frequency, options);
    const std::vector<double> kept = values_of(sum(y, Axes{time, frequency}));
    EXPECT_GE(kept[0], 60);
    of_short.insert(kept[1]);
  }
  EXPECT_EQ(of_short, (std::set<double>{2, 4}));
}

TEST(SpecAugmentTest, AnEntryHasItsMasksWhateverItsPaddingIs) {
  const Dim batch("batch", 2), frequency("frequency", 3);
  const Dim time("time", tensor({4, 2}, {batch}));
  const Tensor x = ones({batch, time, frequency}),
               junk = where(mask(time), x, std::numeric_limits<double>::quiet_NaN());
  const auto f = [&](const Tensor& of) { return sum(spec_augment(of, time, frequency)); };
  manual_seed(8);
  const Tensor expected = f(x);
  manual_seed(8);
  expect_same_bits(f(junk), expected);
  manual_seed(8);
  expect_same_bits(jit(f)(junk), expected);
}

TEST(SpecAugmentTest, MaskedElementsHaveNoGradient) {
  const auto f = [](const Tensor& x) { return sum(spec_augment(x, 0, 1) * 2); };
  manual_seed(9);
  const Tensor g = grad(f)(ones({30, 40}));
  manual_seed(9);
  expect_same_bits(g, spec_augment(ones({30, 40}), 0, 1) * 2);
}

TEST(SpecAugmentTest, NoMasksDrawNothing) {
  manual_seed(10);
  const Tensor before = random_state();
  spec_augment(ones({3, 4}), 0, 1, {.time_masks = 0, .frequency_masks = 0});
  expect_same_bits(random_state(), before);
}

TEST(SpecAugmentTest, ErrorsNameTheOptions) {
  const Tensor x = ones({3, 4});
  EXPECT_EQ(message_of<ArgumentError>([&] { spec_augment(x, 0, 1, {.time_part = 1.5}); }),
            "spec_augment: time_part is 1.5; it must be between 0 and 1");
  EXPECT_EQ(message_of<ArgumentError>([&] { spec_augment(x, 1, -1); }),
            "spec_augment: time and frequency are both axis 1 of f32[3,4]");
}

}  // namespace
}  // namespace reel
