// transpose, reshape, rename, expand, slice, pad, reverse: the behaviour that is special to each,
// and its errors.
#include "reel/core/graph/graph_builder.h"
#include "reel/core/ops/control/replay.h"
#include "reel/tests/check.h"

namespace reel {
namespace {

/// Returns 0, 1, 2, ... in these dims.
Tensor counted(const Dims& dims) {
  std::int64_t count = 1;
  for (const Dim& dim : dims) count *= dim.size();
  return reshape(range(count, f32), dims);
}

/// batch=2, time[batch] with lengths 3 and 1: [[1, 2, 3], [4, -, -]].
class RaggedTest : public ::testing::Test {
 protected:
  const Dim batch{"batch", 2}, time{"time", tensor({3, 1}, {batch})};
  const Tensor x = tensor({1., 2., 3., 4., NAN, NAN}, {batch, time});
};

// ---- transpose ----------------------------------------------------------------------------------

TEST(TransposeTest, OrdersAxesByPositionOrDim) {
  const Dim batch("batch", 2), time("time", 3);
  const Tensor x = counted({batch, time});
  const Tensor y = transpose(x, {time, batch});
  EXPECT_EQ(str(y.type()), "f32[time=3,batch=2]");
  expect_values(y, {0, 3, 1, 4, 2, 5});
  expect_values(transpose(x, {-1, 0}), {0, 3, 1, 4, 2, 5});
  expect_values(transpose(counted({2, 2, 2}), {1, 2, 0}), {0, 4, 1, 5, 2, 6, 3, 7});
}

TEST(TransposeTest, EverySizeOfTileAndElementIsRight) {
  for (const DType dtype : {f32, f64, boolean})
    for (const auto& [rows, columns] :
         {std::pair{1, 7}, {3, 5}, {16, 16}, {17, 33}, {4, 70}, {67, 8}}) {
      const Tensor x = cast(mod(range(2 * rows * columns), 7), dtype);
      const Tensor y = transpose(reshape(x, {2, rows, columns}), {0, 2, 1});
      const std::vector<double> in = values_of(x), out = values_of(y);
      for (int b = 0; b < 2; ++b)
        for (int i = 0; i < rows; ++i)
          for (int j = 0; j < columns; ++j)
            ASSERT_EQ(out[(b * columns + j) * rows + i], in[(b * rows + i) * columns + j])
                << dtype << ' ' << rows << 'x' << columns;
    }
}

TEST(TransposeTest, WithoutMovementSharesStorage) {
  const Tensor x = counted({1, 3});
  EXPECT_EQ(transpose(x, {1, 0}).data<float>(), x.data<float>());
  EXPECT_EQ(transpose(x, {0, 1}).block(), x.block());
}

TEST(TransposeTest, ErrorsNameTheOrder) {
  const Tensor x = zeros({2, 3});
  EXPECT_EQ(message_of<ShapeError>([&] { transpose(x, {1}); }),
            "transpose: the order [1] does not list each axis of f32[2,3] once");
  EXPECT_EQ(message_of<ArgumentError>([&] {
              transpose(x, {1, 1});
            }),
            "transpose: axis 1 of f32[2,3] is named twice");
}

// ---- reshape ------------------------------------------------------------------------------------

TEST(ReshapeTest, SharesStorageAndFillsInOneSize) {
  const Tensor x = counted({2, 3});
  const Tensor y = reshape(x, {-1, 2});
  EXPECT_EQ(str(y.type()), "f32[3,2]");
  EXPECT_EQ(y.data<float>(), x.data<float>());
  EXPECT_EQ(str(reshape(zeros({0, 3}), {-1, 3}).type()), "f32[0,3]");
  EXPECT_EQ(str(reshape(scalar(1.), {1, 1}).type()), "f32[1,1]");
  EXPECT_EQ(str(reshape(ones({1}), {}).type()), "f32[]");
  const Dim batch("batch", 3), feature("feature", 2);
  EXPECT_EQ(str(reshape(x, {batch, feature}).type()), "f32[batch=3,feature=2]");
}

TEST(ReshapeTest, ErrorsCountElements) {
  const Tensor x = zeros({2, 3});
  EXPECT_EQ(message_of<ShapeError>([&] {
              reshape(x, {4, 2});
            }),
            "reshape: f32[2,3] has 6 elements, f32[4,2] has 8");
  const Dim rows("rows", 2), steps("steps", tensor({1, 3}, {rows}));
  EXPECT_EQ(message_of<ShapeError>([&] {
              reshape(zeros({2, 2}), {rows, steps});
            }),
            "reshape: f32[2,2] has 4 elements, f32[rows=2,steps[rows=2]] has 6; steps[rows=2] has "
            "3 positions, as its longest entry");
  EXPECT_EQ(message_of<ShapeError>([&] {
              reshape(x, {4, -1});
            }),
            "reshape: f32[2,3] has 6 elements, which [4,-1] cannot hold: the sizes given make 4");
  EXPECT_EQ(message_of<ShapeError>([&] {
              reshape(x, {-1, -1});
            }),
            "reshape: [-1,-1] leaves 2 sizes open; one may be -1");
  EXPECT_EQ(message_of<ShapeError>([&] {
              reshape(x, {-2, 3});
            }),
            "reshape: size -2 in [-2,3]; sizes are not negative, -1 aside");
}

TEST(ReshapeTest, ASizeMayBeKnownToARunOnly) {
  GraphBuilder builder("test");
  ModeScope scope(builder.scope());
  const Tensor x = builder.add_input(TensorType(f32, {Dim::unknown(), 4}));
  const Tensor y = reshape(x, {-1, 2});
  EXPECT_EQ(str(y.type()), "f32[?,2]");
  EXPECT_EQ(str(reshape(x, {3, 4}).type()), "f32[3,4]");
  const Ref<Graph> graph = builder.finish({y});
  ModeScope eager({});
  DimEnv env;
  EXPECT_EQ(str(replay(*graph, Tensors{zeros({3, 4})}, env)[0].type()), "f32[6,2]");
}

// ---- rename -------------------------------------------------------------------------------------

TEST(RenameTest, CallsAnAxisByAnotherDimOfItsSize) {
  const Dim batch("batch", 2), time("time", 3), step("step", 3);
  const Tensor x = counted({batch, time}), y = rename(x, time, step);
  EXPECT_EQ(str(y.type()), "f32[batch=2,step=3]");
  EXPECT_EQ(y.data<float>(), x.data<float>());
  EXPECT_EQ(str(rename(range(3), 0, time).type()), "i32[time=3]");
  EXPECT_EQ(str(rename(x, 1, Dim("frames")).type()), "f32[batch=2,frames=3]");  // a name alone
}

TEST(RenameTest, ErrorsGiveBothSizes) {
  const Dim batch("batch", 2), time("time", 3);
  const Tensor x = counted({batch, time});
  EXPECT_EQ(message_of<ShapeError>([&] { rename(x, time, Dim("step", 4)); }),
            "rename: dim step=4 has size 4, but axis time=3 of f32[batch=2,time=3] has size 3");
  EXPECT_EQ(message_of<ShapeError>([&] { rename(x, time, batch); }),
            "rename: axis time=3 of f32[batch=2,time=3] cannot be called batch=2, which is there "
            "already; make a second Dim");
}

// ---- expand -------------------------------------------------------------------------------------

TEST(ExpandTest, TheResultHasExactlyTheGivenDims) {
  const Dim batch("batch", 2), feature("feature", 2), time("time", 3);
  const Tensor x = counted({batch, feature});
  const Tensor y = expand(x, {feature, time, batch});
  EXPECT_EQ(str(y.type()), "f32[feature=2,time=3,batch=2]");
  expect_values(y, {0, 2, 0, 2, 0, 2, 1, 3, 1, 3, 1, 3});
  expect_values(expand(scalar(5.), {batch, time}), {5, 5, 5, 5, 5, 5});
  expect_values(expand(x, {feature, batch}), {0, 2, 1, 3});
  EXPECT_EQ(expand(x, {batch, feature}).block(), x.block());
}

TEST(ExpandTest, PlainSizesBroadcastAsInNumPy) {
  expect_values(expand(tensor({1, 2}), {3, 2}), {1, 2, 1, 2, 1, 2});
  expect_values(expand(tensor({{1}, {2}}), {2, 2, 3}), {1, 1, 1, 2, 2, 2, 1, 1, 1, 2, 2, 2});
  EXPECT_EQ(str(expand(scalar(1), {2, 1}).type()), "i32[2,1]");
  EXPECT_EQ(expand(ones({1, 3}), {0, 3}).numel(), 0);
}

TEST(ExpandTest, ErrorsNameTheDimThatDoesNotFit) {
  const Dim batch("batch", 2), feature("feature", 2);
  EXPECT_EQ(message_of<ShapeError>([&] { expand(zeros({batch}), {feature}); }),
            "expand: dim batch=2 of f32[batch=2] is not among [feature=2]; expand only adds dims, "
            "list those of the tensor "
            "too");
  EXPECT_EQ(message_of<ShapeError>([] {
              expand(zeros({2, 3}), {2, 4});
            }),
            "expand: axis 1 of f32[2,3] has size 3, which does not broadcast to [2,4]");
  EXPECT_EQ(message_of<ShapeError>([] {
              expand(zeros({2, 3}), {3});
            }),
            "expand: f32[2,3] has more axes than [3]");
  EXPECT_EQ(message_of<ShapeError>([&] {
              expand(zeros({2}), {batch, feature});
            }),
            "expand: f32[2] has plain sizes, [batch=2,feature=2] are named; give all axes names "
            "(reshape(x, dims)), or none");
}

// ---- slice --------------------------------------------------------------------------------------

TEST(SliceTest, TakesPositionsAsPythonDoes) {
  const Tensor x = range(5);
  expect_values(slice(x, 0, 1, 4), {1, 2, 3});
  expect_values(slice(x, 0, 3), {3, 4});
  expect_values(slice(x, 0, -2), {3, 4});
  expect_values(slice(x, 0, 0, -1), {0, 1, 2, 3});
  expect_values(slice(x, 0, -10, 10), {0, 1, 2, 3, 4});
  EXPECT_EQ(slice(x, 0, 4, 2).numel(), 0);
  expect_values(slice(counted({2, 3}), 1, 1), {1, 2, 4, 5});
}

TEST(SliceTest, AlongTheLeadingAxisSharesStorage) {
  const Tensor x = counted({3, 2});
  EXPECT_EQ(slice(x, 0, 1).data<float>(), x.data<float>() + 2);
  EXPECT_NE(slice(x, 1, 0, 1).data<float>(), x.data<float>());
}

TEST(SliceTest, ANamedAxisGetsAFreshDimOrTheGivenOne) {
  const Dim batch("batch", 2), time("time", 3), rest("rest", 2);
  const Tensor x = counted({batch, time});
  const Tensor y = slice(x, time, 1);
  EXPECT_EQ(str(y.type()), "f32[batch=2,time=2]");
  EXPECT_FALSE(y.dim("time") == time);
  EXPECT_EQ(slice(x, time, 1, {}, rest).dim(1), rest);
  EXPECT_EQ(str(slice(x, time, 1, {}, Dim("tail")).type()), "f32[batch=2,tail=2]");
  EXPECT_EQ(
      message_of<ShapeError>([&] { slice(x, time, 0, {}, rest); }),
      "slice: dim rest=2 has size 2, but [0:] of axis time=3 of f32[batch=2,time=3] has size 3");
}

TEST_F(RaggedTest, SliceShortensEveryEntry) {
  const Tensor tail = slice(x, time, 1);
  EXPECT_EQ(tail.dim("time").lengths().to_vector<int>(), (std::vector<int>{2, 0}));
  expect_values(mask_padding(tail), {2, 3, 0, 0});
  const Tensor head = slice(x, time, 0, 2);
  EXPECT_EQ(head.dim("time").lengths().to_vector<int>(), (std::vector<int>{2, 1}));
  expect_values(mask_padding(head), {1, 2, 4, 0});
}

TEST_F(RaggedTest, SliceCountsFromEachEntrysEnd) {
  const Tensor last = slice(x, time, -2);
  EXPECT_EQ(last.dim("time").lengths().to_vector<int>(), (std::vector<int>{2, 1}));
  expect_values(mask_padding(last), {2, 3, 4, 0});
  const Tensor init = slice(x, time, 0, -1);
  EXPECT_EQ(init.dim("time").lengths().to_vector<int>(), (std::vector<int>{2, 0}));
  expect_values(mask_padding(init), {1, 2, 0, 0});
  EXPECT_EQ(message_of<ShapeError>([&] { slice(zeros({time}), time, -2); }),
            "slice: [-2:] counts from the ends of time[batch=2], but f32[time[batch=2]] has no dim "
            "batch=2 that tells them "
            "apart; use positions that are not negative");
}

// ---- pad ----------------------------------------------------------------------------------------

TEST(PadTest, AddsElementsAtBothEnds) {
  expect_values(pad(tensor({1., 2.}), 0, 1, 2, 0.5), {0.5, 1, 2, 0.5, 0.5});
  expect_values(pad(tensor({{1, 2}, {3, 4}}), 1, 0, 1), {1, 2, 0, 3, 4, 0});
  expect_values(pad(zeros({0}, i64), 0, 1, 0, -3), {-3});
  const Dim batch("batch", 2);
  EXPECT_EQ(str(pad(zeros({batch}), batch, 1, 0).type()), "f32[batch=3]");
}

TEST(PadTest, ErrorsNameTheNumbers) {
  EXPECT_EQ(
      message_of<ArgumentError>([] { pad(zeros({2}), 0, -1, 0); }),
      "pad: cannot add -1 and 0 elements to axis 0 of f32[2]; use slice to take elements away");
  EXPECT_EQ(message_of<DTypeError>([] { pad(zeros({2}, i32), 0, 1, 0, 0.5); }),
            "pad: 0.5 does not fit i32[2], which holds no fractions");
  const Dim batch("batch", 2);
  EXPECT_EQ(message_of<ShapeError>([&] { pad(zeros({batch}), batch, 1, 1, 0, Dim("more", 3)); }),
            "pad: dim more=3 has size 3, but axis batch=2 of f32[batch=2] with 1 elements before "
            "and 1 behind it has size 4");
}

TEST_F(RaggedTest, PadAddsAtEachEntrysEnd) {
  const Tensor y = pad(x, time, 1, 1, 9);
  EXPECT_EQ(y.dim("time").lengths().to_vector<int>(), (std::vector<int>{5, 3}));
  expect_values(mask_padding(y), {9, 1, 2, 3, 9, 9, 4, 9, 0, 0});
}

// ---- reverse ------------------------------------------------------------------------------------

TEST(ReverseTest, RunsBackwards) {
  expect_values(reverse(range(4), 0), {3, 2, 1, 0});
  expect_values(reverse(counted({2, 2, 2}), 1), {2, 3, 0, 1, 6, 7, 4, 5});
  expect_values(reverse(counted({2, 3}), -1), {2, 1, 0, 5, 4, 3});
  EXPECT_EQ(reverse(zeros({0, 2}), 0).numel(), 0);
}

TEST_F(RaggedTest, ReverseStaysWithinEachLength) {
  expect_values(mask_padding(reverse(x, time)), {3, 2, 1, 4, 0, 0});
  const Tensor y = transpose(x, {time, batch});
  expect_values(mask_padding(reverse(y, time)), {3, 4, 2, 0, 1, 0});
  expect_values(reverse(tensor({1., 2., 3.}, {time}), time),
                {3, 2, 1});  // without its length dims it counts as full
}

TEST(BroadcastToTest, SpeaksForItself) {
  const Dim batch("batch", 2), time("time", 3);
  EXPECT_EQ(message_of<ShapeError>([] {
              broadcast_to(zeros({2}), {4, 3});
            }),
            "broadcast_to: axis 0 of f32[2] has size 2, which does not broadcast to [4,3]");
  EXPECT_EQ(message_of<ShapeError>([] {
              broadcast_to(zeros({2, 1}), {4});
            }),
            "broadcast_to: f32[2,1] has more axes than [4]");
  EXPECT_EQ(message_of<ShapeError>([&] { broadcast_to(zeros({batch}), Dims{time}); }),
            "broadcast_to: dim batch=2 of f32[batch=2] is not among [time=3]; broadcast_to only "
            "adds dims, list those of the tensor too");
  EXPECT_EQ(message_of<ShapeError>([&] {
              broadcast_to(zeros({batch}), {2, 3});
            }),
            "broadcast_to: f32[batch=2] has named dims, [2,3] are plain sizes; give all axes names "
            "(reshape(x, dims)), or none");
}

TEST(PadOfNoEntryTest, TheDimStaysEmpty) {
  const Dim batch("batch", 0), time("time", tensor(std::vector<int>{}, {batch}));
  const auto f = [](const Tensor& x) { return pad(x, x.dim("time"), 1, 2); };
  for (const Dims& dims : {Dims{batch, time}, Dims{time, batch}, Dims{time}}) {
    const Tensor x = zeros(dims);
    EXPECT_EQ(f(x).type().numel(), 0);
  }
}

TEST(ConcatOfNoEntryTest, TheDimStaysEmpty) {
  const Dim batch("batch", 0), one("one", 1), time("time", tensor(std::vector<int>{}, {batch}));
  EXPECT_EQ(concat({zeros({batch, one}), zeros({batch, time})}, 1).type().numel(), 0);
  EXPECT_EQ(concat({zeros({one}), zeros({time})}, 0).type().numel(), 0);
}

}  // namespace
}  // namespace reel
