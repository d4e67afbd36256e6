// gather: the order of dims, indices out of range, arbitrary padding.
#include <limits>

#include "reel/tests/modes.h"

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
  // Indices along the axis's own dim give new places along it.
  const Tensor turned = gather(x, tensor({2, 1, 0}, {time}), time);
  EXPECT_EQ(turned.type(), x.type());
  expect_values(turned, {5, 6, 3, 4, 1, 2, 11, 12, 9, 10, 7, 8});
  // Both at once: the back references of a beam.
  const Dim beam("beam", 2);
  expect_values(gather(x, tensor({0, 2, 1, 1}, {batch, beam}), time), {1, 2, 5, 6, 9, 10, 9, 10});
}

/// Returns [0, 1, 2, ...] of the dtype, with these sizes.
Tensor counted(const std::vector<std::int64_t>& sizes, DType dtype) {
  std::int64_t count = 1;
  for (const std::int64_t size : sizes) count *= size;
  return reshape(cast(range(count), dtype), Dims(sizes.begin(), sizes.end()));
}

TEST(GatherTest, RunsOfAnyLengthAreTaken) {
  // Runs of 4 to 256 bytes; the kernel copies some sizes by code of their own.
  for (const DType dtype : {f32, f64})
    for (const DType of_indices : {i32, i64})
      for (const std::int64_t width : {1, 2, 3, 4, 8, 16, 32, 33}) {
        const Tensor x = counted({5, width}, dtype);
        const Tensor y = gather(x, tensor({4, -1, 0, 2, -5, 3, 3}, {7}, of_indices), 0);
        std::vector<double> expected;
        for (const std::int64_t row : {4, 4, 0, 2, 0, 3, 3})
          for (std::int64_t i = 0; i < width; ++i)
            expected.push_back(static_cast<double>(row * width + i));
        expect_values(y, expected);
      }
}

TEST(GatherTest, EachLineHasItsOwnIndices) {
  for (const DType dtype : {f32, f64})
    for (const DType of_indices : {i32, i64}) {
      const Tensor x = counted({3, 5, 2}, dtype);
      // Each row has indices of its own: x[b, index[b, k]].
      const Tensor index = tensor({{0, -1}, {4, 1}, {-5, 2}}, of_indices);
      expect_values(gather(x, index, 1, {.batch_dims = 1}),
                    {0, 1, 8, 9, 18, 19, 12, 13, 20, 21, 24, 25});
      const Tensor flat = reshape(x, {6, 5});
      const Tensor one = tensor({0, 1, 2, 3, 4, -1}, {6}, of_indices);
      expect_values(gather(flat, one, 1, {.batch_dims = 1}), {0, 6, 12, 18, 24, 29});
      expect_values(gather(flat, tensor({3, -5}, {2}, of_indices), 1),
                    {3, 0, 8, 5, 13, 10, 18, 15, 23, 20, 28, 25});
    }
}

TEST(GatherTest, AnIndexOutOfRangeIsAnErrorThatSaysWhere) {
  const Dim classes("classes", 3), batch("batch", 2), beam("beam", 2);
  EXPECT_EQ(message_of<IndexError>([&] {
              gather(zeros({classes}), tensor({0, 1, 2, 3}, {batch, beam}), classes);
            }),
            "gather: index 3 at [1,1] of i32[batch=2,beam=2] is out of range for axis "
            "classes=3 of f32[classes=3], which has size 3");
  EXPECT_EQ(message_of<IndexError>([] {
              gather(zeros({2, 3}), scalar(-4), 1);
            }),
            "gather: index -4 is out of range for axis 1 of f32[2,3], which has size 3");
  EXPECT_EQ(message_of<IndexError>([] { gather(zeros({0}), scalar(0), 0); }),
            "gather: index 0 is out of range for axis 0 of f32[0], which has size 0");
}

