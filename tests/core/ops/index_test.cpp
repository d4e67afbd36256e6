// gather, scatter_add: which dims go where, what is out of range, what padding may hold.
#include <limits>

#include "reel/tests/check.h"

namespace reel {
namespace {

TEST(GatherTest, PlainIndicesTakeThePlaceOfTheAxis) {
  const Tensor x = tensor({{1, 2}, {3, 4}, {5, 6}});
  expect_values(gather(x, tensor({2, 0}), 0), {5, 6, 1, 2});
  const Tensor y = gather(x, tensor({{1, 0, 0}}), 1);
  EXPECT_EQ(str(y.type()), "i32[3,1,3]");
  expect_values(y, {2, 1, 1, 4, 3, 3, 6, 5, 5});
  expect_values(gather(x, scalar(-1), 0), {5, 6});  // a scalar drops the axis
  expect_values(gather(x, scalar(1, i64), 1), {2, 4, 6});
  EXPECT_EQ(str(gather(x, zeros({0}, i32), 0).type()), "i32[0,2]");
}

TEST(GatherTest, NamedDimsOfTheIndicesThatXLacksTakeItsPlace) {
  const Dim batch("batch", 2), time("time", 2), classes("classes", 3), feature("feature", 2);
  const Tensor table = tensor({1., 2., 3., 4., 5., 6.}, {classes, feature});
  const Tensor y = gather(table, tensor({2, 0, 1, 1}, {batch, time}), classes);
  EXPECT_EQ(str(y.type()), "f32[batch=2,time=2,feature=2]");
  expect_values(y, {5, 6, 1, 2, 3, 4, 3, 4});
  const Tensor scores = transpose(table, {feature, classes});
  EXPECT_EQ(str(gather(scores, tensor({2, 0}, {batch}), classes).type()), "f32[feature=2,batch=2]");
}

TEST(GatherTest, NamedDimsThatXHasAreMatchedEntryByEntry) {
  const Dim batch("batch", 2), time("time", 3), feature("feature", 2);
  const Tensor x = tensor({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, {batch, time, feature});
  const Tensor last = gather(x, tensor({2, 0}, {batch}), time);
  EXPECT_EQ(str(last.type()), "i32[batch=2,feature=2]");
  expect_values(last, {5, 6, 7, 8});
  // A matched dim behind the axis.
  expect_values(gather(x, tensor({1, 0}, {feature}), time), {3, 2, 9, 8});
  // The dim of the axis itself stands for new places along it.
  const Tensor turned = gather(x, tensor({2, 1, 0}, {time}), time);
  EXPECT_EQ(turned.type(), x.type());
  expect_values(turned, {5, 6, 3, 4, 1, 2, 11, 12, 9, 10, 7, 8});
  // Both at once: back-references of a beam.
  const Dim beam("beam", 2);
  expect_values(gather(x, tensor({0, 2, 1, 1}, {batch, beam}), time), {1, 2, 5, 6, 9, 10, 9, 10});
}

TEST(GatherTest, AnIndexOutOfRangeIsAnErrorThatSaysWhere) {
  const Dim classes("classes", 3), batch("batch", 2), beam("beam", 2);
  EXPECT_EQ(message_of<IndexError>([&] {
              gather(zeros({classes}), tensor({0, 1, 2, 3}, {batch, beam}), classes);
            }),
            "gather: index 3 at [1,1] of i32[batch=2,beam=2] is out of range for axis 0 of "
            "f32[classes=3], which has size 3");
  EXPECT_EQ(message_of<IndexError>([] {
              gather(zeros({2, 3}), scalar(-4), 1);
            }),
            "gather: index -4 is out of range for axis 1 of f32[2,3], which has size 3");
  EXPECT_EQ(message_of<IndexError>([] { gather(zeros({0}), scalar(0), 0); }),
            "gather: index 0 is out of range for axis 0 of f32[0], which has size 0");
}

TEST(GatherTest, IndicesInPaddingMayBeAnything) {
  const Dim batch("batch", 2), time("time", tensor({2, 1}, {batch})), classes("classes", 2);
  const Tensor table = tensor({5., 6.}, {classes});
  expect_values(gather(table, tensor({1, 0, 1, 99}, {batch, time}), classes), {6, 5, 6, 0});
  const std::int64_t garbage = std::numeric_limits<std::int64_t>::min();
  expect_values(gather(table, tensor({1, 1, 0, garbage}, {time, batch}, i64), classes),
                {6, 6, 5, 0});
  // Without the dims of its lengths a dim counts as full.
  EXPECT_EQ(message_of<IndexError>([&] {
              gather(table, tensor({1, 99}, {time}), classes);
            }),
            "gather: index 99 at [1] of i32[time[batch=2]] is out of range for axis 0 of "
            "f32[classes=2], which has size 2");
}

TEST(GatherTest, ErrorsNameTheIndices) {
  const Dim batch("batch", 2);
  EXPECT_EQ(message_of<DTypeError>([] { gather(zeros({2}), zeros({1}), 0); }),
            "gather: indices must be i32 or i64, got f32[1]; cast them");
  EXPECT_EQ(message_of<ShapeError>([&] { gather(zeros({batch}), zeros({1}, i32), batch); }),
            "gather: indices i32[1] have plain sizes, f32[batch=2] has named dims; name the axes "
            "of both, or of none");
  EXPECT_EQ(message_of<ShapeError>([&] { gather(zeros({2}), zeros({batch}, i32), 0); }),
            "gather: indices i32[batch=2] have named dims, f32[2] has plain sizes; name the axes "
            "of both, or of none");
}

TEST(ScatterAddTest, AddsUpWhatMeets) {
  const Tensor y = scatter_add(ones({3}), tensor({0, 2, 0, -1}), tensor({1., 2., 3., 4.}), 0);
  expect_values(y, {5, 1, 7});
  expect_values(scatter_add(zeros({2, 3}, i32), tensor({1}), tensor({{5}, {6}}), 1),
                {0, 5, 0, 0, 6, 0});
  expect_values(scatter_add(zeros({2, 2}), scalar(1), tensor({5., 6.}), 0), {0, 0, 5, 6});
}

TEST(ScatterAddTest, LeavesItsArgumentsAsTheyWere) {
  const Tensor before = zeros({2}), updates = ones({2});
  expect_values(scatter_add(before, tensor({1, 1}), updates, 0), {0, 2});
  expect_values(before, {0, 0});
  // Updates of the result's type must not be taken for its buffer.
  expect_values(scatter_add(before, tensor({1, 1}), updates + updates, 0), {0, 4});
}

TEST(ScatterAddTest, UpdatesMayComeInAnyOrderOfNamedDims) {
  const Dim batch("batch", 2), classes("classes", 3), feature("feature", 2);
  const Tensor updates = tensor({1., 2., 3., 4.}, {feature, batch});
  const Tensor y =
      scatter_add(zeros({classes, feature}), tensor({2, 0}, {batch}), updates, classes);
  expect_values(y, {2, 4, 0, 0, 1, 3});
}

TEST(ScatterAddTest, PaddingIsNotAdded) {
  const Dim batch("batch", 2), time("time", tensor({2, 1}, {batch})), classes("classes", 2);
  const Tensor updates = tensor({1., 2., 4., NAN}, {batch, time});
  expect_values(
      scatter_add(zeros({classes}), tensor({0, 1, 0, 7}, {batch, time}), updates, classes), {5, 2});
  // Only the updates have both dims, and can tell what is padding.
  expect_values(scatter_add(zeros({batch, classes}), tensor({0, 1}, {time}), updates, classes),
                {1, 2, 4, 0});
  expect_values(scatter_add(zeros({time, classes}), tensor({0, 1}, {batch}),
                            transpose(updates, {time, batch}), classes),
                {1, 4, 2, 0});
}

TEST(ScatterAddTest, ErrorsSayWhatIsExpected) {
  EXPECT_EQ(
      message_of<ShapeError>([] {
        scatter_add(zeros({3, 2}), tensor({0, 1}), zeros({2}), 0);
      }),
      "scatter_add: updates are f32[2], but indices i32[2] along axis 0 of f32[3,2] take f32[2,2]");
  EXPECT_EQ(
      message_of<DTypeError>([] { scatter_add(zeros({3}), tensor({0}), zeros({1}, f64), 0); }),
      "scatter_add: dtypes differ: f64[1] cannot be added to f32[3]; cast one of them");
  EXPECT_EQ(message_of<DTypeError>(
                [] { scatter_add(zeros({3}, boolean), tensor({0}), zeros({1}, boolean), 0); }),
            "scatter_add: adds numbers, got boolean[3]; cast it to i32");
  EXPECT_EQ(message_of<IndexError>([] { scatter_add(zeros({3}), tensor({5}), zeros({1}), 0); }),
            "scatter_add: index 5 at [0] of i32[1] is out of range for axis 0 of f32[3], which has "
            "size 3");
}

}  // namespace
}  // namespace reel
