// Second and higher gradients of loops that TensorFlow's users rely on.
#include "reel/tests/cases/derivatives.h"

namespace reel {
namespace {

using TensorFlowHigherOrder = DerivativesInEveryMode;
REEL_IN_EVERY_MODE(TensorFlowHigherOrder);

TEST_P(TensorFlowHigherOrder, S01_RepeatedSquaringHasDerivativesToTheFifthOrder) {
  const auto f = [](Tensor v) {
    return while_loop([](Tensor v) { return v < 8.0; }, [](Tensor v) { return v * v; }, v);
  };
  const Tensor x = scalar(2.0);
  expect_values(run(f)(x), {16});
  expect_values(run(grad(f))(x), {32});
  expect_values(run(grad(grad(f)))(x), {48});
  expect_values(run(grad(grad(grad(f))))(x), {48});
  expect_values(run(grad(grad(grad(grad(f)))))(x), {24});
  expect_values(run(grad(grad(grad(grad(grad(f))))))(x), {0});
  expect_values(grad(grad(grad(jit(f))))(x), {48});
  expect_values(grad(jit(grad(jit(grad(f)))))(x), {48});
}

TEST_P(TensorFlowHigherOrder, S01_MixedWithRespectToACaptureAndTheState) {
  // y = x a³: d²y/dx da = 3 a², d³y/dx da² = 6 a.
  const auto f = [](Tensor x, Tensor a) {
    return while_loop([](Tensor) { return true; }, [&](Tensor v) { return v * a; }, x,
                      {.maximum_iterations = 3});
  };
  const auto dx = [=](Tensor a, Tensor x) { return grad(f)(x, a); };
  const Tensor x = scalar(2.0), a = scalar(5.0);
  expect_values(run(dx)(a, x), {125});
  expect_values(run(grad(dx))(a, x), {75});
  expect_values(run(grad(grad(dx)))(a, x), {30});
  expect_values(run(grad(grad(grad(dx))))(a, x), {6});
  expect_values(run(grad(grad(grad(grad(dx)))))(a, x), {0});
}

TEST_P(TensorFlowHigherOrder, S02_LoopsInSeries) {
  const auto once = [](const Tensor& x) {
    return while_loop([](Tensor) { return true; }, [](Tensor v) { return v * v; }, x,
                      {.maximum_iterations = 1});
  };
  const auto f = [=](Tensor x) { return once(once(x)); };
  expect_values(run(grad(f))(scalar(2.0)), {32});
  expect_values(run(grad(grad(f)))(scalar(2.0)), {48});
  expect_values(run(grad(grad(grad(f))))(scalar(2.0)), {48});
}

TEST_P(TensorFlowHigherOrder, S07_ScanOverNumbers) {
  const auto sums = [](Tensor theta, Tensor x) {
    return scan(Scan{.initial = scalar(0.0, theta.dtype()),
                     .xs = x,
                     .body =
                         [&](Tensor x, Tensor s) {
                           const Tensor next = s + x * theta;
                           return std::pair{next, next};
                         }})
        .ys;
  };
  // The first sum is the first number, without theta.
  const auto f = [=](Tensor theta, Tensor x) {
    const Tensor rest = slice(x, 0, 1), first = slice(x, 0, 0, 1);
    return concat({first, first + sums(theta, rest)}, 0);
  };
  const Tensor theta = scalar(1.0), x = tensor({1., 2., 3.});
  expect_values(run(f)(theta, x), {1, 3, 6});
  const auto total = [=](Tensor theta, Tensor x) { return sum(f(theta, x)); };
  expect_values(run(grad(total))(theta, x), {7});
  expect_values(run(grad(grad(total)))(theta, x), {0});
  const auto squares = [=](Tensor theta, Tensor x) { return sum(square(f(theta, x))); };
  expect_values(run(grad(grad(squares)))(theta, x), {2 * (4 + 25)});
}

TEST_P(TensorFlowHigherOrder, S08_ThroughAnArrayThatALoopWritesAndReads) {
  // a[i + 1] = a[i]² three times: x⁸.
  const auto f = [](Tensor x) {
    const auto [i, a] =
        while_loop([](const Tensor& i, const TensorArray&) { return i < 3; },
                   [](const Tensor& i, const TensorArray& a) {
                     return std::tuple{i + 1, a.write(i + 1, square(a.read(i)))};
                   },
                   std::tuple{scalar(0), TensorArray(x.type(), {.size = 4}).write(0, x)});
    return a.read(3);
  };
  const Tensor x = scalar(1.5, f64);
  expect_values(run(f)(x), {std::pow(1.5, 8)});
  expect_values(run(grad(f))(x), {8 * std::pow(1.5, 7)});
  expect_values(run(grad(grad(f)))(x), {56 * std::pow(1.5, 6)});
  expect_values(run(grad(grad(grad(f))))(x), {336 * std::pow(1.5, 5)});
}

TEST_P(TensorFlowHigherOrder, S09_PowersOfTensorsOfAnyShape) {
  // Residuals have the shape of the state, for any shape.
  const auto cube = [](Tensor x) {
    const auto [i, y] = while_loop([](Tensor i, Tensor) { return i < 2; },
                                   [&](Tensor i, Tensor y) {
                                     return std::tuple{i + 1, y * x};
                                   },
                                   std::tuple{scalar(0), x});
    return y;
  };
  const auto first = run(grad([=](Tensor x) { return sum(cube(x)); }));
  const auto second =
      run(grad([=](Tensor x) { return sum(grad([=](Tensor x) { return sum(cube(x)); })(x)); }));
  const Dim batch("batch", 2);
  const Dim time("time", tensor({2, 1}, {batch}));
  for (const Dims& dims :
       {Dims{}, Dims{2}, Dims{1, 2}, Dims{0, 2}, Dims{batch}, Dims{batch, time}}) {
    const Tensor x = full(dims, 3.0);
    const Tensor g = first(x), h = second(x);
    EXPECT_EQ(str(g.type()), str(x.type()));
    EXPECT_EQ(str(h.type()), str(x.type()));
    expect_all_close(mask_padding(g), mask_padding(full(dims, 27.0)));
    expect_all_close(mask_padding(h), mask_padding(full(dims, 18.0)));
  }
}

TEST_P(TensorFlowHigherOrder, OneTraceServesAllSizesOfANamedDim) {
  const auto second = run([](Tensor x) {
    const auto cube = [](Tensor x) {
      return sum(while_loop([](Tensor) { return true; }, [&](Tensor y) { return y * x; }, x,
                            {.maximum_iterations = 2}));
    };
    return grad([=](Tensor x) { return sum(grad(cube)(x)); })(x);
  });
  for (const int size : {3, 1, 0, 5}) {
    const Tensor x = full({Dim("row", size)}, 2.0);
    expect_values(second(x), std::vector<double>(size, 12));
  }
}

TEST_P(TensorFlowHigherOrder, PullbacksOfALoopMayBeCalledTwice) {
  const auto f = run([](Tensor x, Tensor c) {
    const auto [y, pullback] = vjp(
        [](Tensor x) {
          return while_loop([](Tensor v) { return sum(v) < 30.0; }, [](Tensor v) { return v * v; },
                            x);
        },
        x);
    return std::tuple{y, pullback(c), pullback(c * 2.0)};
  });
  const auto [y, once, twice] = f(tensor({2., 1.}), tensor({1., 10.}));
  expect_values(y, {256, 1});  // sums 3, 5, 17, 257
  expect_values(once, {1024, 80});
  expect_values(twice, {2048, 160});
}

}  // namespace
}  // namespace reel
