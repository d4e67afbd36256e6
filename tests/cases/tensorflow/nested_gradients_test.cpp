// Gradients through nested loops, and conds between them, that TensorFlow's users rely on.
#include "reel/tests/cases/derivatives.h"

namespace reel {
namespace {

using TensorFlowNestedGradients = DerivativesInEveryMode;
REEL_IN_EVERY_MODE(TensorFlowNestedGradients);

Tensor doubled(int n, const Tensor& x) {
  return repeat(
      n, [](Tensor x) { return x * 2.0; }, x);
}

TEST_P(TensorFlowNestedGradients, N07_LoopInABranch) {
  const auto with = [](bool pred) {
    return [=](const Tensors& x) {
      return cond(
          scalar(pred),
          [&] {
            return while_loop(
                below(10), [](Tensor x) { return x + 1.0; }, x[0]);
          },
          [&] { return x[0] * 2.0; });
    };
  };
  expect_derivatives(with(true), {scalar(0.0)}, 10, {{1}});
  expect_derivatives(with(false), {scalar(0.0)}, 0, {{2}});
}

TEST_P(TensorFlowNestedGradients, N07_LoopsOfDifferentLengthInBothBranches) {
  const auto f = [](const Tensors& x) {
    return cond(
        x[0] > x[1],
        [&] {
          return repeat(
              2, [&](Tensor y) { return y * x[1]; }, x[0]);
        },
        [&] {
          return repeat(
              3, [&](Tensor y) { return y * x[0]; }, x[1]);
        });
  };
  expect_derivatives(f, {scalar(3.0), scalar(2.0)}, 12, {{4}, {12}});
  expect_derivatives(f, {scalar(2.0), scalar(3.0)}, 24, {{36}, {8}});
}

TEST_P(TensorFlowNestedGradients, N13_BranchesOfABodyThatReadACapture) {
  const auto f = [](const Tensors& x) {
    return repeat(
        3,
        [&](Tensor y) {
          return cond(
              true, [&] { return y + x[1]; }, [&] { return y; });
        },
        x[0]);
  };
  expect_derivatives(f, {scalar(0.0), scalar(3.0)}, 9, {{1}, {3}});
}

TEST_P(TensorFlowNestedGradients, H01_LoopInALoop) {
  const auto f = [](const Tensors& x) {
    return while_loop(
        below(2),
        [](Tensor x) {
          return while_loop(
                     below(4), [](Tensor x) { return x * 2.0; }, x) *
                 2.0;
        },
        x[0]);
  };
  expect_derivatives(f, {scalar(1.0)}, 8, {{8}});
}

TEST_P(TensorFlowNestedGradients, H02_TwoLoopsInALoop) {
  const auto f = [](const Tensors& x) {
    return while_loop(
        below(128), [](Tensor x) { return doubled(4, doubled(4, x)); }, x[0]);
  };
  expect_derivatives(f, {scalar(1.0)}, 256, {{256}});
}

TEST_P(TensorFlowNestedGradients, H04_LoopInABranchInALoop) {
  const auto with = [](auto pred) {
    return [=](const Tensors& x) {
      return while_loop(
          below(128),
          [&](Tensor x) {
            return cond(
                pred(x), [&] { return square(doubled(4, x)); }, [&] { return x * 2.0; });
          },
          x[0]);
    };
  };
  expect_derivatives(with([](const Tensor&) { return true; }), {scalar(1.0)}, 256, {{512}});
  expect_derivatives(with([](const Tensor&) { return scalar(0) < 1; }), {scalar(1.0)}, 256,
                     {{512}});
  // 0.25, 0.5, 1 by doubling, and then the loop: (16 x)² from x = 4 · 0.25.
  expect_derivatives(with([](const Tensor& x) { return x > 0.9; }), {scalar(0.25)}, 256, {{2048}});
}

TEST_P(TensorFlowNestedGradients, H07_MapByArraysInALoop) {
  const auto mapped = [](const Tensors& x) {
    const TensorArray elements = TensorArray::unstack(x[0], 0);
    const auto [i, out] =
        while_loop([](const Tensor& i, const TensorArray&) { return i < 6; },
                   [&](const Tensor& i, const TensorArray& out) {
                     return std::tuple{i + 1, out.push_back(elements.read(i) * x[1])};
                   },
                   std::tuple{scalar(0), TensorArray(TensorType(x[0].dtype()))});
    return out.stack(Dim(6));
  };
  const Tensors x{tensor({1., 2., 3., 4., 5., 6.}), scalar(2.0)};
  expect_values(run(mapped)(x), {2, 4, 6, 8, 10, 12});
  expect_derivatives([=](const Tensors& x) { return sum(mapped(x)); }, x, 42,
                     {{2, 2, 2, 2, 2, 2}, {21}});
  expect_derivatives([=](const Tensors& x) { return sum(square(mapped(x))); }, x, 364,
                     {{8, 16, 24, 32, 40, 48}, {364}});
}

// n⁰ + n¹ + ... + n⁵. The outer state sets the length of the loop that computes each power.
TEST_P(TensorFlowNestedGradients, H08_SumOfPowers) {
  const auto f = [](const Tensors& x) {
    const Tensor& n = x[0];
    const Tensor one = scalar(1.0, n.dtype()), zero = scalar(0.0, n.dtype());
    return std::get<1>(while_loop([](Tensor i, Tensor) { return i >= 0.0; },
                                  [&](Tensor i, Tensor total) {
                                    const auto [c, power] =
                                        while_loop([](Tensor c, Tensor) { return c > 0.0; },
                                                   [&](Tensor c, Tensor v) {
                                                     return std::tuple{c - 1.0, v * n};
                                                   },
                                                   std::tuple{i, one});
                                    return std::tuple{i - 1.0, total + power};
                                  },
                                  std::tuple{scalar(5.0, n.dtype()), zero}));
  };
  expect_derivatives(f, {scalar(3.0)}, 364, {{547}});
}

TEST_P(TensorFlowNestedGradients, CaptureOfTwoLevels) {
  // The inner body reads x[1] from outside both loops, the outer state, and the inner one.
  const auto f = [](const Tensors& x) {
    const auto [i, y] = while_loop([](Tensor i, Tensor) { return i < 2; },
                                   [&](Tensor i, Tensor y) {
                                     const Tensor z = repeat(
                                         i + 1, [&](Tensor z) { return z * x[1] + y * x[2]; }, y);
                                     return std::tuple{i + 1, z};
                                   },
                                   std::tuple{scalar(0), x[0]});
    return y;
  };
  // y -> y w + y u = y (w + u); then z -> z w + y u twice: y (w² + u w + u).
  const double y = 2, w = 3, u = 0.5, a = w + u, b = w * w + u * w + u;
  expect_derivatives(f, {scalar(y), scalar(w), scalar(u)}, y * a * b,
                     {{a * b}, {y * (b + a * (2 * w + u))}, {y * (b + a * (w + 1))}});
}

TEST_P(TensorFlowNestedGradients, InnerLoopsThatRunZeroTimesInSomeIterations) {
  const auto f = [](const Tensors& x) {
    const auto [i, y] =
        while_loop([](Tensor i, Tensor) { return i < 4; },
                   [&](Tensor i, Tensor y) {
                     return std::tuple{i + 1, repeat(
                                                  i % 2, [&](Tensor z) { return z * x[1]; }, y)};
                   },
                   std::tuple{scalar(0), x[0]});
    return y;
  };
  expect_derivatives(f, {scalar(2.0), scalar(3.0)}, 18, {{9}, {12}});
}

TEST_P(TensorFlowNestedGradients, DerivativesPassThroughThreeNestedLoops) {
  const auto f = [](const Tensors& x) {
    return repeat(
        2,
        [&](Tensor y) {
          return repeat(
                     2,
                     [&](Tensor z) {
                       return repeat(
                           2, [&](Tensor u) { return u * x[1]; }, z);
                     },
                     y) +
                 x[1];
        },
        x[0]);
  };
  // y -> y w⁴ + w, twice: y w⁸ + w⁵ + w.
  const double y = 0.5, w = 1.5;
  expect_derivatives(f, {scalar(y), scalar(w)}, y * std::pow(w, 8) + std::pow(w, 5) + w,
                     {{std::pow(w, 8)}, {8 * y * std::pow(w, 7) + 5 * std::pow(w, 4) + 1}},
                     {.tolerance = 2e-6});
}

TEST_P(TensorFlowNestedGradients, LoopInsideACondInsideALoopReadsARow) {
  // TensorFlow 1 gives wrong numbers here: each branch loops over rows of a captured variable.
  const auto f = [](const Tensors& x) {
    const auto [i, y] =
        while_loop([](Tensor i, Tensor) { return i < 3; },
                   [&](Tensor i, Tensor y) {
                     const auto from = [&](const Tensor& row) {
                       return [&, row] {
                         return repeat(
                             2, [&](Tensor z) { return z + gather(x[1], row, 0); }, y);
                       };
                     };
                     return std::tuple{i + 1, cond(i % 2 == 0, from(i), from(scalar(3)))};
                   },
                   std::tuple{scalar(0), x[0]});
    return square(y);
  };
  // Rows 0, 3, 2, each twice: y + 2 (1 + 8 + 4) = 30.
  expect_derivatives(f, {scalar(4.0), tensor({1., 2., 4., 8.})}, 900, {{60}, {120, 0, 120, 120}});
}

TEST_P(TensorFlowNestedGradients, StopGradientBetweenLoops) {
  const auto f = [](const Tensors& x) {
    return repeat(
        2,
        [&](Tensor y) {
          return y * stop_gradient(repeat(
                         2, [&](Tensor z) { return z * x[1]; }, y));
        },
        x[0]);
  };
  // y -> y · (y w²) with the second factor constant: y0 = 2, w = 0.5: 1, 0.25.
  expect_derivatives(f, {scalar(2.0), scalar(0.5)}, 0.25, {{0.125}, {0}},
                     {.agrees_with_differences = false});
}

TEST_P(TensorFlowNestedGradients, GradientOfAnInnerLoopAsTheStep) {
  // Newton's method for w s⁴/4 - s. The inner function is a loop, its first and second gradients
  // are taken in the body, and the result is differentiated by w: s = w^(-1/3).
  const auto f = [](const Tensors& x) {
    const auto objective = [&](Tensor s) {
      return x[0] * repeat(
                        4, [&](Tensor z) { return z * s; }, scalar(0.25, s.dtype())) -
             s;
    };
    return repeat(
        12, [&](Tensor s) { return s - grad(objective)(s) / grad(grad(objective))(s); },
        scalar(1.0, x[0].dtype()));
  };
  expect_derivatives(f, {scalar(8.0)}, 0.5, {{-1. / 3 / 8 * 0.5}},
                     {.has_same_bits = false, .tolerance = 1e-5});
}

}  // namespace
}  // namespace reel
