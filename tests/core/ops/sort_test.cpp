// sort, argsort, top_k: ties, NaN, padding, several axes together.
#include <limits>

#include "reel/tests/modes.h"

namespace reel {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN(),
                 kInf = std::numeric_limits<double>::infinity();

class SortTest : public InEveryMode {};
REEL_IN_EVERY_MODE(SortTest);

TEST_P(SortTest, SortsAlongAnyAxisInBothDirections) {
  const Tensor x = tensor({{3., 1., 2.}, {-1., 5., 0.}});
  const auto along = [&](int axis, bool descending) {
    return run([=](Tensor x) { return sort(x, axis, descending); })(x);
  };
  expect_values(along(1, false), {1, 2, 3, -1, 0, 5});
  expect_values(along(-1, true), {3, 2, 1, 5, 0, -1});
  expect_values(along(0, false), {-1, 1, 0, 3, 5, 2});
  const Tensor order = run([](Tensor x) { return argsort(x, 1); })(x);
  EXPECT_EQ(str(order.type()), "i32[2,3]");
  expect_values(order, {1, 2, 0, 0, 2, 1});
}

TEST_P(SortTest, EqualElementsKeepTheirOrder) {
  const Tensor x = tensor({1., 0., 1., -0., 0., 1.});
  expect_values(run([](Tensor x) { return argsort(x, 0); })(x), {1, 3, 4, 0, 2, 5});
  expect_values(run([](Tensor x) { return argsort(x, 0, true); })(x), {0, 2, 5, 1, 3, 4});
}

TEST_P(SortTest, NanIsTheLargest) {
  const Tensor x = tensor({kNan, kInf, -kNan, -kInf, 1.}, {5}, f64);
  expect_values(run([](Tensor x) { return sort(x, 0); })(x), {-kInf, 1, kInf, kNan, kNan});
  expect_values(run([](Tensor x) { return argsort(x, 0, true); })(x), {0, 2, 1, 4, 3});
}

TEST_P(SortTest, TakesEveryDtype) {
  const auto ascending = run([](Tensor x) { return sort(x, 0); });
  const std::int64_t most = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(ascending(tensor(std::vector<std::int64_t>{most, -1, -most - 1, most - 1}))
                .to_vector<std::int64_t>(),
            (std::vector<std::int64_t>{-most - 1, -1, most - 1, most}));
  expect_values(ascending(tensor({5, -7, 0, 3})), {-7, 0, 3, 5});
  expect_values(ascending(tensor({true, false, true})), {0, 1, 1});
  expect_values(ascending(zeros({0})), {});
}

TEST_P(SortTest, EachEntryIsSortedWithinItsOwnLength) {
  const Dim batch("batch", 3), time("time", tensor({3, 2, 0}, {batch}));
  const Tensor x = tensor({3., 1., 2., 5., 4., -9., -9., kNan, 0.}, {batch, time});
  const auto up = run([](Tensor x) { return mask_padding(sort(x, x.dim("time"))); });
  expect_values(up(x), {1, 2, 3, 4, 5, 0, 0, 0, 0});
  expect_values(up(transpose(x, {time, batch})), {1, 4, 0, 2, 5, 0, 3, 0, 0});
  expect_values(run([](Tensor x) { return argsort(x, x.dim("time"), true); })(x),
                {0, 2, 1, 0, 1, 2, 0, 1, 2});
  // Along the dim of the lengths, valid elements are sorted into the places of valid elements.
  expect_values(run([](Tensor x) { return mask_padding(sort(x, x.dim("batch"))); })(x),
                {3, 1, 2, 5, 4, 0, 0, 0, 0});
}

TEST_P(SortTest, GradientGoesWhereTheElementsCameFrom) {
  const Dim batch("batch", 2), time("time", tensor({3, 1}, {batch}));
  const Tensor x = tensor({3., 1., 2., 5., kNan, kNan}, {batch, time}, f64);
  const Tensor w = tensor({10., 20., 30., 40., kNan, kNan}, {batch, time}, f64);
  const auto loss = [&](Tensor x) -> Tensor { return sum(square(sort(x, time)) * w); };
  expect_values(mask_padding(run(grad(loss))(x)), {180, 20, 80, 400, 0, 0});
  const auto twice = grad([=](Tensor x) -> Tensor { return sum(grad(loss)(x) * x); });
  expect_values(mask_padding(run(twice)(x)), {360, 40, 160, 800, 0, 0});
}

class TopKTest : public InEveryMode {};
REEL_IN_EVERY_MODE(TopKTest);

TEST_P(TopKTest, GivesTheLargestInDescendingOrder) {
  const Tensor x = tensor({{1., 4., 2., 3.}, {8., 5., 7., 6.}});
  const TopK last = run([](Tensor x) { return top_k(x, -1, 2); })(x);
  EXPECT_EQ(str(last.values.type()), "f32[2,2]");
  EXPECT_EQ(str(last.indices.type()), "i32[2,2]");
  expect_values(last.values, {4, 3, 8, 7});
  expect_values(last.indices, {1, 3, 0, 2});
  const TopK first = run([](Tensor x) { return top_k(x, 0, 1); })(x);
  EXPECT_EQ(str(first.values.type()), "f32[1,4]");
  expect_values(first.values, {8, 5, 7, 6});
  expect_values(first.indices, {1, 1, 1, 1});
  EXPECT_EQ(str(run([](Tensor x) { return top_k(x, 1, 0).values; })(x).type()), "f32[2,0]");
}

TEST_P(TopKTest, EqualElementsComeInTheirOrder) {
  const auto top = run([](Tensor x) { return top_k(x, 0, 3); });
  expect_values(top(tensor({1, 2, 1, 2, 2, 2})).indices, {1, 3, 4});
  expect_values(top(tensor({0., -0., 0., -0.})).indices, {0, 1, 2});
  expect_values(top(tensor({-kInf, -kInf, -kInf, -kInf})).indices, {0, 1, 2});
}

TEST_P(TopKTest, NanIsTheLargestAsInArgmax) {
  const TopK top = run([](Tensor x) { return top_k(x, 0, 3); })(tensor({1., kNan, kInf, kNan}));
  expect_values(top.values, {kNan, kNan, kInf});
  expect_values(top.indices, {1, 3, 2});
}

/// Long lines are compared by blocks; a stable sort tells the order.
TEST_P(TopKTest, ALongLineGivesTheBeginningOfTheSortedLine) {
  for (const DType dtype : {f32, f64, i32})
    for (const int period : {7, 1009}) {
      std::vector<double> line;
      for (std::int64_t i = 0; i < 1000; ++i)
        line.push_back(static_cast<double>(i * 389 % period) - period / 2);
      if (dtype != i32) {
        line[100] = -0., line[150] = 0., line[300] = kInf, line[301] = -kInf;
        line[700] = -kNan, line[701] = kNan;
      }
      const Tensor x = cast(tensor(line, {2, 500}, f64), dtype);
      const Tensor sorted = argsort(x, 1, true);
      const TopK top = run([](Tensor x) { return top_k(x, 1, 9); })(x);
      EXPECT_EQ(top.indices.to_vector<int>(), slice(sorted, 1, 0, 9).to_vector<int>());
      const TopKOverAxes both = run([](Tensor x) {
        return top_k(x, std::vector<Axis>{0, 1}, 9);
      })(x);
      const Tensor place = argsort(reshape(x, {-1}), 0, true);
      EXPECT_EQ((both.indices[0] * 500 + both.indices[1]).to_vector<int>(),
                slice(place, 0, 0, 9).to_vector<int>());
    }
}

/// A few items are kept in order, more in a heap; elements are compared one by one, 16 together and
/// 64 together.
TEST_P(TopKTest, AnyNumberOfAnyLineIsTheBeginningOfTheSortedLine) {
  for (const DType dtype : {f32, f64, i32, i64})
    for (const std::int64_t size : {1, 15, 16, 17, 33, 63, 64, 65, 81, 200}) {
      manual_seed(size);
      const Tensor x = cast(random_normal({3, size}) * 8, dtype);
      const Tensor sorted = argsort(x, 1, true);
      for (const std::int64_t k : {1, 2, 15, 16, 17, 40}) {
        if (k > size) continue;
        SCOPED_TRACE(str(k, " of ", x.type()));
        const TopK top = run([k](Tensor x) { return top_k(x, 1, k); })(x);
        EXPECT_EQ(top.indices.to_vector<int>(), slice(sorted, 1, 0, k).to_vector<int>());
      }
    }
}

TEST_P(TopKTest, NamesTheNewDim) {
  const Dim batch("batch", 2), classes("classes", 3), beam("beam", 2);
  const Tensor x = tensor({1., 3., 2., 6., 5., 4.}, {batch, classes});
  const TopK named = run([&](Tensor x) { return top_k(x, classes, beam); })(x);
  EXPECT_EQ(named.values.dims(), (Dims{batch, beam}));
  EXPECT_EQ(named.dim, beam);
  const TopK fresh = run([&](Tensor x) { return top_k(x, classes, 2); })(x);
  EXPECT_EQ(str(fresh.values.type()), "f32[batch=2,k=2]");
  EXPECT_EQ(fresh.indices.dim("k"), fresh.dim);
  // The result's axis may have the same dim as before.
  const TopK again = run([&](Tensor x) { return top_k(x, classes, classes); })(x);
  expect_values(again.values, {3, 2, 1, 6, 5, 4});
}

TEST_P(TopKTest, TakesSeveralAxesTogether) {
  const Dim batch("batch", 2), beam("beam", 2), vocabulary("vocabulary", 3);
  const Tensor x =
      tensor({1., 6., 2., 6., 0., 3., 5., 5., 5., 5., 5., 5.}, {batch, beam, vocabulary});
  const auto best = run([&](Tensor x) { return top_k(x, {beam, vocabulary}, beam); });
  const TopKOverAxes top = best(x);
  EXPECT_EQ(top.values.dims(), (Dims{batch, beam}));
  expect_values(top.values, {6, 6, 5, 5});
  ASSERT_EQ(top.indices.size(), 2u);
  EXPECT_EQ(top.indices[1].type(), TensorType(i32, {batch, beam}));
  expect_values(top.indices[0], {0, 1, 0, 0});
  expect_values(top.indices[1], {1, 0, 0, 1});
  // The order of x's dims does not matter; ties follow the order in which the axes are listed.
  for (const Dims& order : {Dims{vocabulary, batch, beam}, Dims{beam, vocabulary, batch}}) {
    const TopKOverAxes same = best(transpose(x, order));
    expect_values(transpose(same.values, {batch, beam}), {6, 6, 5, 5});
    expect_values(transpose(same.indices[0], {batch, beam}), {0, 1, 0, 0});
    expect_values(transpose(same.indices[1], {batch, beam}), {1, 0, 0, 1});
  }
  const TopKOverAxes turned = run([&](Tensor x) { return top_k(x, {vocabulary, beam}, 2); })(x);
  expect_values(turned.indices[0], {0, 1, 0, 0});
  expect_values(turned.indices[1], {1, 0, 0, 1});
}

TEST_P(TopKTest, TakesAllAxesOfPlainTensors) {
  const Tensor x = tensor({{{1., 9.}, {3., 7.}}, {{8., 2.}, {4., 6.}}});
  const TopKOverAxes top = run([](Tensor x) { return top_k(x, {0, 1, 2}, 3); })(x);
  EXPECT_EQ(str(top.values.type()), "f32[3]");
  expect_values(top.values, {9, 8, 7});
  expect_values(top.indices[0], {0, 1, 0});
  expect_values(top.indices[1], {0, 0, 1});
  expect_values(top.indices[2], {1, 0, 1});
  const TopKOverAxes around = run([](Tensor x) { return top_k(x, {2, 0}, 2); })(x);
  EXPECT_EQ(str(around.values.type()), "f32[2,2]");  // in the place of the first of them
  expect_values(around.values, {9, 7, 8, 6});
  expect_values(around.indices[0], {1, 1, 0, 1});
  expect_values(around.indices[1], {0, 0, 1, 1});
}

TEST_P(TopKTest, PaddingIsNeverChosen) {
  const Dim batch("batch", 3), time("time", tensor({3, 1, 0}, {batch}));
  const auto top = run([](Tensor x) { return top_k(x, x.dim("time"), 2); });
  const TopK floats = top(tensor({1., -kInf, -5., -kInf, kNan, kInf, 9., 9., 9.}, {batch, time}));
  expect_values(floats.values, {1, -5, -kInf, -kInf, -kInf, -kInf});
  expect_values(floats.indices, {0, 2, 0, 0, 0, 0});
  const TopK integers = top(tensor({1, 2, 3, -4, 9, 9, 9, 9, 9}, {batch, time}));
  const double least = std::numeric_limits<std::int32_t>::min();
  expect_values(integers.values, {3, 2, -4, least, least, least});
  const TopK wide = top(tensor({1, 2, 3, -4, 9, 9, 9, 9, 9}, {batch, time}, i64));
  EXPECT_EQ(wide.values.to_vector<std::int64_t>()[4], std::numeric_limits<std::int64_t>::min());
  // Both axes together; and more elements than the longest entry has.
  const TopKOverAxes both = run([&](Tensor x) {
    return top_k(x, {batch, time}, 3);
  })(tensor({1., 2., 3., 7., 9., 9., 9., 9., 9.}, {batch, time}));
  expect_values(both.values, {7, 3, 2});
  expect_values(both.indices[0], {1, 0, 0});
  expect_values(both.indices[1], {0, 2, 1});
  EXPECT_EQ(
      str(run([](Tensor x) { return top_k(x, x.dim("time"), 5).values; })(zeros({batch, time}))
              .type()),
      "f32[batch=3,k=5]");
}

TEST_P(TopKTest, GradientGoesToTheChosenElements) {
  const Dim batch("batch", 2), time("time", tensor({3, 1}, {batch}));
  const Tensor x = tensor({3., 1., 2., 5., kNan, kNan}, {batch, time}, f64);
  const auto loss = [&](Tensor x) -> Tensor {
    const Tensor values = top_k(x, time, 2).values;
    return sum(square(where(values < -1e9, 0, values)));
  };
  expect_values(mask_padding(run(grad(loss))(x)), {6, 0, 4, 10, 0, 0});
  const Tensor plain = tensor({{1., 4.}, {3., 2.}}, {}, f64);
  const auto twice = grad([](Tensor x) -> Tensor {
    return sum(grad([](Tensor x) -> Tensor { return sum(pow(top_k(x, {0, 1}, 2).values, 3)); })(x));
  });
  expect_values(run(twice)(plain), {0, 24, 18, 0}, 1e-9);
}

TEST_P(TopKTest, BeamSearchFollowsItsBackReferences) {
  // Scores of three labels that do not depend on the past, so that the best paths are known.
  const Dim beam("beam", 2), vocabulary("vocabulary", 3);
  const auto search = run([&](Tensor step) {
    const Tensor scores = tensor({0., -kInf}, {beam});
    auto [i, total, labels] =
        while_loop([](Tensor i, Tensor, Tensor) { return i < 3; },
                   [&](Tensor i, Tensor total, Tensor labels) {
                     auto [best, from, k] =
                         top_k(total + expand(step, {beam, vocabulary}), {beam, vocabulary}, beam);
                     return std::tuple{i + 1, best, gather(labels, from[0], beam) * 10 + from[1]};
                   },
                   std::tuple{scalar(0), scores, zeros({beam}, i32)});
    return std::pair{total, labels};
  });
  const auto [total, labels] = search(tensor({-3., -1., -1.5}, {vocabulary}));
  expect_values(total, {-3, -3.5});
  expect_values(labels, {111, 112});
}

TEST(TopKErrorTest, ErrorsNameKAndTheNumberOfElements) {
  const Dim batch("batch", 2), time("time", tensor({2, 1}, {batch})), classes("classes", 3);
  EXPECT_EQ(message_of<ShapeError>([] {
              top_k(zeros({2, 3}), 1, 4);
            }),
            "top_k: k is 4, but there are 3 elements along axis 1 of f32[2,3]; take fewer");
  EXPECT_EQ(message_of<ShapeError>([&] {
              top_k(zeros({batch, classes}), {batch, classes}, Dim("beam", 7));
            }),
            "top_k: k is beam=7, but there are 6 elements along axis batch=2 of "
            "f32[batch=2,classes=3] and axis classes=3 of f32[batch=2,classes=3]; take fewer");
  EXPECT_EQ(message_of<ShapeError>([] { top_k(zeros({3}), 0, Dim("beam", 2)); }),
            "top_k: k is the named dim beam=2, but f32[3] has plain sizes; give a number");
  EXPECT_EQ(message_of<ArgumentError>([&] {
              top_k(zeros({batch, classes}), classes, time);
            }),
            "top_k: k must have one size, got the dim time[batch=2]");
  EXPECT_EQ(message_of<ArgumentError>([&] { top_k(zeros({classes}), classes, Dim("beam")); }),
            "top_k: k must have one size, got the dim beam");
  EXPECT_EQ(message_of<ArgumentError>([] { top_k(zeros({3}), std::vector<Axis>{}, 1); }),
            "top_k: was given no axes");
  EXPECT_EQ(message_of<IndexError>([] { sort(zeros({3}), 1); }),
            "sort: axis 1 is out of range for f32[3], which has 1 axis");
}

}  // namespace
}  // namespace reel
