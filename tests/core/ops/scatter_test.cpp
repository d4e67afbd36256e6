// scatter_add, scatter_max: several updates of one place, places without updates, gradients.
#include <limits>

#include "reel/tests/modes.h"

namespace reel {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

TEST(ScatterAddTest, UpdatesOfOneElementAddUp) {
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
  // A temporary with the result's type must not be taken for the result's buffer.
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
  // Only the updates have both dims and tell which elements are padding.
  expect_values(scatter_add(zeros({batch, classes}), tensor({0, 1}, {time}), updates, classes),
                {1, 2, 4, 0});
  expect_values(scatter_add(zeros({time, classes}), tensor({0, 1}, {batch}),
                            transpose(updates, {time, batch}), classes),
                {1, 4, 2, 0});
}

TEST(ScatterAddTest, ErrorsNameTheExpectedTypes) {
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
            "scatter_add: takes numbers, got boolean[3]; cast it to i32");
  EXPECT_EQ(message_of<IndexError>([] { scatter_add(zeros({3}), tensor({5}), zeros({1}), 0); }),
            "scatter_add: index 5 at [0] of i32[1] is out of range for axis 0 of f32[3], which has "
            "size 3");
}

class ScatterTest : public InEveryMode {};
REEL_IN_EVERY_MODE(ScatterTest);

TEST_P(ScatterTest, UpdatesIntoPaddingHaveNoGradient) {
  const Dim batch("batch", 2), time("time", tensor({3, 1}, {batch}));
  const Tensor x = tensor({1., 2., 3., 4., kNan, kNan}, {batch, time}, f64);
  const auto loss_of = [&](bool is_max) {
    return [=](Tensor updates) -> Tensor {
      const Tensor at = tensor({2, 1}, {batch}), none = zeros({batch, time}, f64);
      return sum(
          (is_max ? scatter_max(none, at, updates, time) : scatter_add(none, at, updates, time)) *
          x);
    };
  };
  const Tensor updates = tensor({5., 6.}, {batch}, f64);
  expect_values(run(grad(loss_of(false)))(updates), {3, 0});
  expect_values(run(grad(loss_of(true)))(updates), {3, 0});
}

TEST_P(ScatterTest, NegativeIndicesCountFromTheEndOfTheEntry) {
  const Dim batch("batch", 2), time("time", tensor({3, 1}, {batch}));
  const auto add = run([](Tensor to, Tensor updates) {
    return scatter_add(to, scalar(-1), updates, to.dim("time"));
  });
  expect_values(add(zeros({batch, time}), tensor({5., 6.}, {batch})), {0, 0, 5, 6, 0, 0});
}

TEST_P(ScatterTest, MaxTakesTheLargestUpdateOfAnElement) {
  const auto largest = run([](Tensor like, Tensor indices, Tensor updates) {
    return scatter_max(like, indices, updates, 0);
  });
  const Tensor like = tensor({1., 5., 2.});
  expect_values(largest(like, tensor({0, 0, -2, 2}), tensor({3., 4., 5., 1.})), {4, 5, 2});
  expect_values(like, {1, 5, 2});
  expect_values(largest(like, tensor({0, 1, 1}), tensor({kNan, kNan, 9.})), {kNan, kNan, 2});
  expect_values(largest(tensor({7, -1}), tensor({1, 0}, {}, i64), tensor({-3, 8})), {8, -1});
  expect_values(largest(zeros({2, 2}), tensor({1}), tensor({{1., -1.}})), {0, 0, 1, 0});
}

TEST_P(ScatterTest, MaxSharesItsGradientAmongTies) {
  struct In {
    Tensor like, updates;
  };
  const auto loss = [](In in) -> Tensor {
    const Tensor y = scatter_max(in.like, tensor({0, 0, 1, 2}), in.updates, 0);
    return sum(square(y) * tensor({10., 20., 30.}, {}, f64));
  };
  const In in{tensor({1., 5., 2.}, {}, f64), tensor({3., 3., 5., 1.}, {}, f64)};
  const In first = run(grad(loss))(in);
  expect_values(first.like, {0, 100, 120});
  expect_values(first.updates, {30, 30, 100, 0});
  const auto twice = grad([=](In in) -> Tensor {
    const In g = grad(loss)(in);
    return sum(g.like) + sum(g.updates);
  });
  const In second = run(twice)(in);
  expect_values(second.like, {0, 20, 60});
  expect_values(second.updates, {10, 10, 20, 0});
}

TEST_P(ScatterTest, NaNThatWinsTakesTheGradient) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto f = run([](const Tensor& like, const Tensor& updates) {
    return grad([](const std::pair<Tensor, Tensor>& p) {
      return sum(scatter_max(p.first, tensor({0, 0, 1, 2}), p.second, 0));
    })(std::pair{like, updates});
  });
  const auto [like, updates] =
      f(tensor({1., nan, 5.}, {}, f64), tensor({nan, 7., nan, 4.}, {}, f64));
  expect_values(like, {0, 0.5, 1});
  expect_values(updates, {1, 0, 0.5, 0});
}

TEST_P(ScatterTest, MaxTakesNoPadding) {
  const Dim batch("batch", 2), time("time", tensor({2, 1}, {batch})), classes("classes", 2);
  struct In {
    Tensor like, updates;
  };
  const In in{tensor({-9., -9.}, {classes}, f64), tensor({1., 2., 4., kNan}, {batch, time}, f64)};
  // The indices tell which elements are padding, or only the updates do.
  const auto both = [&](In in) -> Tensor {
    return scatter_max(in.like, tensor({0, 1, 0, 7}, {batch, time}), in.updates, classes);
  };
  expect_values(run(both)(in), {4, 2});
  const auto alone = [&](In in) -> Tensor {
    return scatter_max(expand(in.like, {batch, classes}), tensor({0, 0}, {time}), in.updates,
                       classes);
  };
  expect_values(run(alone)(in), {2, -9, 4, -9});
  const In g = run(grad([=](In in) -> Tensor { return sum(alone(in)); }))(in);
  expect_values(g.like, {0, 2});
  expect_values(mask_padding(g.updates), {0, 1, 1, 0});
}

TEST(ScatterMaxTest, ErrorsNameTypesAndIndices) {
  EXPECT_EQ(
      message_of<DTypeError>([] { scatter_max(zeros({3}), tensor({0}), zeros({1}, f64), 0); }),
      "scatter_max: dtypes differ: f64[1] cannot be compared with f32[3]; cast one of them");
  EXPECT_EQ(message_of<IndexError>([] { scatter_max(zeros({3}), tensor({3}), zeros({1}), 0); }),
            "scatter_max: index 3 at [0] of i32[1] is out of range for axis 0 of f32[3], which has "
            "size 3");
}

}  // namespace
}  // namespace reel
