// Loops that the compiler vectorises: values of where and casts on every instruction set of the
// processor.
#include <gtest/gtest.h>

#include <algorithm>
#include <cfenv>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "reel/core/ops/elementwise/pointwise_kernels.h"
#include "reel/core/runtime/processor.h"

namespace reel {
namespace {

class PlainLoopsTest : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    table_ = find_pointwise_table(GetParam());
    if (!table_) GTEST_SKIP() << "this processor has no " << GetParam();
  }
  const PointwiseTable* table_ = nullptr;
};

INSTANTIATE_TEST_SUITE_P(InstructionSets, PlainLoopsTest, ::testing::ValuesIn(kInstructionSets),
                         [](const auto& info) { return std::string(info.param); });

// ---- where --------------------------------------------------------------------------------------

constexpr std::int64_t kRows = 3;

/// Conditions of kRows rows: equal ones, and rows that differ in the middle, or at one end.
std::vector<std::vector<std::uint8_t>> masks(std::int64_t columns) {
  std::vector<std::vector<std::uint8_t>> result;
  const std::int64_t count = kRows * columns;
  for (const int kind : {0, 1, 2, 3, 4}) {
    std::vector<std::uint8_t> mask(count);
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t column = i % columns, row = i / columns;
      const bool values[] = {false, true, i % 3 == 1, column == columns / 2, column <= row};
      mask[i] = values[kind];
    }
    result.push_back(mask);
  }
  return result;
}

/// Runs where for kRows rows, and expects an elementwise choice, and no element changed behind it.
/// place: 0 for a result of its own, 1 and 2 if it replaces a or b.
template <class T>
void expect_choice(RowsLoop where, const std::vector<std::uint8_t>& mask, std::int64_t columns,
                   const std::array<bool, 3>& repeats, int place) {
  const std::int64_t count = kRows * columns;
  std::vector<T> a(count + 1), b(count + 1), own(count + 1, T(7));
  std::iota(a.begin(), a.end(), T(1));
  std::iota(b.begin(), b.end(), T(100));
  PointwiseRows rows{.columns = columns, .rows = kRows};
  for (int k = 0; k < 3; ++k) {
    rows.repeats[k] = repeats[k];
    rows.step[k] = repeats[k] ? 1 : columns;
  }
  std::vector<T> expected(count);
  for (std::int64_t i = 0; i < count; ++i) {
    const auto at = [&](int k) { return repeats[k] ? i / columns : i; };
    expected[i] = mask[at(0)] ? a[at(1)] : b[at(2)];
  }
  std::vector<T>& out = place == 0 ? own : place == 1 ? a : b;
  const T behind = out[count];
  const void* const in[] = {mask.data(), a.data(), b.data()};
  where(in, out.data(), rows);
  EXPECT_TRUE(std::equal(expected.begin(), expected.end(), out.begin()))
      << columns << " columns, place " << place << ", repeats " << repeats[0] << repeats[1]
      << repeats[2];
  EXPECT_EQ(out[count], behind);
}

template <class T>
void expect_choices(RowsLoop where) {
  for (const std::int64_t columns : {1, 7, 8, 33, 63, 64, 65, 200})
    for (const auto& mask : masks(columns))
      for (int bits = 0; bits < 7; ++bits) {  // not all operands repeat
        const std::array<bool, 3> repeats{(bits & 4) != 0, (bits & 2) != 0, (bits & 1) != 0};
        for (const int place : {0, 1, 2})
          if (place == 0 || !repeats[place]) expect_choice<T>(where, mask, columns, repeats, place);
      }
}

TEST_P(PlainLoopsTest, WhereChoosesInEveryLayout) {
  expect_choices<std::uint32_t>(table_->where[column_of(f32)]);
  expect_choices<std::uint64_t>(table_->where[column_of(f64)]);
  expect_choices<std::uint32_t>(table_->where[column_of(i32)]);
  expect_choices<std::uint64_t>(table_->where[column_of(i64)]);
  expect_choices<std::uint8_t>(table_->where[column_of(boolean)]);
}

// ---- Casts --------------------------------------------------------------------------------------

template <class From, class To>
void expect_saturation(UnaryLoop cast) {
  const double low = static_cast<double>(std::numeric_limits<To>::min());
  std::vector<From> x;
  for (int i = 0; i < 40; ++i)
    for (const double value : {1.5 * i, -1.5 * i, 1e30, -1e30, low, -low, -low / 2, HUGE_VAL})
      x.push_back(static_cast<From>(value));
  std::vector<To> y(x.size());
  std::feclearexcept(FE_ALL_EXCEPT);
  cast(x.data(), y.data(), static_cast<std::int64_t>(x.size()));
  EXPECT_EQ(std::fetestexcept(FE_INVALID | FE_OVERFLOW), 0);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const To expected = x[i] >= static_cast<From>(-low) ? std::numeric_limits<To>::max()
                        : x[i] < static_cast<From>(low) ? std::numeric_limits<To>::min()
                                                        : static_cast<To>(x[i]);
    ASSERT_EQ(y[i], expected) << x[i];
  }
  const std::vector<From> nan(35, std::numeric_limits<From>::quiet_NaN());
  cast(nan.data(), y.data(), 35);
  EXPECT_TRUE(std::all_of(y.begin(), y.begin() + 35, [](To v) { return v == 0; }));
}

// Blocks of 64 elements within range are converted as they are.
TEST_P(PlainLoopsTest, OneElementOutOfRangeChangesNoOther) {
  const UnaryLoop cast = table_->cast[column_of(f32)][column_of(i32)];
  for (const std::int64_t count : {1, 15, 16, 17, 63, 64, 65, 128, 200})
    for (const float odd : {-0x1p31f, 0x1p31f, HUGE_VALF, std::nanf(""), 0x1.fffffep30f, 7.75f})
      for (const std::int64_t at : {std::int64_t{0}, count / 2, count - 1}) {
        std::vector<float> x(static_cast<std::size_t>(count));
        std::vector<std::int32_t> y(x.size() + 1, 77), expected(y);
        for (std::size_t i = 0; i < x.size(); ++i)
          expected[i] = static_cast<std::int32_t>(x[i] = 0.75f * static_cast<float>(i) - 20);
        const auto place = static_cast<std::size_t>(at);
        x[place] = odd;
        expected[place] = std::isnan(odd)  ? 0
                          : odd >= 0x1p31f ? std::numeric_limits<std::int32_t>::max()
                                           : static_cast<std::int32_t>(odd);
        cast(x.data(), y.data(), count);
        ASSERT_EQ(y, expected) << odd << " at " << at << " of " << count;
      }
}

// A vector converts all of its lanes, those out of range too.
TEST_P(PlainLoopsTest, CastsToIntegersSaturateWithoutFloatingPointExceptions) {
  expect_saturation<float, std::int32_t>(table_->cast[column_of(f32)][column_of(i32)]);
  expect_saturation<float, std::int64_t>(table_->cast[column_of(f32)][column_of(i64)]);
  expect_saturation<double, std::int32_t>(table_->cast[column_of(f64)][column_of(i32)]);
  expect_saturation<double, std::int64_t>(table_->cast[column_of(f64)][column_of(i64)]);
}

}  // namespace
}  // namespace reel
