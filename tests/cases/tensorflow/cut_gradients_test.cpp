// Gradients of loops that are cut or unreachable, as TensorFlow's users rely on them:
// stop_gradient, back_prop, integers, constants, untaken branches.
#include "reel/tests/cases/derivatives.h"

namespace reel {
namespace {

using TensorFlowCutGradients = DerivativesInEveryMode;
REEL_IN_EVERY_MODE(TensorFlowCutGradients);

TEST_P(TensorFlowCutGradients, G11_BackPropFalseCutsTheLoopAlone) {
  const auto cut = [](const Tensors& x) {
    return while_loop(below(8), [](Tensor v) { return v * v; }, x[0], {.back_prop = false});
  };
  expect_derivatives(cut, {scalar(2.0)}, 16, {{0}}, {.agrees_with_differences = false});
  expect_derivatives([=](const Tensors& x) { return cut(x) + x[0]; }, {scalar(2.0)}, 18, {{1}},
                     {.agrees_with_differences = false});
}

TEST_P(TensorFlowCutGradients, G11_BackPropFalseCutsCapturesAndGradientsInside) {
  const auto f = [](const Tensors& x) {
    const auto [i, y] = while_loop([](Tensor i, Tensor) { return i < 2; },
                                   [&](Tensor i, Tensor y) {
                                     // A gradient that lies wholly inside the body is an ordinary
                                     // value.
                                     const Tensor inner =
                                         grad([&](Tensor z) { return z * z * x[1]; })(y);
                                     return std::tuple{i + 1, y + inner};
                                   },
                                   std::tuple{scalar(0), x[0]}, {.back_prop = false});
    return y * x[1];
  };
  // y -> y (1 + 2 w): 1 -> 7 -> 49 with w = 3.
  expect_derivatives(f, {scalar(1.0), scalar(3.0)}, 147, {{0}, {49}},
                     {.agrees_with_differences = false});
}

TEST_P(TensorFlowCutGradients, G13_BodyThatReturnsACapture) {
  const auto f = [](const Tensors& x) {
    return while_loop(
        below(1), [&](Tensor) { return x[1]; }, x[0]);
  };
  expect_derivatives(f, {scalar(0.0), scalar(1.0)}, 1, {{0}, {1}});
  const auto constant = [](const Tensors& x) {
    return while_loop(
        below(1), [&](Tensor v) { return ones_like(v); }, x[0]);
  };
  expect_derivatives(constant, {scalar(0.0)}, 1, {{0}});
}

// The loop of both tests: x -> x² + y², y -> y², from x = 3, y = 2: 13, 4; 185, 16.
Tensor squares(const Tensors& x, bool stops, int result) {
  const auto [rx, ry] = while_loop([](Tensor x, Tensor) { return x < 100.0; },
                                   [&](Tensor x, Tensor y) {
                                     const Tensor y1 = stops ? stop_gradient(square(y)) : square(y);
                                     return std::tuple{square(x) + y1, y1};
                                   },
                                   std::tuple{x[0], x[1]});
  return result == 0 ? rx : ry;
}

TEST_P(TensorFlowCutGradients, G15_StopGradientOutside) {
  const Tensors x{scalar(3.0), scalar(2.0)};
  expect_derivatives([](const Tensors& x) { return squares(x, false, 0); }, x, 185, {{156}, {136}});
  expect_derivatives([](const Tensors& x) { return squares(x, false, 1); }, x, 16, {{0}, {32}});
  expect_derivatives([](const Tensors& x) { return stop_gradient(squares(x, false, 0)) * x[1]; }, x,
                     370, {{0}, {185}}, {.agrees_with_differences = false});
}

TEST_P(TensorFlowCutGradients, G15_StopGradientInside) {
  const Tensors x{scalar(3.0), scalar(2.0)};
  expect_derivatives([](const Tensors& x) { return squares(x, true, 0); }, x, 185, {{156}, {0}},
                     {.agrees_with_differences = false});
  expect_derivatives([](const Tensors& x) { return squares(x, true, 1); }, x, 16, {{0}, {0}},
                     {.agrees_with_differences = false});
}

TEST_P(TensorFlowCutGradients, G27_BranchThatDoesNotReadTheState) {
  const auto with = [](bool pred) {
    return [=](const Tensors& x) {
      return repeat(
          3,
          [&](const Tensor& v) {
            return cond(
                scalar(pred), [&] { return v * 2.0; }, [&] { return scalar(10.0, v.dtype()); });
          },
          x[0]);
    };
  };
  expect_derivatives(with(true), {scalar(1.0)}, 8, {{8}});
  expect_derivatives(with(false), {scalar(1.0)}, 10, {{0}});
}

TEST_P(TensorFlowCutGradients, G27_StateThatOnlySomeIterationsChange) {
  const auto f = [](const Tensors& x) {
    const auto [i, v] = while_loop([](Tensor i, Tensor) { return i < 6; },
                                   [&](Tensor i, Tensor v) {
                                     const Tensor next = cond(
                                         i % 3 == 1, [&] { return v * x[1]; }, [&] { return v; });
                                     return std::tuple{i + 1, next};
                                   },
                                   std::tuple{scalar(0), x[0]});
    return v;
  };
  expect_derivatives(f, {scalar(3.0), scalar(0.5)}, 0.75, {{0.25}, {3}});
}

TEST_P(TensorFlowCutGradients, G34_PathThroughAnIntegerState) {
  const auto f = [](const Tensors& x) {
    const DType dtype = x[0].dtype();
    const auto [i, y] =
        while_loop([](Tensor, Tensor) { return true; },
                   [&](Tensor i, Tensor) {
                     return std::tuple{i, cast(i, dtype) + sum(x[0])};
                   },
                   std::tuple{argmin(x[0], 0), scalar(0.0, dtype)}, {.maximum_iterations = 1});
    return y;
  };
  expect_derivatives(f, {tensor({7., 8.})}, 15, {{1, 1}});
  expect_derivatives(f, {tensor({8., 7.})}, 16, {{1, 1}});
}

TEST_P(TensorFlowCutGradients, G42_IntegerAndBooleanLeavesGetZeros) {
  using State = std::tuple<Tensor, Tensor, Tensor>;
  const auto f = [](const State& s) {
    const auto [i, b, y] = while_loop([](Tensor i, Tensor, Tensor) { return i < 5; },
                                      [](Tensor i, Tensor b, Tensor y) {
                                        return std::tuple{i + 1, !b, where(b, y * 2.0, y + 1.0)};
                                      },
                                      s);
    return y;
  };
  const auto [di, db, dy] = run(grad(f))(State{scalar(0), scalar(true), scalar(3.0)});
  EXPECT_EQ(str(di.type(), db.type(), dy.type()), "i32[]boolean[]f32[]");
  expect_values(di, {0});
  expect_values(db, {0});
  expect_values(dy, {8});
}

TEST_P(TensorFlowCutGradients, UnusedStateAndDroppedState) {
  const auto f = [](const Tensors& x) {
    const auto [i, used, unused, dropped] =
        while_loop([](Tensor i, Tensor, Tensor, Tensor) { return i < 3; },
                   [&](Tensor i, Tensor used, Tensor unused, Tensor dropped) {
                     return std::tuple{i + 1, used * x[3], unused / 0.0, zeros_like(dropped)};
                   },
                   std::tuple{scalar(0), x[0], x[1], x[2]});
    return used + dropped;
  };
  expect_derivatives(f, {scalar(2.0), scalar(3.0), scalar(4.0), scalar(0.5)}, 0.25,
                     {{0.125}, {0}, {0}, {1.5}});
}

TEST_P(TensorFlowCutGradients, ConstantsInABodyAreNoMatter) {
  const auto f = [](const Tensors& x) {
    return repeat(
        3,
        [](const Tensor& v) {
          const Tensor table = tensor({0.5, 2.0, 4.0}, {}, v.dtype());
          return sum(v * table) * gather(table, scalar(0), 0);
        },
        x[0]);
  };
  expect_derivatives(f, {scalar(2.0)}, 2 * std::pow(3.25, 3), {{std::pow(3.25, 3)}});
}

TEST_P(TensorFlowCutGradients, BranchNotTakenMayBeInfinite) {
  // 1/x and log(x) at x = 0: they must not reach the value or the gradient in any iteration.
  const auto f = [](const Tensors& x) {
    return repeat(
        3,
        [&](const Tensor& v) {
          return cond(
              x[1] > 0.0, [&] { return v + log(x[1]) / x[1]; }, [&] { return v * x[2]; });
        },
        x[0]);
  };
  expect_derivatives(f, {scalar(2.0), scalar(0.0), scalar(3.0)}, 54, {{27}, {0}, {54}},
                     {.agrees_with_differences = false});
}

TEST_P(TensorFlowCutGradients, TripCountThatDependsOnTheArgument) {
  // The number of iterations is piecewise constant and contributes no gradient.
  const auto f = [](const Tensors& x) {
    const Tensor n = cast(floor(x[0] * 4.0), i32);
    return while_loop([](Tensor) { return true; }, [&](Tensor v) { return v * x[0]; }, x[1],
                      {.maximum_iterations = n});
  };
  const double v = 0.8;  // three iterations
  expect_derivatives(f, {scalar(v), scalar(2.0)}, 2 * v * v * v, {{6 * v * v}, {v * v * v}});
}

TEST_P(TensorFlowCutGradients, ValuesReadOnlyByAnUntakenBranchGetNoCotangent) {
  // 1/x and sqrt(x), computed before the branch at x = 0: they must get no cotangents.
  const auto f = [](const Tensors& x) {
    const Tensor y = 1.0 / x[0] + sqrt(x[0]);
    return cond(
        x[0] > 1.0, [&] { return y * x[1]; }, [&] { return x[0] * x[1] + 3.0 * x[1]; });
  };
  expect_derivatives(f, {scalar(0.0), scalar(2.0)}, 6, {{2}, {3}},
                     {.agrees_with_differences = false});
  // Through a linear op, another branch, and a loop in between.
  const auto g = [](const Tensors& x) {
    const Tensor y = reshape(log(x[0]), {1});
    const Tensor z = cond(
        x[1] > 0.0, [&] { return y * y; }, [&] { return y; });
    const Tensor v = repeat(
        2, [&](const Tensor& v) { return v * x[1] + z; }, y);
    return cond(
        x[0] > 1.0, [&] { return sum(v); }, [&] { return x[0] * x[1] + x[1]; });
  };
  const Tensors x{scalar(0.0, f64), scalar(2.0, f64)};
  const auto slope = [&](const Tensors& x) {
    const Tensors of = grad(g)(x);
    return of[0] * 3.0 + of[1] * x[0];
  };
  const auto gradients = run(grad(g))(x), curvatures = run(grad(slope))(x);
  expect_values(run(g)(x), {2});
  expect_values(gradients[0], {2});
  expect_values(gradients[1], {1});
  expect_values(curvatures[0], {1});  // 3 b + (a + 1) a: 2 a + 1
  expect_values(curvatures[1], {3});
}

TEST_P(TensorFlowCutGradients, ValuesReadOnlyByALoopThatNeverRunsGetNoCotangent) {
  const auto f = [](const Tensors& x) {
    const Tensor y = 1.0 / x[0];
    return while_loop([](Tensor v) { return v > 5.0; }, [&](Tensor v) { return v * y; }, x[1]) +
           x[0];
  };
  expect_derivatives(f, {scalar(0.0), scalar(2.0)}, 2, {{1}, {1}},
                     {.agrees_with_differences = false});
}

TEST_P(TensorFlowCutGradients, ValuesReadByATakenBranchGetTheirCotangent) {
  const auto f = [](const Tensors& x) {
    const Tensor y = 1.0 / x[0];
    const Tensor z = cond(
        x[0] > 1.0, [&] { return y * x[1]; }, [&] { return x[1]; });
    return cond(
        x[0] > 1.0, [&] { return z + y; }, [&] { return z; });
  };
  // (1 + b) / a
  expect_derivatives(f, {scalar(2.0), scalar(3.0)}, 2, {{-1}, {0.5}});
}

}  // namespace
}  // namespace reel
