// Sizes and positions beyond the range of a tensor or of 32 bits: correct results, or a ShapeError.
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

#include "reel/core/functions/dim_arithmetic.h"
#include "reel/core/ops.h"
#include "reel/core/types/sizes.h"
#include "reel/frontend/loops/fold.h"
#include "reel/frontend/tree/tensor_array.h"
#include "reel/tests/check.h"

namespace reel {
namespace {

constexpr std::int64_t kHuge = std::numeric_limits<std::int64_t>::max(),
                       kBeyond32 = (std::int64_t{1} << 32) + 5;

TEST(SizesTest, ALengthBeyond32BitsIsRefused) {
  EXPECT_EQ(message_of<ShapeError>([] { Dim("time", scalar(kBeyond32, i64)); }),
            "Dim time: a length is 4294967301, which does not fit into i32; at most 2147483647 can "
            "be counted");
  const Dim batch("batch", 2);
  EXPECT_THROW(Dim("time", tensor({kBeyond32, 1}, {batch}, i64)), ShapeError);
  EXPECT_THROW(Dim("time", kBeyond32).lengths(), ShapeError);
  EXPECT_EQ(Dim("time", kBeyond32).size(), kBeyond32);
}

TEST(SizesTest, PadRefusesSizesBeyondSixtyFourBits) {
  const Dim batch("batch", 2), time("time", tensor({3, 1}, {batch}));
  EXPECT_EQ(message_of<ShapeError>([] { pad(ones({3}), 0, kHuge, kHuge); }),
            "pad: 9223372036854775807 and 9223372036854775807 elements are more than 64 bits can "
            "count");
  EXPECT_THROW(pad(ones({3}), 0, kHuge, 0), ShapeError);
  EXPECT_THROW(pad(ones({3}), 0, 0, kHuge), ShapeError);
  EXPECT_THROW(pad(ones({batch, time}), time, kHuge, kHuge), ShapeError);
  EXPECT_THROW(pad(ones({batch, time}), time, 0, kBeyond32), ShapeError);
  EXPECT_THROW(pad(ones({batch, time}), time, kLargestI32 - 1, 0), ShapeError);
  EXPECT_THROW(pad(ones({3}), 0, -kHuge - 1, -kHuge - 1), ArgumentError);
}

TEST(SizesTest, SlicesTakePositionsOfAnySize) {
  const Dim batch("batch", 2), time("time", tensor({3, 1}, {batch}));
  const Tensor plain = tensor({1., 2., 3.}), ragged = mask_padding(ones({batch, time}));
  expect_values(slice(plain, 0, -kHuge - 1, kHuge), {1, 2, 3});
  expect_values(slice(plain, 0, 0, kHuge, kHuge), {1});
  expect_values(slice(plain, 0, kHuge, -kHuge - 1, -kHuge - 1), {3});
  EXPECT_EQ(slice(plain, 0, kHuge, {}).numel(), 0);
  expect_values(sum(slice(ragged, time, -kBeyond32, kBeyond32)), {4});
  expect_values(sum(slice(ragged, time, kBeyond32, kHuge)), {0});
}

TEST(SizesTest, ShiftTakesAnyNumber) {
  for (const std::int64_t n : {kBeyond32, -kBeyond32, kHuge, -kHuge - 1})
    expect_values(shift(tensor({1., 2.}), 0, n, 7), {7, 7});
}

TEST(SizesTest, ElementsBeyond64BitsAreRefused) {
  const Dim wide(kHuge / 2);
  EXPECT_THROW(zeros({wide, wide}), ShapeError);
  EXPECT_THROW(expand(ones({1}), {wide, wide}), ShapeError);
  EXPECT_THROW(broadcast_to(ones({1}), {wide, wide}), ShapeError);
  EXPECT_THROW(one_hot(zeros({wide.size() ? 4 : 0}, i32), wide), ShapeError);
  EXPECT_THROW(reshape(ones({3}), {kHuge, kHuge}), ShapeError);
  EXPECT_THROW(reshape(ones({3}), {kHuge, kHuge, -1}), ShapeError);
  EXPECT_THROW(split_dim(ones({3}), 0, {wide, wide}), ShapeError);
  EXPECT_THROW(random_uniform({wide, wide}), ShapeError);
  EXPECT_THROW(wide + Dim(kHuge), ArgumentError);
}

TEST(SizesTest, ConcatenatedSizesDoNotWrapAround) {
  const Tensor x = zeros({0, std::int64_t{1} << 62}, boolean);
  EXPECT_THROW(concat({x, x, x, x}, 1), ShapeError);
  const Dim batch("batch", 1), none("none", 0), time("time", tensor({int{kLargestI32}}, {batch}));
  const Tensor long_one = zeros({none, batch, time});
  EXPECT_THROW(concat({long_one, long_one, long_one}, time), ShapeError);
}

TEST(SizesTest, PositionsThatDoNotFitAreRefused) {
  const Tensor x = zeros({0, kBeyond32});
  EXPECT_EQ(message_of<ShapeError>([&] { argmax(x, 1); }),
            "argmax: positions among 4294967301 elements of f32[0,4294967301] do not fit into i32, "
            "whose largest number is 2147483647; take the axis in parts");
  EXPECT_THROW(argmin(x, 1), ShapeError);
  EXPECT_THROW(argsort(x, 1), ShapeError);
  EXPECT_THROW(sort(x, 1), ShapeError);
  EXPECT_THROW(top_k(x, 1, 2), ShapeError);
  EXPECT_THROW(top_k(zeros({0, 1 << 20, 1 << 20}), {Axis(1), Axis(2)}, 2), ShapeError);
  EXPECT_THROW(range(kBeyond32, i32), ShapeError);
  EXPECT_THROW(range(kHuge, f32), ShapeError);
}

TEST(SizesTest, MergedLengthsDoNotWrapAround) {
  const Dim a("a", scalar(1 << 20)), b("b", scalar(1 << 20)), none("none", scalar(0));
  EXPECT_THROW(merge_dims(zeros({none, a, b}), {a, b}), ShapeError);
}

TEST(SizesTest, AnArrayOfTooManyElementsIsRefused) {
  const TensorType element(f32, {2});
  EXPECT_THROW(TensorArray(element, {.size = kBeyond32}), ShapeError);
  TensorArray grows(element, {.dynamic_size = true});
  EXPECT_THROW(grows.write(scalar(kBeyond32, i64), zeros({2})), IndexError);
}

TEST(SizesTest, RangesOfFloatsGoBeyondTheirExactIntegers) {
  const Tensor end = slice(range(20000000, f32), 0, -3);
  expect_values(end, {19999996, 19999998, 20000000}, 0);
}

}  // namespace
}  // namespace reel
