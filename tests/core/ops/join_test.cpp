// concat, stack, unstack, split: the behaviour that is special to each, and its errors.
#include "reel/core/graph/graph_builder.h"
#include "reel/core/ops/control/replay.h"
#include "reel/reel.h"
#include "reel/tests/check.h"

namespace reel {
namespace {

// ---- concat -------------------------------------------------------------------------------------

TEST(ConcatTest, JoinsAlongAnyAxis) {
  const Tensor a = tensor({{1, 2}, {3, 4}}), b = tensor({{5}, {6}});
  expect_values(concat({a, b}, 1), {1, 2, 5, 3, 4, 6});
  expect_values(concat({a, tensor({{7, 8}})}, 0), {1, 2, 3, 4, 7, 8});
  expect_values(concat({a, a}, -2), {1, 2, 3, 4, 1, 2, 3, 4});
  expect_values(concat({a, zeros({2, 0}, i32)}, 1), {1, 2, 3, 4});
}

// Short rows are joined some thousands at a time: 128 KiB of the result.
TEST(ConcatTest, JoinsAnyNumberOfShortRows) {
  for (const DType dtype : {f32, f64, i32, boolean})
    for (const std::int64_t rows : {1, 8191, 8192, 8193, 20'000}) {
      SCOPED_TRACE(::testing::Message() << rows << " rows");
      const Tensor left = cast(reshape(range(rows * 3) % 7, {rows, 3}), dtype);
      const Tensor right = cast(reshape(range(rows) % 5, {rows, 1}), dtype);
      const Tensor joined = concat({left, right}, 1);
      expect_same_bits(slice(joined, 1, 0, 3), left);
      expect_same_bits(slice(joined, 1, 3, 4), right);
    }
}

TEST(ConcatTest, NamedDimsMayComeInAnyOrder) {
  const Dim batch("batch", 2), left("feature", 1), right("feature", 2), all("feature", 3);
  const Tensor a = tensor({1, 2}, {batch, left}), b = tensor({3, 4, 5, 6}, {right, batch});
  const Tensor y = concat({a, b}, left);
  EXPECT_EQ(str(y.type()), "i32[batch=2,feature=3]");
  expect_values(y, {1, 3, 5, 2, 4, 6});
  EXPECT_EQ(concat({a, b}, left, all).dim(1), all);
  EXPECT_EQ(str(concat({a, a}, 1, Dim("pair")).type()), "i32[batch=2,pair=2]");
}

TEST(ConcatTest, RaggedEntriesFollowOneAnother) {
  const Dim batch("batch", 2), one("time", 1);
  const Dim time("time", tensor({2, 1}, {batch})), other("time", tensor({1, 2}, {batch}));
  const Tensor start = tensor({9., 8.}, {batch, one});
  const Tensor x = tensor({1., 2., 3., NAN}, {batch, time}),
               y = tensor({4., NAN, 5., 6.}, {batch, other});
  const Tensor longer = concat({start, x}, one);
  EXPECT_EQ(longer.dim("time").lengths().to_vector<int>(), (std::vector<int>{3, 2}));
  expect_values(mask_padding(longer), {9, 1, 2, 8, 3, 0});
  const Tensor with_end = concat({x, start}, time);
  EXPECT_EQ(with_end.dim("time").lengths().to_vector<int>(), (std::vector<int>{3, 2}));
  expect_values(mask_padding(with_end), {1, 2, 9, 3, 8, 0});
  const Tensor both = concat({x, y}, time);
  EXPECT_EQ(both.dim("time").lengths().to_vector<int>(), (std::vector<int>{3, 3}));
  expect_values(both, {1, 2, 4, 3, 5, 6});
  // Along a dim of one size the extents are joined, padding included.
  expect_values(
      cast(concat({cast(mask_padding(x), i32), cast(mask_padding(y), i32)}, time, Dim("time", 4)),
           f32),
      {1, 2, 4, 0, 3, 0, 5, 6});
}

TEST(ConcatTest, ErrorsNameBothTensors) {
  const Dim batch("batch", 2), other("other", 2);
  EXPECT_EQ(message_of<ShapeError>([] {
              concat({zeros({2, 3}), zeros({4, 2})}, 0);
            }),
            "concat: dims differ: tensor 0 is f32[2,3], tensor 1 is f32[4,2]; all dims but axis 0 "
            "of f32[2,3] must agree");
  EXPECT_EQ(message_of<ShapeError>([&] {
              concat({zeros({batch, Dim("a", 1)}), zeros({other, Dim("b", 1)})}, 1);
            }),
            "concat: dims differ: tensor 0 is f32[batch=2,a=1], tensor 1 is f32[other=2,b=1]; all "
            "dims but axis a=1 of f32[batch=2,a=1] must agree");
  EXPECT_EQ(message_of<DTypeError>([] {
              concat({zeros({2}), zeros({2}, i32)}, 0);
            }),
            "concat: dtypes differ: tensor 0 is f32[2], tensor 1 is i32[2]; cast one of them");
  EXPECT_EQ(message_of<ShapeError>([&] {
              concat({zeros({batch}), zeros({batch})}, batch, Dim("both", 3));
            }),
            "concat: dim both=3 has size 3, but the result along axis batch=2 of f32[batch=2] has "
            "size 4");
  EXPECT_EQ(message_of<ArgumentError>([] { concat({}, 0); }), "concat: takes at least one tensor");
}

// ---- stack --------------------------------------------------------------------------------------

TEST(StackTest, MakesANewDimInFront) {
  const Dim batch("batch", 2), slot("slot", 2), unit("unit", 1);
  const Tensor a = tensor({1, 2}, {batch}), b = tensor({3, 4}, {batch});
  EXPECT_EQ(str(stack({a, b}, slot).type()), "i32[slot=2,batch=2]");
  expect_values(stack({a, b}, slot), {1, 2, 3, 4});
  EXPECT_EQ(str(stack({a, b}, Dim("slot")).type()), "i32[slot=2,batch=2]");
  EXPECT_EQ(str(stack({scalar(1), scalar(2)}, slot).type()), "i32[slot=2]");
  // Dims in another order are the same dims.
  const Tensor c = tensor({1, 2}, {batch, unit}), d = tensor({3, 4}, {unit, batch});
  expect_values(stack({c, d}, slot), {1, 2, 3, 4});
}

TEST(StackTest, JoinsPlainTensorsAtAnyAxis) {
  const Tensor a = tensor({1, 2, 3}), b = tensor({4, 5, 6});
  expect_values(stack({a, b}), {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(str(stack({a, b}, 1).type()), "i32[3,2]");
  expect_values(stack({a, b}, 1), {1, 4, 2, 5, 3, 6});
  expect_values(stack({a, b}, -1), {1, 4, 2, 5, 3, 6});
  expect_values(stack({scalar(1), scalar(2)}), {1, 2});
}

TEST(StackTest, ErrorsNameTypesAndCount) {
  const Dim batch("batch", 2), slot("slot", 3);
  const Tensor x = zeros({batch}), plain = zeros({2});
  EXPECT_EQ(message_of<ShapeError>([&] {
              stack({x, x}, slot);
            }),
            "stack: dim slot=3 has size 3, but 2 tensors are stacked");
  EXPECT_EQ(message_of<ShapeError>([&] {
              stack({x, zeros({Dim("batch", 2)})}, Dim("slot", 2));
            }),
            "stack: dims differ: tensor 0 is f32[batch=2], tensor 1 is f32[batch=2]; all must have "
            "the same dims; the two called batch are not one Dim: use one Dim for both, as "
            "x.dim(\"batch\") gives it");
  EXPECT_EQ(message_of<ShapeError>([&] {
              stack({x, x}, 0);
            }),
            "stack: tensors of type f32[batch=2] have named dims; name the new one too, as in "
            "stack(tensors, Dim(\"name\", "
            "2))");
  EXPECT_EQ(message_of<ShapeError>([&] {
              stack({plain, plain, plain}, slot);
            }),
            "stack: tensors of type f32[2] have plain sizes, dim slot=3 is named; name their axes, "
            "or stack along an axis");
  EXPECT_EQ(message_of<ShapeError>([&] {
              stack({x, x}, batch);
            }),
            "stack: tensors of type f32[batch=2] have the dim batch=2 already");
  EXPECT_EQ(message_of<IndexError>([&] {
              stack({plain, plain}, 2);
            }),
            "stack: axis 2 is out of range for the result, which has 2 axes");
}

// ---- unstack ------------------------------------------------------------------------------------

TEST(UnstackTest, GivesViewsOfTheSlices) {
  const Dim batch("batch", 2), time("time", 3);
  const Tensor x = tensor({1, 2, 3, 4, 5, 6}, {time, batch});
  const Tensors steps = unstack(x, time);
  ASSERT_EQ(steps.size(), 3u);
  EXPECT_EQ(str(steps[1].type()), "i32[batch=2]");
  expect_values(steps[1], {3, 4});
  EXPECT_EQ(steps[2].data<int>(), x.data<int>() + 4);
  const Tensors columns = unstack(x, batch);
  ASSERT_EQ(columns.size(), 2u);
  expect_values(columns[1], {2, 4, 6});
  expect_values(stack(columns, Dim("batch")), {1, 3, 5, 2, 4, 6});
  EXPECT_TRUE(unstack(zeros({0, 2})).empty());
}

TEST(UnstackTest, ARaggedAxisShowsItsPaddingUnlessMasked) {
  const Dim batch("batch", 2), time("time", tensor({3, 1}, {batch}));
  const Tensor x = tensor({1., 2., 3., 4., 5., 6.}, {batch, time});
  const Tensors shown = unstack(x, time), masked = unstack(mask_padding(x), time);
  ASSERT_EQ(shown.size(), 3u);
  expect_values(shown[1], {2, 5});
  expect_values(masked[1], {2, 0});
  const auto loss = [&](const Tensor& x) { return sum(square(unstack(mask_padding(x), time)[1])); };
  expect_values(grad(loss)(x), {0, 4, 0, 0, 0, 0});
}

TEST(UnstackTest, TheCountMustBeKnown) {
  GraphBuilder builder("test");
  ModeScope scope(builder.scope());
  const Tensor x = builder.add_input(TensorType(f32, {Dim::unknown(), 2}));
  EXPECT_EQ(message_of<TraceError>([&] { unstack(x); }),
            "unstack: the size of axis 0 of f32[?,2] is not known while tracing; use scan to go "
            "through it, or a TensorArray");
  EXPECT_EQ(unstack(x, 1).size(), 2u);
  EXPECT_EQ(message_of<IndexError>([] { unstack(scalar(1)); }),
            "unstack: axis 0 is out of range for i32[], which has 0 axes");
}

// ---- split --------------------------------------------------------------------------------------

TEST(SplitTest, GivesEqualParts) {
  const Tensor x = tensor({{1, 2, 3, 4}, {5, 6, 7, 8}});
  const auto [a, b] = split<2>(x, 1);
  expect_values(a, {1, 2, 5, 6});
  expect_values(b, {3, 4, 7, 8});
  const Tensors rows = split(x, 0, 2);
  EXPECT_EQ(rows[1].data<int>(), x.data<int>() + 4);  // along the first axis: a view
}

TEST(SplitTest, NamedPartsShareADim) {
  const Dim batch("batch", 2), gate("gate", 4), hidden("hidden", 2);
  const Tensor x = zeros({batch, gate});
  EXPECT_EQ(split(x, gate, 2, hidden)[1].dim(1), hidden);
  const Tensors parts = split(x, gate, 4);
  EXPECT_EQ(str(parts[0].type()), "f32[batch=2,gate=1]");
  EXPECT_EQ(parts[0].type(), parts[3].type());
}

TEST(SplitTest, ErrorsGiveTheSize) {
  const Dim batch("batch", 2), gate("gate", 30), hidden("hidden", 8);
  const Tensor x = zeros({batch, gate});
  EXPECT_EQ(message_of<ShapeError>([&] { split(x, gate, 4, hidden); }),
            "split: axis gate=30 of f32[batch=2,gate=30] has size 30, which 4 parts do not divide");
  EXPECT_EQ(message_of<ShapeError>([&] { split(x, gate, 3, hidden); }),
            "split: dim hidden=8 has size 8, but each of 3 parts of axis gate=30 of "
            "f32[batch=2,gate=30] has size 10");
  EXPECT_EQ(
      message_of<ShapeError>([&] { split(x, gate, 15, batch); }),
      "split: f32[batch=2,gate=30] has the dim batch=2 already; make a second Dim for the parts");
  EXPECT_EQ(message_of<ArgumentError>([&] { split(x, gate, 0); }),
            "split: axis gate=30 of f32[batch=2,gate=30] cannot be split into 0 parts");
  const Dim time("time", tensor({2, 1}, {batch}));
  EXPECT_EQ(message_of<ShapeError>([&] {
              split(zeros({batch, time}), time, 2);
            }),
            "split: axis time[batch=2] of f32[batch=2,time[batch=2]] is ragged, so its entries "
            "have no equal parts; use "
            "slice, or give the dim of the parts to cut the extent");
}

TEST(JoinInTracesTest, ASizeMayBeKnownToARunOnly) {
  GraphBuilder builder("test");
  ModeScope scope(builder.scope());
  const Tensor x = builder.add_input(TensorType(f32, {Dim::unknown(), 2}));
  const Tensor both = concat({x, x}, 0), left = split(x, 0, 2)[0];
  EXPECT_EQ(str(both.type()), "f32[?,2]");
  EXPECT_EQ(str(left.type()), "f32[?,2]");
  const Ref<Graph> graph = builder.finish({both, left});
  ModeScope eager({});
  DimEnv env;
  const Tensors out = replay(*graph, Tensors{tensor({{1., 2.}, {3., 4.}})}, env);
  expect_values(out[0], {1, 2, 3, 4, 1, 2, 3, 4});
  expect_values(out[1], {1, 2});
  DimEnv other;
  EXPECT_EQ(message_of<ShapeError>([&] {
              replay(*graph, Tensors{zeros({3, 2})}, other);
            }),
            "split: axis 0 of f32[3,2] has size 3, which 2 parts do not divide");
}

}  // namespace
}  // namespace reel