TEST(GatherTest, EachIndexIsCheckedWhereverItStands) {
  const Tensor x = range(5);
  for (const DType dtype : {i32, i64})
    for (const std::int64_t count : {1, 3, 4, 5, 33})
      for (std::int64_t at = 0; at < count; ++at)
        for (const double index : {-2147483648., -6., -5., -1., 0., 4., 5., 2147483647.}) {
          std::vector<double> indices(static_cast<std::size_t>(count), 3.);
          indices[static_cast<std::size_t>(at)] = index;
          const Tensor places = tensor(indices, {count}, dtype);
          SCOPED_TRACE(::testing::Message() << index << " at " << at << " of " << count);
          if (index < -5 || index > 4) {
            EXPECT_THROW(gather(x, places, 0), IndexError);
            continue;
          }
          indices[static_cast<std::size_t>(at)] = index < 0 ? index + 5 : index;
          expect_values(gather(x, places, 0), indices);
        }
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
            "gather: index 99 at [1] of i32[time[batch=2]] is out of range for axis "
            "classes=2 of f32[classes=2], which has size 2");
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

TEST(GatherTest, AnIndexCannotBeTakenForPadding) {
  const std::int64_t least = std::numeric_limits<std::int64_t>::min();
  EXPECT_EQ(message_of<IndexError>([&] { gather(zeros({2}), scalar(least, i64), 0); }),
            "gather: index -9223372036854775808 is out of range for axis 0 of f32[2], which has "
            "size 2");
}

TEST(GatherTest, NegativeIndicesCanBeRefused) {
  const GatherOptions strict{.from_end = false};
  expect_values(gather(tensor({5, 6, 7}), tensor({2, 0}), 0, strict), {7, 5});
  EXPECT_EQ(message_of<IndexError>([&] {
              gather(zeros({3}), tensor({0, -1}), 0, strict);
            }),
            "gather: index -1 at [1] of i32[2] is out of range for axis 0 of f32[3], which has "
            "size 3");
}

class GatherRaggedTest : public InEveryMode {
 protected:
  const Dim batch{"batch", 3};
  const Dim time{"time", tensor({3, 2, 1}, {batch})};
  const Tensor x = tensor({1., 2., 3., 4., 5., 6., 7., 8., 9.}, {batch, time});
};
REEL_IN_EVERY_MODE(GatherRaggedTest);

TEST_P(GatherRaggedTest, ClipsToTheLengthOfTheEntry) {
  const auto at = [&](const Tensor& indices, bool clip) {
    return run([&, clip](Tensor x, Tensor indices) {
      return gather(x, indices, x.dim("time"), {.clip = clip});
    })(x, indices);
  };
  expect_values(at(scalar(2), true), {3, 5, 7});
  expect_values(at(scalar(2), false), {3, 6, 9});  // padding shows
  expect_values(at(tensor({2, 1, 0}, {batch}, i64), true), {3, 5, 7});
  expect_values(at(scalar(-4), true), {1, 4, 7});
  expect_values(at(scalar(100, i64), true), {3, 5, 7});
  const Dim beam("beam", 2);
  const Tensor pairs = at(tensor({1, -1}, {beam}), true);
  EXPECT_EQ(pairs.dims(), (Dims{batch, beam}));
  expect_values(pairs, {2, 1, 5, 4, 7, 7});
}

TEST_P(GatherRaggedTest, PaddingIsZeroWhereItIsMaskedBefore) {
  const auto at = [](const Tensor& x) { return gather(mask_padding(x), scalar(1), x.dim("time")); };
  expect_values(run(at)(where(mask(time), x, std::nan(""))), {2, 5, 0});
  expect_values(run(grad([&](const Tensor& x) { return sum(at(x)); }))(x),
                {0, 1, 0, 0, 1, 0, 0, 0, 0});
}

TEST_P(GatherRaggedTest, NegativeIndicesCountFromTheEndOfTheEntry) {
  const auto at = run([](Tensor x, Tensor indices) { return gather(x, indices, x.dim("time")); });
  expect_values(at(x, scalar(-1)), {3, 5, 7});
  expect_values(at(x, tensor({-3, -2, -1}, {batch})), {1, 4, 7});
  expect_values(at(transpose(x, {time, batch}), scalar(-1)), {3, 5, 7});
  EXPECT_EQ(message_of<IndexError>([&] { gather(x, scalar(-2), time); }),
            "gather: index -2 at [2] of i32[batch=3] is out of range for axis "
            "time[batch=3] of f32[batch=3,time[batch=3]], where the entry has length 1");
}

