// tensor, scalar, zeros, ones, full, zeros_like, range, one_hot.
#include <array>
#include <limits>
#include <numeric>
#include <span>
#include <string>

#include "reel/core/graph/graph_builder.h"
#include "reel/core/ops/control/replay.h"
#include "reel/tests/check.h"

namespace reel {
namespace {

TEST(TensorFromListsTest, TakesSizesAndDtypeFromTheLists) {
  EXPECT_EQ(str(tensor({{1., 2.}, {3., 4.}, {5., 6.}}).type()), "f32[3,2]");
  EXPECT_EQ(str(tensor({1, 2}).type()), "i32[2]");
  EXPECT_EQ(str(tensor({true, false}).type()), "boolean[2]");
  EXPECT_EQ(str(tensor({1, 2.5}).type()), "f32[2]");
  EXPECT_EQ(str(tensor({true, 2}).type()), "i32[2]");
  EXPECT_EQ(str(tensor({}).type()), "f32[0]");
  EXPECT_EQ(str(tensor({{{}, {}}}).type()), "f32[1,2,0]");
  expect_values(tensor({{1, 2.5}, {true, -3}}), {1, 2.5, 1, -3});
}

TEST(TensorFromListsTest, ANumberBecomesAScalarAndAListOfOneDoesNot) {
  EXPECT_EQ(str(tensor(0.5f)), "f32[] 0.5");
  EXPECT_EQ(str(tensor(3)), "i32[] 3");
  EXPECT_EQ(str(tensor(3, f64)), "f64[] 3.0");
  EXPECT_EQ(str(tensor(true)), "boolean[] True");
  EXPECT_EQ(tensor({3}).type(), TensorType(i32, {1}));
}
TEST(TensorFromListsTest, TheNamedTypeIsTheElementsAndAListOfOneStaysAList) {
  EXPECT_EQ(str(tensor<std::int64_t>({2})), "i64[1] [2]");
  EXPECT_EQ(str(tensor<float>({2})), "f32[1] [2.]");
  EXPECT_EQ(str(tensor<float>({1, 2})), "f32[2] [1. 2.]");
  EXPECT_EQ(str(tensor<double>({{1, 2}, {3, 4}}).type()), "f64[2,2]");
  EXPECT_EQ(str(tensor<float>({}).type()), "f32[0]");
  EXPECT_EQ(str(tensor<bool>({1}).type()), "boolean[1]");
  EXPECT_EQ(str(tensor<std::uint8_t>({7}).type()), "i32[1]");
  EXPECT_EQ(str(tensor<float>({1, 2}, {Dim("n")}).type()), "f32[n=2]");
  EXPECT_EQ(str(tensor<float>({1, 2}, f64).type()), "f64[2]");
  EXPECT_EQ(str(tensor<float>(std::vector<float>{1}).type()), "f32[1]");
  EXPECT_EQ(str(tensor<float>(2)), "f32[] 2.0");
  EXPECT_EQ(tensor<double>(0.1).item<double>(), 0.1);
  EXPECT_EQ(str(tensor<float>(2, i32)), "i32[] 2");
  EXPECT_EQ(message_of<DTypeError>([] { tensor<int>({0.5}); }),
            "tensor: 0.5 does not fit i32, which holds integers; give a dtype of f32 or f64");
}
TEST(TensorFromListsTest, KeepsNumbersExactlyUntilTheDtypeIsKnown) {
  EXPECT_EQ(tensor({0.1}, {}, f64).item<double>(), 0.1);
  EXPECT_EQ(tensor({0.1}, f64).item<double>(), 0.1);
  EXPECT_EQ(tensor({{1, 2}, {3, 4}}, f64).type(), TensorType(f64, {2, 2}));
  EXPECT_EQ(tensor({1, 2}, {}).dtype(), i32);
  EXPECT_EQ(tensor(std::vector<int>{1, 2}, f64).type(), TensorType(f64, {2}));
  EXPECT_EQ(scalar(0.1, f64).item<double>(), 0.1);
  const std::int64_t big = (std::int64_t{1} << 62) + 1;
  EXPECT_EQ(tensor({big}, {}, i64).item<std::int64_t>(), big);
  EXPECT_EQ(full({}, big, i64).item<std::int64_t>(), big);
}

TEST(TensorFromListsTest, AFlatListFillsAnyDims) {
  const Dim batch("batch", 2), time("time", tensor({3, 1}, {batch}));
  expect_values(tensor({1, 2, 3, 4, 5, 6}, {2, 3}), {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(str(tensor({1., 2., 3., 4., 5., 6.}, {batch, time}).type()),
            "f32[batch=2,time[batch=2]]");
  EXPECT_EQ(str(tensor({{1., 2., 3.}, {4., 5., 6.}}, {batch, time}).type()),
            "f32[batch=2,time[batch=2]]");
  EXPECT_EQ(message_of<ShapeError>([] {
              tensor({1, 2, 3, 4, 5}, {2, 3});
            }),
            "tensor: 5 values given for i32[2,3], which has 6 elements");
  EXPECT_EQ(message_of<ShapeError>([&] {
              tensor({{1, 2}, {3, 4}, {5, 6}}, {batch, time});
            }),
            "tensor: lists nested as [3,2] do not fit i32[batch=2,time[batch=2]]; nest them as the "
            "dims, or give one flat "
            "list");
}

TEST(TensorFromListsTest, RefusesUnevenListsAndNumbersThatDoNotFit) {
  EXPECT_EQ(message_of<ShapeError>([] {
              tensor({{1, 2}, {3}});
            }),
            "tensor: the lists are uneven: one of 1 items stands beside one of 2");
  EXPECT_EQ(message_of<ShapeError>([] {
              tensor({1, {2, 3}});
            }),
            "tensor: the lists are uneven: a number stands beside a list");
  EXPECT_EQ(message_of<ShapeError>([] {
              tensor({{1, 2}, 3});
            }),
            "tensor: the lists are uneven: a number stands beside a list");
  EXPECT_EQ(message_of<DTypeError>([] {
              tensor({1, 2.5}, {}, i32);
            }),
            "tensor: 2.5 does not fit i32, which holds integers; give a dtype of f32 or f64");
  EXPECT_EQ(message_of<DTypeError>([] { tensor({std::int64_t{3000000000}}); }),
            "tensor: 3000000000 does not fit i32; give the dtype i64");
  EXPECT_EQ(message_of<DTypeError>([] { scalar(2, boolean); }),
            "scalar: 2 is no boolean; give true or false, 1 or 0");
  EXPECT_EQ(message_of<ArgumentError>([] {
              scalar({1, 2});
            }),
            "scalar: takes one number, not a list; use tensor() for lists");
}

TEST(TensorFromSpanTest, CopiesTheNumbers) {
  std::array<float, 4> numbers{1, 2, 3, 4};
  const Tensor x = tensor(std::span(numbers), {2, 2});
  const Tensor part = tensor(std::span<const float>(numbers).subspan(1, 2));
  numbers[1] = 9;
  EXPECT_EQ(x.type(), TensorType(f32, {2, 2}));
  expect_values(x, {1, 2, 3, 4});
  expect_values(part, {2, 3});
  const bool flags[] = {true, false};
  expect_values(tensor(std::span(flags)), {1, 0});
  const std::int64_t integers[] = {1, 2};
  EXPECT_EQ(tensor(std::span(integers), {}, f64).dtype(), f64);
  EXPECT_EQ(tensor(std::span<double>()).type(), TensorType(f64, {0}));
  EXPECT_EQ(message_of<ShapeError>([&] { return tensor(std::span(numbers), {3}); }),
            "tensor: 4 values given for f32[3], which has 3 elements");
}

TEST(TensorFromSpanTest, TakesArrays) {
  EXPECT_EQ(str(tensor(std::array<double, 2>{1, 2})), "f64[2] [1. 2.]");
  EXPECT_EQ(str(tensor(std::array{1, 2, 3, 4}, {2, 2}, f32).type()), "f32[2,2]");
}

TEST(TensorFromVectorTest, KeepsTheElementType) {
  EXPECT_EQ(tensor(std::vector<double>{0.1}).to_vector<double>(), std::vector<double>{0.1});
  EXPECT_EQ(tensor(std::vector<float>{1, 2}).dtype(), f32);
  EXPECT_EQ(tensor(std::vector<std::int64_t>{1}).dtype(), i64);
  EXPECT_EQ(tensor(std::vector<bool>{true, false}).to_vector<bool>(),
            (std::vector<bool>{true, false}));
  EXPECT_EQ(tensor(std::vector<int>{1, 2}, {}, f64).to_vector<double>(),
            (std::vector<double>{1, 2}));
  EXPECT_EQ(message_of<DTypeError>([] { tensor(std::vector<double>{0.5}, {}, i32); }),
            "tensor: 0.5 does not fit i32, which holds integers; give a dtype of f32 or f64");
  EXPECT_EQ(message_of<ShapeError>([] {
              tensor(std::vector<float>(5), {2, 3});
            }),
            "tensor: 5 values given for f32[2,3], which has 6 elements");
}

TEST(TensorFromVectorTest, IntegersOfOtherTypesBecomeThoseThatHoldThem) {
  EXPECT_EQ(str(tensor(std::vector<std::uint8_t>{1, 255}).type()), "i32[2]");
  EXPECT_EQ(str(tensor(std::vector<std::int16_t>{-1}).type()), "i32[1]");
  EXPECT_EQ(str(tensor(std::vector<unsigned>{4'000'000'000}).type()), "i64[1]");
  const Tensor x = tensor(std::vector<long long>{1LL << 40, -7});
  EXPECT_EQ(str(x.type()), "i64[2]");
  EXPECT_EQ(x.to_vector<std::int64_t>(), (std::vector<std::int64_t>{1LL << 40, -7}));
  const std::vector<std::uint8_t> pixels{0, 255};
  EXPECT_EQ(tensor(std::span(pixels), {}, f32).to_vector<float>(), (std::vector<float>{0, 255}));
  EXPECT_EQ(tensor(std::vector<unsigned>{4'000'000'000}).item<std::int64_t>(), 4'000'000'000);
  // A number that no dtype can hold does not compile.
  static_assert(!TensorElement<std::uint64_t> && !TensorElement<long double>);
  static_assert(!TensorElement<std::string>);
}

TEST(TensorFromListsTest, TheNumbersTellTheSizeOfADimThatIsOnlyAName) {
  const Dim batch("batch", 2), time("time", tensor({3, 1}, {batch}));
  EXPECT_EQ(str(tensor({1, 2, 3}, {Dim("n")}).type()), "i32[n=3]");
  EXPECT_EQ(str(tensor(std::vector<float>{1, 2, 3, 4}, {batch, Dim("n")}).type()),
            "f32[batch=2,n=2]");
  EXPECT_EQ(str(tensor({1, 2, 3, 4, 5, 6}, {Dim("n"), time}).type()), "i32[n=2,time[batch=2]]");
  EXPECT_EQ(str(tensor({{1, 2, 3}, {4, 5, 6}}, {Dim("a"), Dim("b")}).type()), "i32[a=2,b=3]");
  EXPECT_EQ(str(tensor({}, {Dim("n")}).type()), "f32[n=0]");
  EXPECT_EQ(message_of<ShapeError>([&] {
              tensor({1, 2, 3}, {batch, Dim("n")});
            }),
            "tensor: 3 values in one list do not tell the sizes of i32[batch=2,n]; give sizes to "
            "all dims but one, or nest the lists");
  EXPECT_EQ(message_of<ShapeError>([] {
              tensor({1, 2, 3}, {Dim("a"), Dim("b")});
            }),
            "tensor: 3 values in one list do not tell the sizes of i32[a,b]; give sizes to all "
            "dims but one, or nest the lists");
  EXPECT_EQ(message_of<ShapeError>([] {
              tensor({{1, 2, 3}}, {Dim("a")});
            }),
            "tensor: lists nested as [1,3] do not fit i32[a]; nest them as the dims, or give one "
            "flat list");
}

TEST(ScalarTest, AnIntegerIsI32AndAFractionF32) {
  EXPECT_EQ(str(scalar(3)), "i32[] 3");
  EXPECT_EQ(str(scalar(0.5)), "f32[] 0.5");
  EXPECT_EQ(str(scalar(3, f64)), "f64[] 3.0");
  EXPECT_EQ(str(scalar(4.0, i64)), "i64[] 4");
}

TEST(FullTest, FillsAnyTypeWithAnyNumber) {
  const Dim batch("batch", 2);
  EXPECT_EQ(str(zeros({}).type()), "f32[]");
  expect_values(zeros({2, 2}, i32), {0, 0, 0, 0});
  expect_values(ones({batch}, boolean), {1, 1});
  expect_values(full({batch}, 2.5), {2.5, 2.5});
  expect_values(full({100}, -1, i64), std::vector<double>(100, -1));
  expect_values(zeros(TensorType(f64, {batch})), {0, 0});
  EXPECT_EQ(zeros({0, 3}).numel(), 0);
  EXPECT_EQ(message_of<DTypeError>([] { full({2}, 0.5, i32); }),
            "full: 0.5 does not fit i32, which holds integers; give a dtype of f32 or f64");
  EXPECT_EQ(message_of<ShapeError>([] { zeros({Dim("time")}); }),
            "zeros: f32[time]: dim time is undefined; give it a size or lengths");
  EXPECT_EQ(message_of<ShapeError>([] {
              zeros({unknown, 2});
            }),
            "zeros: f32[?,2] has an axis of unknown size; give every dim a size");
}

TEST(FullTest, LikeAnotherTensor) {
  const Tensor x = full({Dim("batch", 2)}, 7, i64);
  EXPECT_EQ(zeros_like(x).type(), x.type());
  expect_values(zeros_like(x), {0, 0});
  expect_values(ones_like(x), {1, 1});
}

TEST(RangeTest, ElementsOfEveryDTypeAreTheirPositions) {
  for (const DType dtype : {f32, f64, i32, i64})
    for (std::int64_t count = 0; count < 40; ++count) {
      std::vector<double> expected(static_cast<std::size_t>(count));
      std::iota(expected.begin(), expected.end(), 0);
      expect_values(range(count, dtype), expected, 0);
    }
}

/// From 2^24 on, not every integer is an f32.
TEST(RangeTest, LargeFloatsAreRoundedOneByOne) {
  constexpr std::int64_t kExact = 1 << 24;
  const Tensor ends = slice(range(kExact + 8, f32), 0, kExact - 1);
  for (std::int64_t i = 0; i < 9; ++i)
    EXPECT_EQ(ends.data<float>()[i], static_cast<float>(kExact - 1 + i)) << i;
}

TEST(RangeTest, CountsFromZero) {
  const Dim time("time", tensor({2, 3}, {Dim("batch", 2)}));
  EXPECT_EQ(str(range(3)), "i32[3] [0 1 2]");
  EXPECT_EQ(str(range(Dim("width", 2), f64)), "f64[width=2] [0. 1.]");
  expect_values(range(time), {0, 1, 2});  // to the extent
  EXPECT_EQ(range(0).numel(), 0);
  EXPECT_EQ(message_of<DTypeError>([] { range(3, boolean); }),
            "range: positions along 3 are numbers, not boolean");
}

TEST(OneHotTest, ClassesBecomeTheLastDim) {
  const Dim batch("batch", 3), classes("classes", 2);
  const Tensor hot = one_hot(tensor({1, 0, 1}, {batch}), classes);
  EXPECT_EQ(str(hot.type()), "f32[batch=3,classes=2]");
  expect_values(hot, {0, 1, 1, 0, 0, 1});
  expect_values(one_hot(scalar(2), 4, i32), {0, 0, 1, 0});
}

TEST(OneHotTest, AnIndexOutOfRangeGivesZeros) {
  expect_values(one_hot(tensor({-1, 2, 0}, {}, i64), 2, f64), {0, 0, 0, 0, 1, 0});
}

TEST(OneHotTest, ErrorsNameIndicesAndClasses) {
  const Dim classes("classes", 2);
  EXPECT_EQ(message_of<DTypeError>([&] { one_hot(zeros({3}), 2); }),
            "one_hot: indices must be integers, got f32[3]; cast them to i32");
  EXPECT_EQ(message_of<ShapeError>([&] { one_hot(zeros({classes}, i32), classes); }),
            "one_hot: indices i32[classes=2] have the dim classes=2 of the classes already");
}

TEST(CreationInTracesTest, NumbersAreRecordedAndNotCaptured) {
  const RecordedGraph recorded = record_graph("f", {TensorType(f32, {2})}, [](const Tensors& in) {
    return Tensors{tensor({{1, 2}, {3, 4}}), scalar(0.5), zeros_like(in[0]),
                   tensor(std::vector<double>{7, 8}), range(2)};
  });
  EXPECT_EQ(recorded.captured.size(), 0u);
  EXPECT_EQ(str(*recorded.graph),
            "f(%0: f32[2]) {\n"
            "  %1: i32[2,2] = constant() {type=i32[2,2], data=i32[4] [1 2 3 4]}\n"
            "  %2: f32[] = full() {type=f32[], number=0.5, integer=0}\n"
            "  %3: f32[2] = full() {type=f32[2], number=0, integer=0}\n"
            "  %4: f64[2] = constant() {type=f64[2], data=f64[2] [7. 8.]}\n"
            "  %5: i32[2] = range() {dim=2, dtype=i32}\n"
            "  return %1, %2, %3, %4, %5\n"
            "}\n");
  DimEnv env;
  const Tensors out = replay(*recorded.graph, Tensors{zeros({2})}, env);
  expect_values(out[0], {1, 2, 3, 4});
  expect_values(out[1], {0.5});
  expect_values(out[2], {0, 0});
  expect_values(out[3], {7, 8});
}

TEST(FullTest, TakesTheLeastIntegerAsADouble) {
  EXPECT_EQ(full({}, -0x1p63, i64).item<std::int64_t>(), std::numeric_limits<std::int64_t>::min());
  // max puts this number into padding.
  const Dim batch("batch", 2), time("time", tensor({2, 1}, {batch}));
  expect_values(max(tensor({-3, -2, -1, 9}, {batch, time}, i64), time), {-2, -1});
}

TEST(CreationTest, UnsignedNumbersThatI64CannotHoldAreNoIntegers) {
  constexpr std::uint64_t kHuge = ~std::uint64_t{0};
  expect_values(tensor({1., 2.}) + kHuge, {0x1p64, 0x1p64});
  EXPECT_THROW(tensor({1, 2}, {}, i64) + kHuge, DTypeError);
  EXPECT_THROW(tensor({kHuge}, {}, i64), DTypeError);
  EXPECT_THROW(full({2}, kHuge, i64), DTypeError);
  EXPECT_THROW(less(tensor({-7, 0}), kHuge), DTypeError);
}

}  // namespace
}  // namespace reel
