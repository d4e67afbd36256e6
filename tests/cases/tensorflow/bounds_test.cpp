// Loops without iterations, and maximum_iterations, as TensorFlow's users know them.
#include <limits>

#include "reel/tests/modes.h"

namespace reel {
namespace {

using TensorFlowBounds = InEveryMode;
REEL_IN_EVERY_MODE(TensorFlowBounds);

Tensor counted(const Tensor& start, const WhileOptions& options) {
  return while_loop([](Tensor i) { return i < 10; }, [](Tensor i) { return i + 1; }, start,
                    options);
}

TEST_P(TensorFlowBounds, Z01_NoIterationGivesTheInitialState) {
  const auto loop = run([](Tensor step) {
    return while_loop([](Tensor step, Tensor) { return step < 10; },
                      [](Tensor step, Tensor total) {
                        return std::tuple{step + 1, total + step};
                      },
                      std::tuple{step, 0});
  });
  const auto [step, total] = loop(scalar(10));
  expect_values(step, {10});
  expect_values(total, {0});
  expect_values(std::get<1>(loop(scalar(8))), {17});
  EXPECT_EQ(loop.trace_count(), 1);
}

TEST_P(TensorFlowBounds, Z01_NoIterationOfAConditionThatIsFalseInCpp) {
  const auto loop = run([](Tensor x) {
    return while_loop([](Tensor) { return false; }, [](Tensor x) { return print(x, "never") + 1; },
                      x);
  });
  testing::internal::CaptureStdout();
  expect_values(loop(scalar(7)), {7});
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
}

TEST_P(TensorFlowBounds, Z04_GradientOfNoIterationIsTheIdentity) {
  const auto loop = [](std::pair<Tensor, Tensor> va) {
    return sum(tensor({2., 3.}) * while_loop([](Tensor v) { return sum(v) < 0.0; },
                                             [&](Tensor v) { return v * va.second; }, va.first));
  };
  const auto [dv, da] = run(grad(loop))(std::pair{tensor({2., 5.}), scalar(3.0)});
  expect_values(dv, {2, 3});  // the cotangent of the result, unchanged
  expect_values(da, {0});     // the capture was never read
}

TEST_P(TensorFlowBounds, Z04_GradientOfNoIterationByABound) {
  const auto loop = [](std::pair<Tensor, Tensor> va, Tensor most) {
    return 4.0 * while_loop([](Tensor v) { return v < 100.0; },
                            [&](Tensor v) { return v * va.second; }, va.first,
                            {.maximum_iterations = most});
  };
  const auto gradient = run(grad(loop));
  const double expected[][2] = {{4, 0}, {12, 8}, {36, 48}};
  for (int most = 0; most < 3; ++most) {
    const auto [dv, da] = gradient(std::pair{scalar(2.0), scalar(3.0)}, scalar(most));
    expect_values(dv, {expected[most][0]});
    expect_values(da, {expected[most][1]});
  }
  EXPECT_EQ(gradient.trace_count(), 1);
}

TEST_P(TensorFlowBounds, Z04_StateWithoutElementsHasAGradientWithoutElements) {
  const auto loop = [](Tensor x) {
    const auto [i, last] = while_loop([](Tensor i, Tensor) { return i < 3; },
                                      [](Tensor i, Tensor x) {
                                        return std::tuple{i + 1, x * 2.0};
                                      },
                                      std::tuple{scalar(0), x});
    return sum(last);
  };
  expect_values(run(loop)(zeros({0, 4})), {0});
  EXPECT_EQ(str(run(grad(loop))(zeros({0, 4})).type()), "f32[0,4]");
}

TEST_P(TensorFlowBounds, M01_BoundEndsALoopThatCondWouldGoOnWith) {
  const auto isum = run([](Tensor s) {
    return while_loop([](Tensor i, Tensor) { return i < 10; },
                      [](Tensor i, Tensor s) {
                        return std::tuple{i + 1, i + s};
                      },
                      std::tuple{0, s}, {.maximum_iterations = 3});
  });
  const auto [i, s] = isum(tensor({1, 2, 3, 4, 5}));
  expect_values(i, {3});
  expect_values(s, {4, 5, 6, 7, 8});
}

TEST_P(TensorFlowBounds, M02_BoundWithABareState) {
  const auto once = run([](Tensor i) {
    return while_loop([](Tensor i) { return i < 3; }, [](Tensor i) { return i + 1; }, i,
                      {.maximum_iterations = 1});
  });
  const Tensor one = once(scalar(0));
  EXPECT_EQ(one.rank(), 0);
  expect_values(one, {1});
}

TEST_P(TensorFlowBounds, M03_GradientOfABoundedLoopThatCondNeverEnds) {
  const auto loop = [](Tensor v) {
    return while_loop([](Tensor) { return true; }, [](Tensor v) { return v * v; }, v,
                      {.maximum_iterations = 3});
  };
  const auto value = run(loop);
  const auto gradient = run(grad(loop));
  expect_values(value(scalar(2.0)), {256});  // the value first, then the gradient, and again
  expect_values(gradient(scalar(2.0)), {1024});
  expect_values(value(scalar(2.0)), {256});
}

TEST_P(TensorFlowBounds, M05_JittedBodyOfABoundedLoop) {
  const auto next = jit([](Tensor i) { return i + 1.0; });
  const auto loop = run([=](Tensor i) {
    return while_loop([](Tensor) { return true; }, next, i, {.maximum_iterations = 5});
  });
  expect_values(loop(scalar(0.0)), {5});
}

TEST_P(TensorFlowBounds, M07_BoundsOfZeroAndLessAndTensors) {
  for (const int most : {0, -1, std::numeric_limits<int>::min()})
    expect_values(
        run([&](Tensor i) { return counted(i, {.maximum_iterations = most}); })(scalar(7)), {7});
  const auto given =
      run([](Tensor i, Tensor most) { return counted(i, {.maximum_iterations = most}); });
  for (const auto& [most, last] : {std::pair{4, 4}, {0, 0}, {-3, 0}, {10, 10}, {99, 10}}) {
    expect_values(given(scalar(0), scalar(most)), {double(last)});
    expect_values(given(scalar(0), scalar(most, i64)), {double(last)});
  }
}

TEST_P(TensorFlowBounds, M07_BoundThatIsComputedFromData) {
  const auto loop = run([](Tensor x) {
    return std::get<1>(while_loop(
        [](Tensor, Tensor y) { return sum(y) < 1000.0; },
        [&](Tensor i, Tensor y) {
          // The outer counter bounds an inner loop: 0, 1, 2, ... doublings.
          const Tensor z = while_loop([](Tensor) { return true; }, [](Tensor z) { return z * 2.0; },
                                      y, {.maximum_iterations = i});
          return std::tuple{i + 1, z};
        },
        std::tuple{scalar(0), x}, {.maximum_iterations = sum(cast(x > 0.0, i32))}));
  });
  expect_values(loop(tensor({1., 1., 1., -1.})), {8, 8, 8, -8});  // three iterations: 2^(0 + 1 + 2)
  expect_values(loop(tensor({-1., -2., 0.})), {-1, -2, 0});
  expect_values(loop(tensor({600., 1., 1., 300.})), {1200, 2, 2, 600});  // cond ends it first
}

TEST_P(TensorFlowBounds, M08_AsksTheBoundBeforeTheCondition) {
  // After the last iteration that the bound allows, cond is not evaluated: here it would read past
  // the end.
  const auto loop = run([](Tensor x) {
    return while_loop([&](Tensor i, Tensor) { return print(gather(x, i, 0), "asked") > 0.0; },
                      [&](Tensor i, Tensor total) {
                        return std::tuple{i + 1, total + gather(x, i, 0)};
                      },
                      std::tuple{0, 0.0}, {.maximum_iterations = 3});
  });
  testing::internal::CaptureStdout();
  expect_values(std::get<1>(loop(tensor({1., 2., 3.}))), {6});
  EXPECT_EQ(testing::internal::GetCapturedStdout(),
            "asked: f32[] 1.0\nasked: f32[] 2.0\nasked: f32[] 3.0\n");
  testing::internal::CaptureStdout();
  expect_values(std::get<1>(loop(tensor({1., -2., 3.}))), {1});
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "asked: f32[] 1.0\nasked: f32[] -2.0\n");
}

TEST_P(TensorFlowBounds, M08_CountsItsQuestions) {
  int asked = 0;
  const auto bounded = run([&](Tensor v) {
    return while_loop([&](Tensor) { return ++asked, true; }, [](Tensor v) { return v * v; }, v,
                      {.maximum_iterations = 3});
  });
  expect_values(bounded(scalar(2.0)), {256});
  EXPECT_EQ(asked, is_eager() ? 3 : 1);
}

}  // namespace
}  // namespace reel
