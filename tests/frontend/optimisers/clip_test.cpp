#include "reel/frontend/optimisers/clip.h"

#include "reel/core/ops.h"
#include "reel/tests/modes.h"

namespace reel {
namespace {

struct Model {
  Tensor weight, bias;
};
struct Mixed {
  Tensor weight, count, flag;
  Dim dim;
  int layers = 2;
};

TEST(ClipTest, ScalesTheWholeTreeToTheNorm) {
  const Model gradient{tensor({3.0, 0.0}), tensor({4.0})};
  const auto [clipped, norm] = clip_by_global_norm(gradient, 1.0);
  expect_values(norm, {5});
  expect_values(clipped.weight, {0.6, 0}, 1e-6);
  expect_values(clipped.bias, {0.8}, 1e-6);
}

TEST(ClipTest, LeavesATreeWithinTheBoundToTheBit) {
  const Model gradient{tensor({0.3, 0.1}), tensor({-0.7})};
  const auto [clipped, norm] = clip_by_global_norm(gradient, 1.0);
  expect_same_bits(clipped.weight, gradient.weight);
  expect_same_bits(clipped.bias, gradient.bias);
  const Model nothing{zeros({2}), zeros({1})};
  expect_same_bits(clip_by_global_norm(nothing, 1.0).first.weight, nothing.weight);
}

TEST(ClipTest, PaddingHasNoNorm) {
  const Dim batch("batch", 2), time("time", tensor({2, 1}, {batch}));
  const Tensor x = tensor({3.0, 4.0, 12.0, NAN}, {batch, time});
  expect_values(global_norm(x), {13});
}

TEST(ClipTest, MixedDtypesKeepTheirs) {
  const Dim dim("dim", 1);
  const Mixed tree{full({dim}, 3.0, f64), full({dim}, 100, i32), zeros({dim}, boolean), dim};
  const auto [clipped, norm] = clip_by_global_norm(std::pair{tree, full({1}, 4.0)}, 2.5);
  EXPECT_EQ(norm.dtype(), f64);
  expect_values(norm, {5});
  EXPECT_EQ(clipped.first.weight.dtype(), f64);
  expect_values(clipped.first.weight, {1.5});
  expect_values(clipped.second, {2});
  expect_values(clipped.first.count, {100});
}

TEST(ClipTest, ABoundThatIsNotPositiveIsRefused) {
  EXPECT_EQ(message_of<ArgumentError>([] { return clip_by_global_norm(ones({2}), 0); }),
            "clip_by_global_norm: max_norm must be positive, got 0");
}

TEST(ClipTest, ArraysOfFloatsAreRefusedByName) {
  const auto of = [](DType dtype) {
    return std::pair{TensorArray::unstack(cast(tensor({3, 4}), dtype), 0), tensor({1.0, 5.0})};
  };
  const std::string rest =
      ": 0 is a TensorArray, list of f32[]; stack() it, or hold its elements in a "
      "std::vector<Tensor>";
  EXPECT_EQ(message_of<ArgumentError>([&] { global_norm(of(f32)); }), "global_norm" + rest);
  EXPECT_EQ(message_of<ArgumentError>([&] { clip_by_global_norm(of(f32), 1); }),
            "clip_by_global_norm" + rest);
  EXPECT_EQ(message_of<ArgumentError>([&] { clip_by_value(of(f32), -1, 1); }),
            "clip_by_value" + rest);
  expect_values(global_norm(of(i32).first), {0});
  const auto clipped = clip_by_value(of(i32), -1, 2);
  expect_values(clipped.first.stack(), {3, 4});
  expect_values(clipped.second, {1, 2});
}

using GlobalNormTest = InEveryMode;
REEL_IN_EVERY_MODE(GlobalNormTest);

TEST_P(GlobalNormTest, NeitherOverflowsNorUnderflows) {
  const auto norm = run([](const Tensor& x, const Tensor& y) {
    return global_norm(std::pair{x, y});
  });
  expect_values(norm(tensor({3e19, 0.}), tensor({4e19})), {5e19}, 1e-6);
  expect_values(norm(tensor({3e-30, 0.}), tensor({4e-30})) * 1e30, {5}, 1e-6);
  expect_values(norm(tensor({3e200}, {}, f64), tensor({4e200}, {}, f64)) / 1e200, {5}, 1e-12);
  expect_values(norm(tensor({3e-200}, {}, f64), tensor({4e-200}, {}, f64)) * 1e200, {5}, 1e-12);
  expect_values(norm(zeros({2}), zeros({0})), {0});
}

TEST_P(GlobalNormTest, ClipsLargeNumbersToTheBound) {
  const auto clip = run([](const Tensor& x) { return clip_by_global_norm(x, 1.).first; });
  expect_values(clip(tensor({3e19, 4e19})), {.6, .8}, 1e-6);
  expect_values(clip(tensor({3e200, 4e200}, {}, f64)), {.6, .8}, 1e-12);
  expect_values(clip(tensor({3e-30, 4e-30})) * 1e30, {3, 4}, 1e-6);
}

TEST_P(GlobalNormTest, BoundsThatF32DoesNotHoldClipNothingOrEverything) {
  for (const double bound : {1e39, 1e300, double{INFINITY}}) {
    const auto f = [=](const Tensor& x) { return clip_by_global_norm(x, bound).first; };
    const auto clip = run(f);
    for (const Tensor& x : {tensor({3., 4.}), zeros({2}), tensor({3e38, 3e38})})
      expect_same_bits(clip(x), x);
    const auto slope = run(grad([=](const Tensor& x) { return sum(f(x)); }));
    expect_values(slope(tensor({3., 4.})), {1, 1});
  }
  for (const double bound : {1e-46, 1e-300}) {
    const auto clip = run([=](const Tensor& x) { return clip_by_global_norm(x, bound).first; });
    expect_values(clip(tensor({3., 4.})), {0, 0});
    expect_values(clip(zeros({2})), {0, 0});
  }
}

TEST_P(GlobalNormTest, GradientsAtZerosAreFinite) {
  const auto of_norm = run(grad([](const Tensor& x) { return global_norm(x); }));
  expect_values(of_norm(zeros({3})), {0, 0, 0});
  expect_values(of_norm(tensor({3e-30, 4e-30})), {.6, .8}, 1e-6);
  const auto of_clip =
      run(grad([](const Tensor& x) { return sum(clip_by_global_norm(x, 1.).first); }));
  expect_values(of_clip(zeros({3})), {1, 1, 1});
  expect_values(of_clip(tensor({0., 2.})), {.5, 0}, 1e-6);
  const auto second = run(grad([](const Tensor& x) {
    return sum(grad([](const Tensor& y) { return sum(clip_by_global_norm(y, 1.).first); })(x));
  }));
  expect_values(second(zeros({2})), {0, 0});
}

using ClipByValueTest = InEveryMode;
REEL_IN_EVERY_MODE(ClipByValueTest);

TEST_P(ClipByValueTest, BringsFloatingElementsIntoTheInterval) {
  const Dim dim("dim", 4);
  const Mixed tree{tensor({-3.0, -0.5, 0.25, INFINITY}, {dim}), tensor({-9, 9, 0, 1}, {dim}),
                   zeros({dim}, boolean), dim};
  const Mixed clipped = run([](const Mixed& m) { return clip_by_value(m, -1, 0.5); })(tree);
  expect_values(clipped.weight, {-1, -0.5, 0.25, 0.5});
  expect_values(clipped.count, {-9, 9, 0, 1});
  EXPECT_TRUE(clipped.dim == dim);
}

TEST_P(ClipByValueTest, NaNStaysNaN) {
  const auto clip = run([](const Tensor& x) { return clip_by_value(x, -1, 1); });
  expect_values(clip(tensor({NAN, 2.0, -INFINITY}, {}, f64)), {NAN, 1, -1});
}

TEST(ClipTest, AnIntervalTheWrongWayRoundIsRefused) {
  EXPECT_EQ(message_of<ArgumentError>([] { return clip_by_value(ones({2}), 1, -1); }),
            "clip_by_value: low must not be above high, got [1, -1]");
  EXPECT_EQ(message_of<ArgumentError>([] { return clip_by_value(ones({2}), NAN, 1); }),
            "clip_by_value: low must not be above high, got [nan, 1]");
}

}  // namespace
}  // namespace reel