TEST_P(GatherRaggedTest, AnEntryWithoutElementsGivesZero) {
  const Dim pair("pair", 2), some("time", tensor({2, 0}, {pair}));
  const Tensor y = tensor({1., 2., NAN, NAN}, {pair, some}, f64);
  const auto last = [](Tensor y) -> Tensor {
    return gather(y, scalar(5), y.dim("time"), {.clip = true});
  };
  expect_values(run(last)(y), {2, 0});
  const auto loss = [=](Tensor y) -> Tensor { return sum(square(last(y))); };
  expect_values(mask_padding(run(grad(loss))(y)), {0, 4, 0, 0});
}

TEST(GatherTest, ClipsPlainAxes) {
  const GatherOptions clip{.clip = true};
  expect_values(gather(tensor({10, 20, 30}), tensor({5, -2, 1}), 0, clip), {30, 10, 20});
  EXPECT_EQ(message_of<IndexError>([&] { gather(zeros({0}), scalar(0), 0, clip); }),
            "gather: index 0 is out of range for axis 0 of f32[0], which has size 0");
}

class GatherBatchTest : public InEveryMode {};
REEL_IN_EVERY_MODE(GatherBatchTest);

TEST_P(GatherBatchTest, LeadingPlainAxesAreMatchedEntryByEntry) {
  const Tensor x = tensor({{1., 2., 3.}, {4., 5., 6.}}, {}, f64);
  const auto pick = [](Tensor x, Tensor indices) -> Tensor {
    return gather(x, indices, 1, {.batch_dims = 1});
  };
  const Tensor pairs = run(pick)(x, tensor({{2, 0}, {-1, -1}}));
  EXPECT_EQ(str(pairs.type()), "f64[2,2]");
  expect_values(pairs, {3, 1, 6, 6});
  expect_values(run(pick)(x, tensor({1, 0})), {2, 4});
  const auto loss = [=](Tensor x, Tensor indices) -> Tensor {
    return sum(square(pick(x, indices)));
  };
  expect_values(run(grad(loss))(x, tensor({{2, 0}, {-1, -1}})), {2, 0, 6, 0, 0, 24});
  // Axes between the matched ones and the indexed one stay.
  const Tensor deep = reshape(range(12), {2, 2, 3});
  const Tensor y = run([](Tensor x) {
    return gather(x, tensor({{2}, {0}}), 2, {.batch_dims = 1});
  })(deep);
  EXPECT_EQ(str(y.type()), "i32[2,2,1]");
  expect_values(y, {2, 5, 6, 9});
}

TEST(GatherTest, ErrorsAboutBatchDims) {
  const Dim batch("batch", 2), classes("classes", 3);
  EXPECT_EQ(message_of<ShapeError>([] {
              gather(zeros({2, 4}), zeros({3, 2}, i32), 1, {.batch_dims = 1});
            }),
            "gather: axis 0 of indices i32[3,2] goes along with axis 0 of f32[2,4], but their "
            "sizes are 3 and 2");
  EXPECT_EQ(message_of<ArgumentError>([] {
              gather(zeros({2, 4}), zeros({2}, i32), 0, {.batch_dims = 1});
            }),
            "gather: batch_dims is 1, but 0 axes of f32[2,4] lie before the one that is indexed, "
            "and indices i32[2] have 1");
  EXPECT_EQ(message_of<ArgumentError>([&] {
              gather(zeros({batch, classes}), zeros({batch}, i32), classes, {.batch_dims = 1});
            }),
            "gather: batch_dims is 1, but f32[batch=2,classes=3] has named dims, which are matched "
            "by themselves; leave it out");
}

TEST(GatherTest, TakesANumberOfCpp) {
  const Dim time("time", 3);
  const Tensor x = tensor({4., 5., 6.}, {time});
  EXPECT_EQ(gather(x, 0, time).item<float>(), 4);
  EXPECT_EQ(gather(x, -1, time).item<float>(), 6);
  EXPECT_EQ(gather(x, std::size_t{9}, time, {.clip = true}).item<float>(), 6);
  EXPECT_EQ(message_of<IndexError>([&] { return gather(x, 3, time); }),
            "gather: index 3 is out of range for axis time=3 of f32[time=3], which has size 3");
}

template <class X>
float number_of(const X& x) {
  return item<float>(x);
}
TEST(ItemTest, IsAFunctionForTemplates) { EXPECT_EQ(number_of(scalar(2.5)), 2.5F); }

}  // namespace
}  // namespace reel
