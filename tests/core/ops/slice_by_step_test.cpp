// slice with a step, and shift: in every mode, and their errors.
#include <cmath>

#include "reel/core/runtime/memory.h"
#include "reel/tests/modes.h"

namespace reel {
namespace {

class SliceByStepTest : public InEveryMode {
 protected:
  const Dim batch{"batch", 2}, time{"time", tensor({3, 1}, {batch})};
  /// [[1, 2, 3], [4, -, -]]
  const Tensor ragged = tensor({1., 2., 3., 4., NAN, NAN}, {batch, time});

  Tensor sliced(const Tensor& x, std::int64_t begin, std::optional<std::int64_t> end,
                std::int64_t step) const {
    return run([=](const Tensor& x) { return slice(x, x.rank() - 1, begin, end, step); })(x);
  }
  Tensor shifted(const Tensor& x, std::int64_t n, double value = 0) const {
    return run([=](const Tensor& x) { return shift(x, x.rank() - 1, n, value); })(x);
  }
};
REEL_IN_EVERY_MODE(SliceByStepTest);

TEST_P(SliceByStepTest, BackwardsAlongTheDimThatLengthsRunOver) {
  const Dim batch("batch", 2), time("time", tensor({3, 1}, {batch}));
  const Tensor x = tensor({1., 2., 3., 4., 5., 6.}, {batch, time});
  const auto g = run(
      grad([&](const Tensor& x) -> Tensor { return sum(slice(x, x.dim("batch"), -1, {}, -1)); }));
  expect_values(mask_padding(g(x)), {1, 1, 1, 1, 0, 0});
}

TEST_P(SliceByStepTest, ASliceWithAStepIsPythons) {
  // Every begin, end and step, compared with Python's rules.
  constexpr std::int64_t kSize = 5;
  for (const std::int64_t step : {2, 3, 7, -1, -2, -3, -7})
    for (std::int64_t begin = -7; begin <= 7; ++begin)
      for (std::int64_t end = -7; end <= 8; ++end) {
        const auto bound = [&](std::int64_t at) {
          if (at < 0) at += kSize;
          return step > 0 ? std::clamp<std::int64_t>(at, 0, kSize)
                          : std::clamp<std::int64_t>(at, -1, kSize - 1);
        };
        const bool is_open = end == 8;
        const std::int64_t last = is_open ? (step > 0 ? kSize : -1) : bound(end);
        std::vector<double> expected;
        for (std::int64_t at = bound(begin); step > 0 ? at < last : at > last; at += step)
          expected.push_back(static_cast<double>(at));
        const auto to = is_open ? std::nullopt : std::optional(end);
        expect_values(sliced(range(kSize), begin, to, step), expected);
      }
}

TEST_P(SliceByStepTest, EverySecondElementOfRowsOfAnyLength) {
  for (std::int64_t columns = 1; columns <= 40; ++columns)
    for (const DType dtype : {f32, f64, i32, i64, boolean}) {
      const Tensor x =
          cast(reshape(range(2 * columns), {2, columns}) % (dtype == boolean ? 2 : 100), dtype);
      for (const std::int64_t begin : {0, 1}) {
        std::vector<double> expected;
        const std::vector<double> all = cast(x, f64).to_vector<double>();
        for (std::int64_t row = 0; row < 2; ++row)
          for (std::int64_t at = begin; at < columns; at += 2)
            expected.push_back(all[static_cast<std::size_t>(row * columns + at)]);
        expect_values(cast(sliced(x, begin, {}, 2), f64), expected);
      }
    }
}

TEST_P(SliceByStepTest, EachEntryIsSlicedWithinItsLength) {
  Tensor y = sliced(ragged, 0, {}, 2);
  EXPECT_EQ(str(y.type()), "f32[batch=2,time[batch=2]]");
  expect_values(y.dim("time").lengths(), {2, 1});
  expect_values(mask_padding(y), {1, 3, 4, 0});
  y = sliced(ragged, -1, {}, -2);
  expect_values(y.dim("time").lengths(), {2, 1});
  expect_values(mask_padding(y), {3, 1, 4, 0});
  y = sliced(ragged, -2, {}, -1);
  expect_values(y.dim("time").lengths(), {2, 0});
  expect_values(mask_padding(y), {2, 1, 0, 0});
}

TEST_P(SliceByStepTest, TheRestMayBeGivenADim) {
  const Dim wide("wide", 5), rest("rest", 3);
  const auto every = [](const Tensor& x, const Dim& rest) {
    return slice(x, x.dim("wide"), 0, {}, 2, rest);
  };
  EXPECT_EQ(run(every)(zeros({wide}), rest).dim(0), rest);
  EXPECT_EQ(str(run(every)(zeros({wide}), Dim("few")).type()), "f32[few=3]");
  EXPECT_EQ(message_of<ShapeError>([&] { run(every)(zeros({wide}), Dim("rest", 2)); }),
            "slice: dim rest=2 has size 2, but every element 2 of axis wide=5 of f32[wide=5] has "
            "size 3");
}

TEST_P(SliceByStepTest, GradientsOfSlicesLeaveZerosBetween) {
  const auto gradient = [](const Tensor& x) {
    return grad([](const Tensor& x) { return sum(square(slice(x, -1, -1, {}, -2))); })(x);
  };
  expect_values(run(gradient)(tensor({1., 2., 3., 4.})), {0, 4, 0, 8});
  expect_values(mask_padding(run(gradient)(ragged)), {2, 0, 6, 8, 0, 0});
}

TEST_P(SliceByStepTest, ShiftFillsWithTheValue) {
  const Tensor x = tensor({{1., 2., 3.}, {4., 5., 6.}});
  expect_values(shifted(x, 1), {0, 1, 2, 0, 4, 5});
  expect_values(shifted(x, -2, 9), {3, 9, 9, 6, 9, 9});
  expect_values(shifted(x, 0), values_of(x));
  expect_values(shifted(x, 1'000'000'000'000, 7), {7, 7, 7, 7, 7, 7});
  expect_values(shifted(x, -3), {0, 0, 0, 0, 0, 0});
  expect_values(shifted(tensor({true, false}), 1, 1), {1, 1});
  expect_values(shifted(tensor({3, 4}), -1, -2), {4, -2});
  EXPECT_EQ(shifted(zeros({2, 0}), 1).numel(), 0);
  EXPECT_TRUE(std::isnan(values_of(shifted(x, 1, NAN))[0]));
}

TEST_P(SliceByStepTest, EachEntryIsShiftedWithinItsLength) {
  const Tensor right = shifted(ragged, 1), left = shifted(ragged, -1, 9);
  EXPECT_EQ(right.type(), ragged.type());
  expect_values(mask_padding(right), {0, 1, 2, 0, 0, 0});
  expect_values(mask_padding(left), {2, 3, 9, 9, 0, 0});
}

TEST_P(SliceByStepTest, GradientsOfShiftsMoveBack) {
  const Tensor weights = tensor({1., 2., 3.});
  const auto gradient = [](std::int64_t n) {
    return [n](const Tensor& x, const Tensor& w) {
      return grad([&](const Tensor& x) {
        const Tensor y = shift(x, 1, n, 5);
        return sum(square(y) * expand(reshape(w, {x.dim(1)}), y.dims()));
      })(x);
    };
  };
  expect_values(mask_padding(run(gradient(1))(ragged, weights)), {4, 12, 0, 0, 0, 0});
  expect_values(mask_padding(run(gradient(-1))(ragged, weights)), {0, 4, 12, 0, 0, 0});
}

/// A slice of the whole axis once copied its operand before it took every second element.
TEST(SliceMemoryTest, AStepAlongTheWholeAxisTakesMemoryForItsResultOnly) {
  const Tensor x = ones({64, 1024});
  reset_peak_memory();
  const std::int64_t before = memory().all.current;
  const Tensor y = slice(x, 1, 0, {}, 2);
  EXPECT_EQ(y.numel(), x.numel() / 2);
  EXPECT_LT(memory().all.peak - before, x.type().bytes());
}

TEST(StrideErrorTest, MessagesNameTheNumbers) {
  const Dim batch("batch", 2), time("time", tensor({3, 1}, {batch}));
  EXPECT_EQ(message_of<ArgumentError>([] { slice(zeros({3}), 0, 0, {}, 0); }),
            "slice: step 0 along axis 0 of f32[3]; a step is positive, or negative to run "
            "backwards");
  EXPECT_EQ(message_of<ShapeError>([&] { slice(zeros({time}), time, -1, {}, -1); }),
            "slice: step -1 counts from the ends of time[batch=2], but f32[time[batch=2]] has no "
            "dim batch=2 that tells them apart");
  EXPECT_EQ(message_of<DTypeError>([] { shift(zeros({3}, i32), 0, 1, 0.5); }),
            "shift: 0.5 does not fit i32[3], which holds no fractions");
  EXPECT_EQ(message_of<IndexError>([] { shift(zeros({3}), 1, 1); }),
            "shift: axis 1 is out of range for f32[3], which has 1 axis");
}

TEST(ShiftTest, PaddingOfAnotherEntryDoesNotMoveIn) {
  const Dim batch("batch", 2), time("time", tensor({2, 1}, {batch}));
  const Tensor x = tensor({1., 2., 3., std::nan("")}, {batch, time}, f64);
  expect_values(sum(shift(x, batch, -1), time), {3, 0});
  expect_values(sum(shift(x, batch, 1), time), {0, 3});
}

}  // namespace
}  // namespace reel
