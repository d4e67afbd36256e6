// First gradients of loops that TensorFlow's users rely on. derivatives.h also checks second
// gradients and other placements of each case.
#include "reel/tests/cases/derivatives.h"

namespace reel {
namespace {

using TensorFlowGradients = DerivativesInEveryMode;
REEL_IN_EVERY_MODE(TensorFlowGradients);

TEST_P(TensorFlowGradients, G01_RepeatedSquaringHasItsDerivative) {
  const auto f = [](const Tensors& x) {
    return while_loop(
        below(8), [](Tensor v) { return v * v; }, x[0]);
  };
  expect_derivatives(f, {scalar(2.0)}, 16, {{32}});
}

TEST_P(TensorFlowGradients, G02_OtherStateAsAFactor) {
  const auto loop = [](const Tensors& x) {
    return while_loop([](Tensor v, Tensor) { return v < 45.0; },
                      [](Tensor v, Tensor w) {
                        return std::tuple{v * w, w};
                      },
                      std::tuple{x[0], x[1]});
  };
  const auto f = [=](const Tensors& x) { return std::get<0>(loop(x)); };
  expect_derivatives(f, {scalar(5.0), scalar(3.0)}, 45, {{9}, {30}});
  const auto other = [=](const Tensors& x) { return std::get<1>(loop(x)); };
  expect_derivatives(other, {scalar(5.0), scalar(3.0)}, 3, {{0}, {1}});
}

TEST_P(TensorFlowGradients, G04_ResultThatIsUsedOnceOrTwice) {
  const auto r = [](const Tensors& x) { return while_loop(below(100), square, x[0]); };
  expect_derivatives(r, {scalar(2.0)}, 256, {{1024}});
  expect_derivatives([=](const Tensors& x) { return r(x) * r(x); }, {scalar(2.0)}, 65536,
                     {{524288}});
  const auto twice = [=](const Tensors& x) {
    const Tensor once = r(x);
    return once + once;
  };
  expect_derivatives(twice, {scalar(2.0)}, 512, {{2048}});
}

TEST_P(TensorFlowGradients, G05_G06_CaptureHasItsDerivative) {
  for (const int parallel : {1, 10}) {
    const auto f = [=](const Tensors& x) {
      return while_loop(below(100), [&](Tensor v) { return v * x[1]; }, x[0],
                        {.parallel_iterations = parallel});
    };
    expect_derivatives(f, {scalar(2.0), scalar(3.0)}, 162, {{81}, {216}});
  }
}

TEST_P(TensorFlowGradients, G05_CaptureThatTheConditionReadsToo) {
  const auto f = [](const Tensors& x) {
    return while_loop([&](Tensor v) { return v < x[1] * 30.0; }, [&](Tensor v) { return v * x[1]; },
                      x[0]);
  };
  expect_derivatives(f, {scalar(2.0), scalar(3.0)}, 162, {{81}, {216}});
  const auto only_the_condition = [](const Tensors& x) {
    return while_loop([&](Tensor v) { return v < x[1]; }, [](Tensor v) { return v * 2.0; }, x[0]);
  };
  expect_derivatives(only_the_condition, {scalar(1.0), scalar(10.0)}, 16, {{16}, {0}});
}

TEST_P(TensorFlowGradients, G05_OneTensorAsStateCaptureAndBound) {
  const auto f = [](const Tensors& x) {
    const Tensor& v = x[0];
    const auto [a, b] = while_loop([&](Tensor a, Tensor) { return a < v * 20.0; },
                                   [&](Tensor a, Tensor b) {
                                     return std::tuple{a * v, b + a};
                                   },
                                   std::tuple{v, v});
    return a * b;
  };
  // a: v² v³ v⁴ v⁵ (v = 2.5: 6.25, 15.6, 39.1, 97.7 >= 50), b: v + v + v² + v³ + v⁴.
  const double v = 2.5, b = 2 * v + v * v + v * v * v + v * v * v * v;
  expect_derivatives(
      f, {scalar(v)}, std::pow(v, 5) * b,
      {{5 * std::pow(v, 4) * b + std::pow(v, 5) * (2 + 2 * v + 3 * v * v + 4 * v * v * v)}},
      {.tolerance = 2e-6});
}

TEST_P(TensorFlowGradients, G08_IntegerResultsAreNoMatter) {
  const auto f = [](const Tensors& x) {
    const auto [i, rx] = while_loop([](Tensor i, Tensor) { return i < 10; },
                                    [](Tensor i, Tensor x) {
                                      return std::tuple{i + 1, x * 2.0};
                                    },
                                    std::tuple{scalar(0), x[0]});
    return cast(i, rx.dtype()) + rx;
  };
  expect_derivatives(f, {scalar(2.0)}, 2058, {{1024}});
}

TEST_P(TensorFlowGradients, G09_LoopsInSeriesAndSideBySide) {
  const auto doubled = [](const Tensor& x) {
    return repeat(
        5, [](const Tensor& x) { return x * 2.0; }, x);
  };
  expect_derivatives([=](const Tensors& x) { return doubled(doubled(x[0])); }, {scalar(2.0)}, 2048,
                     {{1024}});
  expect_derivatives([=](const Tensors& x) { return doubled(x[0]) + doubled(x[0]); }, {scalar(2.0)},
                     128, {{64}});
}

TEST_P(TensorFlowGradients, G10_OneOfThreeResults) {
  const auto f = [](const Tensors& x) {
    const auto [i, xf, yf] = while_loop([](Tensor i, Tensor, Tensor) { return i < 1; },
                                        [](Tensor i, Tensor x, Tensor y) {
                                          return std::tuple{i + 1, x, x + y};
                                        },
                                        std::tuple{scalar(0), x[0], x[1]});
    return yf;
  };
  expect_derivatives(f, {scalar(1.0), scalar(1.0)}, 2, {{1}, {1}});
}

TEST_P(TensorFlowGradients, G21_ScalarTimesACapturedMatrix) {
  const auto f = [](const Tensors& x) {
    return repeat(
        2, [&](const Tensor& y) { return y * sum(x[1] * x[2]); }, x[0]);
  };
  expect_derivatives(f, {scalar(1.0), ones({2, 2}), scalar(1.0)}, 16, {{16}, {8, 8, 8, 8}, {32}},
                     {.tolerance = 1e-6});
}

TEST_P(TensorFlowGradients, G22_RowsOfAVariable) {
  const auto f = [](const Tensors& x) {
    return repeat(
        3,
        [&](const Tensor& y) {
          return y * sum(gather(x[1], tensor({1, 3}), 0));
        },
        x[0]);
  };
  expect_derivatives(f, {scalar(1.0), ones({5})}, 8, {{8}, {0, 12, 0, 12, 0}});
}

TEST_P(TensorFlowGradients, G22_RowsThatTheStateChooses) {
  const auto f = [](const Tensors& x) {
    const auto [i, y] = while_loop([](Tensor i, Tensor) { return i < 4; },
                                   [&](Tensor i, Tensor y) {
                                     return std::tuple{i + 1, y * gather(x[1], (i * 3) % 5, 0)};
                                   },
                                   std::tuple{scalar(0), x[0]});
    return y;
  };
  // Elements 0, 3, 1, 4 of {1, 2, 3, 4, 5}: 1 · 4 · 2 · 5.
  expect_derivatives(f, {scalar(1.0), tensor({1., 2., 3., 4., 5.})}, 40,
                     {{40}, {40, 20, 0, 10, 8}});
}

TEST_P(TensorFlowGradients, G24_JittedFunctionsInABody) {
  const auto total = jit([](const Tensor& x, const Tensor& v) {
    return x + sum(gather(v, tensor({1, 3}), 0));
  });
  const auto f = [=](const Tensors& x) {
    return repeat(
        2, [&](const Tensor& y) { return total(y, x[0]); }, scalar(0.0, x[0].dtype()));
  };
  expect_derivatives(f, {ones({4})}, 4, {{0, 2, 0, 2}});
}

TEST_P(TensorFlowGradients, G24_LoopInAJittedFunctionInABody) {
  const auto inner = jit([](const Tensor& x, const Tensor& v) {
    return repeat(
        3,
        [&](const Tensor& y) {
          return y + sum(gather(v, tensor({1, 2}), 0));
        },
        x);
  });
  const auto f = [=](const Tensors& x) {
    return repeat(
        2, [&](const Tensor& y) { return inner(y, x[0]); }, scalar(0.0, x[0].dtype()));
  };
  expect_derivatives(f, {ones({4})}, 12, {{0, 6, 6, 0}});
}

TEST_P(TensorFlowGradients, G26_CondInABody) {
  const auto with = [](auto pred) {
    return [=](const Tensors& x) {
      return while_loop(
          below(100),
          [&](Tensor v) {
            return cond(
                pred(v), [&] { return square(v); }, [&] { return v - 1.0; });
          },
          x[0]);
    };
  };
  expect_derivatives(with([](const Tensor&) { return true; }), {scalar(2.0)}, 256, {{1024}});
  expect_derivatives(with([](const Tensor&) { return scalar(1) < 2; }), {scalar(2.0)}, 256,
                     {{1024}});
  // The predicate reads the state: 2, 4, 16, then one step back to 15, and 225.
  expect_derivatives(with([](const Tensor& v) { return v < 15.9 && v > 0.0; }), {scalar(2.0)}, 225,
                     {{2 * 15 * 32}});
}

TEST_P(TensorFlowGradients, G28_GradientAfterItsValueWasRead) {
  const auto loop = run([](Tensor x) {
    const auto [y, gradient] = value_and_grad([](Tensor x) {
      return repeat(
          2, [](const Tensor& x) { return square(x); }, x);
    })(x);
    print(y, "result");
    return std::pair{y, gradient + 0.0 * y};
  });
  testing::internal::CaptureStdout();
  const auto [y, gradient] = loop(scalar(2.0));
  // The result of the last print is not needed.
  EXPECT_EQ(testing::internal::GetCapturedStdout(), is_dataflow() ? "" : "result: f32[] 16.0\n");
  expect_values(gradient, {32});
}

TEST_P(TensorFlowGradients, G30_BodyWithAGradientOfItsOwn) {
  const auto body_of = [](double factor) {
    return custom_vjp(
        [](const Tensor& v, const Tensor& m) {
          return std::pair{v * v * m, std::tuple{v, m}};
        },
        [factor](const std::tuple<Tensor, Tensor>& kept, const Tensor& n) {
          const auto& [v, m] = kept;
          return std::tuple{factor * v * n * m, n * v * v};
        });
  };
  const auto with = [&](double factor) {
    return [body = body_of(factor)](const Tensors& x) {
      return while_loop(
          below(8), [&](Tensor v) { return body(v, x[1]); }, x[0]);
    };
  };
  expect_derivatives(with(2), {scalar(2.0), scalar(1.0)}, 16, {{32}, {48}});
  // This rule is not the true derivative: the gradient shows that both iterations used it.
  expect_derivatives(with(3), {scalar(2.0), scalar(1.0)}, 16, {{72}, {64}},
                     {.agrees_with_differences = false});
}

TEST_P(TensorFlowGradients, G31_StateThatGrowsByACapture) {
  const auto grown = [](const Tensors& x) {
    const auto [i, h] =
        while_loop([](Tensor i, Tensor) { return i < 2; },
                   [&](Tensor i, Tensor h) {
                     return std::tuple{i + 1, concat({h, x[0]}, 0)};
                   },
                   std::tuple{scalar(0), zeros({0, 2}, x[0].dtype())},
                   {.shape_invariants = {PartialShape{}, PartialShape{unknown, 2}}});
    return h;
  };
  const auto f = [=](const Tensors& x) { return sum(grown(x)); };
  const Tensor x = tensor({{1., 2.}});
  expect_derivatives(f, {x}, 6, {{2, 2}});
  expect_values(x - 0.01 * run(grad(f))(Tensors{x})[0], {0.98, 1.98});
  expect_derivatives([=](const Tensors& x) { return sum(square(grown(x))); }, {x}, 10, {{4, 8}});
}

TEST_P(TensorFlowGradients, G36_GradientTakenInABranchAndInABody) {
  const auto r = [](const Tensor& x) {
    return while_loop(
        below(10), [&](Tensor n) { return n + x; }, scalar(1.0));
  };
  const auto in_a_branch = run([=](Tensor p, Tensor x) {
    return cond(
        p, [&] { return grad(r)(x); }, [&] { return x; });
  });
  expect_values(in_a_branch(scalar(true), scalar(1.0)), {9});
  expect_values(in_a_branch(scalar(false), scalar(1.0)), {1});
  const auto in_a_body = run([=](Tensor x) {
    return while_loop(
        below(6), [&](Tensor) { return grad(r)(x); }, x);
  });
  expect_values(in_a_body(scalar(1.0)), {9});
}

// TensorFlow 1 refuses this: a gradient in a body with respect to a loop's initial value.
TEST_P(TensorFlowGradients, G37_GradientInABodyThroughAnInitialValue) {
  // z(x) = v · 2^k from v = x² + 1, the k-th iteration of an outer loop adds dz/dx = 2 x 2^k.
  const auto f = [](const Tensors& x) {
    const auto [k, total] = while_loop(
        [](Tensor k, Tensor) { return k < 3; },
        [&](Tensor k, Tensor total) {
          const Tensor g = grad([&](Tensor x) {
            return while_loop([](Tensor) { return true; }, [](Tensor v) { return v * 2.0; },
                              x * x + 1.0, {.maximum_iterations = k});
          })(x[0]);
          return std::tuple{k + 1, total + g};
        },
        std::tuple{scalar(0), scalar(0.0, x[0].dtype())});
    return total;
  };
  expect_derivatives(f, {scalar(1.5)}, 2 * 1.5 * 7, {{14}});
}

TEST_P(TensorFlowGradients, G37_GradientInABodyWithRespectToTheState) {
  // s -> d/ds of a loop over s and a capture: s³ w (three factors s, from w), twice.
  const auto f = [](const Tensors& x) {
    return repeat(
        2,
        [&](const Tensor& s) {
          return grad([&](Tensor s) {
            return repeat(
                3, [&](const Tensor& y) { return y * s; }, x[1]);
          })(s);
        },
        x[0]);
  };
  // 3 s² w: s = 0.5, w = 2 -> 1.5 -> 13.5; y = 27 w³ s⁴.
  expect_derivatives(f, {scalar(0.5), scalar(2.0)}, 13.5, {{108 * 8 * 0.125}, {81 * 4 * 0.0625}});
}

// In eager mode a tape may be asked in the middle of a loop, also about values before it.
TEST(TensorFlowEagerGradients, G37_TapeFromOutsideIsAskedInEveryIteration) {
  Tape tape({.persistent = true});
  const Tensor x = scalar(1.5);
  tape.watch(x);
  const Tensor y = x * x + 1.0;
  std::vector<double> gradients;
  while_loop([](Tensor i, Tensor) { return i < 3; },
             [&](Tensor i, Tensor v) {
               const Tensor z = v * 2.0;
               gradients.push_back(values_of(tape.gradient(z, x))[0]);
               return std::tuple{i + 1, z};
             },
             std::tuple{scalar(0), y});
  EXPECT_EQ(gradients, (std::vector<double>{6, 12, 24}));
  expect_values(tape.gradient(y * y, x), {19.5});
}

TEST_P(TensorFlowGradients, G38_IdentitiesInABody) {
  const auto f = [](const Tensors& x) {
    return while_loop(
        below(8),
        [](Tensor v) {
          const Tensor same = identity(v);
          return identity(identity(same * v));
        },
        identity(x[0]));
  };
  expect_derivatives(f, {scalar(2.0)}, 16, {{32}});
}

TEST_P(TensorFlowGradients, G39_AJittedBodyHasItsDerivative) {
  const auto twice = jit([](const Tensor& x) { return x * 2.0; });
  const auto f = [=](const Tensors& x) { return while_loop(below(5), twice, x[0]); };
  expect_derivatives(f, {scalar(1.0)}, 8, {{8}});
}

TEST_P(TensorFlowGradients, G41_GradientDescentOnASimplex) {
  // Exponentiated gradient: each iteration takes a gradient, and the result is differentiated.
  const auto weights = [](const Tensor& c) {
    const auto [k, w, change] =
        while_loop([](Tensor k, Tensor, Tensor change) { return k < 10 && change > 1e-3; },
                   [&](Tensor k, Tensor w, Tensor) {
                     const Tensor g = grad([&](Tensor w) { return -sum(w * c); })(w);
                     Tensor next = w * exp(-0.1 * g);
                     next = next / sum(next);
                     return std::tuple{k + 1, next, sum(abs(next - w)) / sum(abs(w))};
                   },
                   std::tuple{scalar(0), ones_like(c) / 5.0, scalar(1e9, c.dtype())});
    return w;
  };
  // After ten steps w is the softmax of c.
  const Tensor c = tensor({0., 1., 2., 3., 4.});
  expect_all_close(run(weights)(c), softmax(c, {0}), 1e-6);
  expect_values(run(grad([=](Tensor c) { return sum(weights(c)); }))(c), {0, 0, 0, 0, 0}, 1e-6);
  const auto f = [=](const Tensors& x) { return sum(square(weights(x[0]))); };
  const std::vector<double> p = values_of(softmax(cast(c, f64), {0}));
  double value = 0;
  for (const double q : p) value += q * q;
  std::vector<double> gradient;
  for (const double q : p) gradient.push_back(2 * q * (q - value));
  expect_derivatives(f, {c}, value, {gradient});
}

TEST_P(TensorFlowGradients, StatesThatChangePlaces) {
  const auto f = [](const Tensors& x) {
    const auto [i, a, b, c] = while_loop([](Tensor i, Tensor, Tensor, Tensor) { return i < 4; },
                                         [](Tensor i, Tensor a, Tensor b, Tensor c) {
                                           return std::tuple{i + 1, b, c, a * b};
                                         },
                                         std::tuple{scalar(0), x[0], x[1], x[2]});
    return a * 100.0 + b * 10.0 + c;
  };
  // (a, b, c) -> (b, c, ab) -> (c, ab, bc) -> (ab, bc, abc) -> (bc, abc, ab²c)
  const double a = 2, b = 3, c = 5;
  expect_derivatives(f, {scalar(a), scalar(b), scalar(c)},
                     100 * b * c + 10 * a * b * c + a * b * b * c,
                     {{10 * b * c + b * b * c},
                      {100 * c + 10 * a * c + 2 * a * b * c},
                      {100 * b + 10 * a * b + a * b * b}});
}

TEST_P(TensorFlowGradients, TwoStatesThatAreOneTensor) {
  const auto f = [](const Tensors& x) {
    const auto [i, a, b] = while_loop([](Tensor i, Tensor, Tensor) { return i < 3; },
                                      [](Tensor i, Tensor a, Tensor b) {
                                        const Tensor both = a * b;
                                        return std::tuple{i + 1, both, both};
                                      },
                                      std::tuple{scalar(0), x[0], x[0]});
    return a + b * 2.0;
  };
  expect_derivatives(f, {scalar(1.5)}, 3 * std::pow(1.5, 8), {{24 * std::pow(1.5, 7)}});
}

TEST_P(TensorFlowGradients, G33_GatherOfALoopsResultHasItsDerivative) {
  const auto f = [](const Tensors& x) {
    const Tensor last = repeat(
        2, [](const Tensor& v) { return v * v; }, x[0]);
    return sum(gather(last, tensor({0}), 0));
  };
  expect_derivatives(f, {tensor({2.})}, 16, {{32}});
}

}  // namespace
}  // namespace reel
