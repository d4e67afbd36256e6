#include <gtest/gtest.h>

#include "reel/core/base/errors.h"
#include "reel/core/graph/graph_builder.h"
#include "reel/core/ops.h"
#include "reel/core/ops/control/replay.h"
#include "reel/core/ops/elementwise/broadcast.h"
#include "reel/tests/check.h"

namespace reel {
namespace {

/// Returns 0, 1, 2, ... in these dims.
Tensor counted(const Dims& dims, DType dtype = f32) {
  std::int64_t size = 1;
  for (const Dim& dim : dims) size *= dim.size();
  return reshape(range(size, dtype), dims);
}

// ---- Values -------------------------------------------------------------------------------------

TEST(BroadcastTest, PlainDimsFollowNumPy) {
  expect_values(counted({2, 3}) + counted({3}), {0, 2, 4, 3, 5, 7});
  expect_values(counted({3}) + counted({2, 3}), {0, 2, 4, 3, 5, 7});
  expect_values(counted({2, 3}) * counted({2, 1}), {0, 0, 0, 3, 4, 5});
  const Tensor outer = counted({3, 1}) - counted({1, 2});
  EXPECT_EQ(str(outer.type()), "f32[3,2]");
  expect_values(outer, {0, -1, 1, 0, 2, 1});
  EXPECT_EQ(str((ones({1}) + ones({})).type()), "f32[1]");
  EXPECT_EQ(str((ones({1, 1}) + ones({1})).type()), "f32[1,1]");
  EXPECT_EQ(str((ones({0, 3}) + ones({1, 3})).type()), "f32[0,3]");
  EXPECT_EQ(str((ones({2, 0}) < ones({2, 1})).type()), "boolean[2,0]");
}

TEST(BroadcastTest, NamedDimsMatchWhateverTheirOrder) {
  const Dim batch("batch", 2), feature("feature", 3);
  const Tensor a = counted({batch, feature}), b = counted({feature, batch}),
               bias = counted({feature});
  const Tensor sum = a + b;
  EXPECT_EQ(str(sum.type()), "f32[batch=2,feature=3]");
  expect_values(sum, {0, 3, 6, 4, 7, 10});
  EXPECT_EQ(str((b + a).type()), "f32[feature=3,batch=2]");
  expect_values(bias + b, {0, 1, 3, 4, 6, 7});
  EXPECT_EQ(str((bias + b).type()), "f32[feature=3,batch=2]");
  expect_values(a - 1.0, {-1, 0, 1, 2, 3, 4});
  expect_values(scalar(1.0) - a, {1, 0, -1, -2, -3, -4});
}

// Every order and subset of the dims must agree with indexing by hand. Sizes include short rows,
// whole vectors, and more than one chunk of gathered operands.
TEST(BroadcastTest, AnyOrderAndSubsetOfNamedDims) {
  for (const std::int64_t size : {1, 3, 9, 40}) {
    const Dim x("x", 2), y("y", size), z("z", 11);
    const Dims all = {x, y, z};
    const std::vector<Dims> others = {
        {x, y, z}, {x, z, y}, {y, x, z}, {y, z, x}, {z, x, y}, {z, y, x}, {x, y}, {y, x},
        {x, z},    {z, x},    {y, z},    {z, y},    {x},       {y},       {z},    {}};
    const Tensor a = counted(all, i32);
    for (const Dims& dims : others) {
      const Tensor b = counted(dims, i32);
      std::vector<double> expected;
      for (std::int64_t i = 0; i < 2; ++i)
        for (std::int64_t j = 0; j < size; ++j)
          for (std::int64_t k = 0; k < 11; ++k) {
            std::int64_t at = 0;
            for (const Dim& dim : dims) at = at * dim.size() + (dim == x ? i : dim == y ? j : k);
            expected.push_back(static_cast<double>((i * size + j) * 11 + k - 1000 * at));
          }
      expect_values(a - 1000 * b, expected, 0);
      expect_values(where(a == a, a - 1000 * b, b), expected, 0);
      expect_values(cast(a, f64) - 1000 * cast(b, f64), expected, 0);
    }
  }
}

TEST(BroadcastTest, ManyAxesOfWhichNoneMerge) {
  const Tensor a = counted({2, 1, 2, 1, 9}, f64), b = counted({1, 3, 1, 2, 1}, f64);
  const Tensor sum = a + b;
  EXPECT_EQ(str(sum.type()), "f64[2,3,2,2,9]");
  std::vector<double> expected;
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 3; ++j)
      for (int k = 0; k < 2; ++k)
        for (int l = 0; l < 2; ++l)
          for (int m = 0; m < 9; ++m) expected.push_back((i * 2 + k) * 9 + m + j * 2 + l);
  expect_values(sum, expected, 0);
}

// ---- Errors -------------------------------------------------------------------------------------

TEST(BroadcastTest, OneOperandMustHaveAllDims) {
  const Dim batch("batch", 3), feature("feature", 4);
  EXPECT_EQ(message_of<ShapeError>([&] { return ones({feature}) + ones({batch}); }),
            "add: dims differ: lhs f32[feature=4] lacks batch=3, rhs f32[batch=3] lacks feature=4; "
            "each lacks a dim of the "
            "other, but one operand must have all dims of the result: give it the missing ones "
            "with expand");
}

TEST(BroadcastTest, DimsOfOneNameAreNotOneDim) {
  const Dim batch("batch", 2), first("time", 3), second("time", 3);
  EXPECT_EQ(message_of<ShapeError>([&] {
              return ones({first, batch}) * ones({second, batch});
            }),
            "mul: dims differ: lhs f32[time=3,batch=2] lacks time=3, rhs f32[time=3,batch=2] lacks "
            "time=3; each lacks a dim of "
            "the other, but one operand must have all dims of the result: give it the missing ones "
            "with expand; the two called time are not one Dim: use one Dim for both, as "
            "x.dim(\"time\") gives it");
}

TEST(BroadcastTest, NamedAndPlainDimsDoNotMeet) {
  const Dim batch("batch", 3);
  EXPECT_EQ(message_of<ShapeError>([&] { return ones({3}) + ones({batch}); }),
            "add: named and plain dims meet: lhs f32[3], rhs f32[batch=3]; name the dims of lhs: "
            "make it with them, e.g. "
            "tensor(..., {batch}), or reshape(lhs, {batch})");
}

TEST(BroadcastTest, PlainSizesMustFit) {
  EXPECT_EQ(message_of<ShapeError>([] {
              return ones({3, 4}) + ones({3});
            }),
            "add: sizes differ: lhs f32[3,4], rhs f32[3]; axis -1 has sizes 4 and 3, which must be "
            "equal, or one of them 1");
}

// ---- Sizes that a trace does not know -----------------------------------------------------------

TEST(BroadcastTest, KnownSizesDecideUnknownOnes) {
  GraphBuilder builder("f");
  ModeScope scope(builder.scope());
  const Dim unknown = Dim::unknown(), other = Dim::unknown();
  const auto dims_of_sum = [&](const Dims& a, const Dims& b) {
    return add(builder.add_input({f32, a}), builder.add_input({f32, b})).dims();
  };
  EXPECT_EQ(dims_of_sum({unknown}, {3}), Dims{3});
  EXPECT_EQ(dims_of_sum({3}, {unknown}), Dims{3});
  EXPECT_EQ(dims_of_sum({unknown}, {1}), Dims{unknown});
  EXPECT_EQ(dims_of_sum({1}, {unknown}), Dims{unknown});
  EXPECT_EQ(dims_of_sum({unknown}, {unknown}), Dims{unknown});
  EXPECT_EQ(dims_of_sum({unknown}, {other}), Dims{unknown});
  EXPECT_EQ(dims_of_sum({2, unknown}, {}), (Dims{2, unknown}));
}

// ---- The reverse --------------------------------------------------------------------------------

TEST(BroadcastTest, UnbroadcastSumsRepeatedElements) {
  const Tensor g = counted({2, 3});
  expect_values(unbroadcast(g, {f32, {3}}), {3, 5, 7});
  expect_values(unbroadcast(g, {f32, {2, 1}}), {3, 12});
  EXPECT_EQ(str(unbroadcast(g, {f32, {2, 1}}).type()), "f32[2,1]");
  expect_values(unbroadcast(g, {f32, {}}), {15});
  EXPECT_EQ(unbroadcast(g, {f32, {2, 3}}).block(), g.block());
}

TEST(BroadcastTest, UnbroadcastRestoresTheOrderOfNamedDims) {
  const Dim x("x", 2), y("y", 3), z("z", 2);
  const TensorType to(f32, {y, x});
  const Tensor result = unbroadcast(counted({x, y, z}), to);
  EXPECT_EQ(result.type(), to);
  expect_values(result, {1, 13, 5, 17, 9, 21});
}

TEST(BroadcastTest, UnbroadcastLeavesPaddingOut) {
  const Dim batch("batch", 2), time("time", tensor(std::vector<std::int32_t>{3, 1}, {batch}));
  const Tensor g = tensor({1., 2., 3., 4., std::nan(""), std::nan("")}, {batch, time}, f32);
  expect_values(unbroadcast(g, {f32, {batch}}), {6, 4});
  expect_values(unbroadcast(g, {f32, {}}), {10});
}

TEST(BroadcastTest, AnAxisOfUnknownSizeIsSummedWhenTheRunFindsItRepeated) {
  const Dim unknown = [] {
    GraphBuilder builder("dims");
    ModeScope scope(builder.scope());
    return Dim::unknown();
  }();
  const RecordedGraph f =
      record_graph("f", {{f32, {unknown, 3}}, {f32, {4, 3}}},
                   [](const Tensors& x) { return Tensors{unbroadcast(x[1], x[0].type())}; });
  for (const std::int64_t size : {1, 4}) {
    DimEnv env;
    const Tensors inputs = {zeros({size, 3}), ones({4, 3})};
    const Tensor result = replay(*f.graph, inputs, env)[0];
    EXPECT_EQ(result.type(), inputs[0].type());
    expect_values(result, std::vector<double>(3 * size, 4.0 / static_cast<double>(size)));
  }
}

}  // namespace
}  // namespace reel
