// Gradients of loops in forward and reverse mode, after the tests of JAX and Dr.Jit.
#include <array>

#include "reel/tests/gradients.h"
#include "reel/tests/modes.h"

namespace reel {
namespace {

class MoreGradients : public InEveryMode {
 protected:
  /// Expects this derivative of f, from a scalar to a scalar, in reverse and forward mode. Mixed
  /// second derivatives must agree with each other and with differences.
  template <class F>
  void expect_derivative(const F& f, double at, double expected, double tolerance = 1e-12) {
    const Tensor x = scalar(at, f64);
    const auto forwards = [](const auto& f) {
      return [f](const Tensor& x) { return jvp(f, x, ones_like(x)).second; };
    };
    expect_values(run(grad(f))(x), {expected}, tolerance);
    expect_values(run(forwards(f))(x), {expected}, tolerance);
    expect_gradient_of(f, x, grad(f)(x));
    const Tensor second = grad(grad(f))(x);
    expect_gradient_of(grad(f), x, second);
    expect_all_close(run(grad(grad(f)))(x), second, tolerance);
    expect_all_close(run(grad(forwards(f)))(x), second, tolerance);
    expect_all_close(run(forwards(grad(f)))(x), second, tolerance);
    expect_all_close(run(forwards(forwards(f)))(x), second, tolerance);
  }
};
REEL_IN_EVERY_MODE(MoreGradients);

template <class Body, class State>
State three_times(Body body, const State& initial) {
  return fori_loop(
      0, 3, [&](const Tensor&, const State& s) { return body(s); }, initial);
}

TEST_P(MoreGradients, J35_ActivityGrowsOverIterations) {
  using State = std::array<Tensor, 3>;
  const auto f = [](const Tensor& x) {
    return fori_loop(
        0, 2,
        [](const Tensor&, const State& s) {
          return State{s[0], square(s[0]), square(s[1])};
        },
        State{x, scalar(1.0, f64), scalar(1.0, f64)})[2];
  };
  expect_derivative(f, 1.5, 4 * 1.5 * 1.5 * 1.5);
}

TEST_P(MoreGradients, J37_CarryThatTheBodyDrops) {
  const auto f = [](const Tensor& x) {
    const auto [a, b] = fori_loop(
        0, 5,
        [](const Tensor&, const std::pair<Tensor, Tensor>& s) {
          return std::pair{zeros_like(s.first), zeros_like(s.second)};
        },
        std::pair{x, scalar(0.0, f64)});
    return a + b;
  };
  expect_values(run(f)(scalar(3.0, f64)), {0});
  expect_derivative(f, 3, 0);
}

TEST_P(MoreGradients, J38_CarryBesideAConstantOne) {
  const auto f = [](const Tensor& x) {
    return three_times(
               [](const std::pair<Tensor, Tensor>& s) {
                 return std::pair{2.0 * s.first, zeros_like(s.second)};
               },
               std::pair{x, scalar(0.0, f64)})
        .first;
  };
  expect_values(run(f)(scalar(1.5, f64)), {12});
  expect_derivative(f, 1.5, 8);
}

TEST_P(MoreGradients, J41_SecondOrderOfRepeatedSquaring) {
  const auto f = [](const Tensor& x) {
    return std::get<1>(while_loop([](Tensor i, Tensor) { return i < 3; },
                                  [](Tensor i, Tensor y) {
                                    return std::tuple{i + 1, y * y};
                                  },
                                  std::tuple{0, x}));
  };
  const Tensor x = scalar(1.1, f64);
  expect_values(run(f)(x), {2.14358881}, 1e-8);
  expect_derivative(f, 1.1, 15.58973681, 1e-8);
  expect_values(run(grad(grad(f)))(x), {99.207416}, 1e-6);
  expect_values(run(grad(grad(grad(f))))(x), {8 * 7 * 6 * std::pow(1.1, 5)}, 1e-9);
  expect_values(run(grad(grad(grad(grad(f)))))(x), {8 * 7 * 6 * 5 * std::pow(1.1, 4)}, 1e-9);
}

TEST_P(MoreGradients, D8_DoublesOnEveryLane) {
  const auto f = [](const Tensor& y) {
    return sum(three_times([](const Tensor& y) { return 2.0 * y; }, y));
  };
  expect_values(run(grad(f))(tensor({1., 2., 3., 4.})), {8, 8, 8, 8});
}

TEST_P(MoreGradients, D10_LanesDoubleAsOftenAsTheySay) {
  const Dim lane("lane", 4);
  const Tensor y = tensor({1., 2., 3., 4.}, {lane}, f64), counts = tensor({1, 2, 3, 4}, {lane});
  const auto by_lengths = [](const Tensor& y, const Tensor& counts) {
    return sum(scan(Scan{.spatial_dim = Dim("step", counts),
                         .initial = y,
                         .body =
                             [](const Tensor& y) {
                               return std::pair{None{}, 2.0 * y};
                             }})
                   .state);
  };
  using State = std::pair<Tensor, Tensor>;
  const auto by_condition = [](const Tensor& y, const Tensor& counts) {
    return sum(scan(Scan{.cond_dims = counts.dims(),
                         .initial = State{zeros_like(counts), y},
                         .cond = [&](const State& s) { return s.first < counts; },
                         .body =
                             [](const State& s) {
                               return std::pair{None{}, State{s.first + 1, 2.0 * s.second}};
                             }})
                   .state.second);
  };
  for (const auto& gradient :
       {run(grad(by_lengths))(y, counts), run(grad(by_condition))(y, counts)})
    expect_values(gradient, {2, 4, 8, 16});
  const auto forwards = [&](const auto& f) {
    return run([f](const Tensor& y, const Tensor& counts) {
      return jvp([&](const Tensor& y) { return f(y, counts); }, y, ones_like(y)).second;
    })(y, counts);
  };
  expect_values(forwards(by_lengths), {30});
  expect_values(forwards(by_condition), {30});
}

TEST_P(MoreGradients, D12_ALoopThatSumsPowersHasItsDerivative) {
  const auto f = [](const Tensor& x) {
    return fori_loop(
        0, 10, [&](const Tensor& i, const Tensor& y) { return y + pow(x, cast(i, f64)); },
        zeros_like(x));
  };
  double expected = 0;
  for (int i = 1; i < 10; ++i) expected += i * std::pow(0.9, i - 1);
  expect_derivative(f, 0.9, expected);
}

TEST_P(MoreGradients, D16_OnlySomeOutputsAreAskedFor) {
  using State = std::array<Tensor, 3>;
  const auto f = [](int which) {
    return [which](const Tensor& x) {
      return three_times(
          [](const State& s) {
            return State{s[0] * s[0], s[1] * s[0], exp(s[2])};
          },
          State{x, x, x})[which];
    };
  };
  expect_derivative(f(0), 1.1, 8 * std::pow(1.1, 7));
  expect_derivative(f(1), 1.1, 8 * std::pow(1.1, 7));  // x · x · x² · x⁴
}

}  // namespace
}  // namespace reel
