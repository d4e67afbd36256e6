// vmap, switch_case, linearize, custom_jvp and associative_scan, with the numbers of JAX's tests.
// Each test has the name of JAX's test (lax_control_flow_test.py, custom_derivatives_test.py).
#include <cmath>
#include <numeric>

#include "reel/tests/modes.h"

namespace reel {
namespace {

using MoreTransforms = InEveryMode;
REEL_IN_EVERY_MODE(MoreTransforms);

/// A loop from x in steps, while x is below a bound.
Tensor steps_from(const Tensor& x, const Tensor& step, const Tensor& bound) {
  return while_loop([&](const Tensor& x) { return x < bound; },
                    [&](const Tensor& x) { return x + step; }, x);
}

TEST_P(MoreTransforms, J_WhileLoopBatched) {
  const auto f = vmap([](const Tensor& x) { return steps_from(x, scalar(2), scalar(3)); });
  expect_values(run(f)(tensor({0, 1, 2, 3})), {4, 3, 4, 3});
}

TEST_P(MoreTransforms, J_WhileLoopCondConstsBatched) {
  const auto f = vmap([](const Tensor& y) { return steps_from(scalar(0), scalar(2), y); });
  expect_values(run(f)(tensor({2, 3})), {2, 4});
}

TEST_P(MoreTransforms, J_WhileLoopBodyConstsBatched) {
  const auto f = vmap([](const Tensor& y) { return steps_from(scalar(0), y, scalar(3)); });
  expect_values(run(f)(tensor({2, 3})), {4, 3});
}

TEST_P(MoreTransforms, J_WhileLoopTupleBatched) {
  const auto f = vmap([](const Tensor& x, const Tensor& y) {
    return while_loop([](Tensor x, Tensor y) { return x + y < 5; },
                      [](Tensor x, Tensor y) {
                        return std::tuple{x + 1, y};
                      },
                      std::tuple{x, y});
  });
  const auto [x, y] = run(f)(tensor({0, 0}), tensor({1, 2}));
  expect_values(x, {4, 3});
  expect_values(y, {1, 2});
}

TEST_P(MoreTransforms, J_ForiLoopBatched) {
  const auto f = vmap([](const Tensor& x) {
    return fori_loop(
        0, 10,
        [](const Tensor&, const std::tuple<Tensor, Tensor>& s) {
          return std::tuple{std::get<0>(s) + 1, std::get<1>(s) + 2};
        },
        std::tuple{x, scalar(0)});
  });
  const auto [x, y] = run(f)(tensor({0, 1}));
  expect_values(x, {10, 11});
  expect_values(y, {20, 20});
}

TEST_P(MoreTransforms, J_VmapsOfWhileLoop) {
  const auto f = [](const Tensor& x) {
    return vmap([x](const Tensor& n) {
      return fori_loop(
          0, n, [](const Tensor&, const Tensor& x) { return x + 1; }, x);
    })(tensor({0, 1, 2, 3}));
  };
  expect_values(run(vmap(f))(tensor({0, 1, 2})), {0, 1, 2, 3, 1, 2, 3, 4, 2, 3, 4, 5});
}

TEST_P(MoreTransforms, J_VmapOfCondTakesTheBranchOfEachRow) {
  const auto f = [](const Tensor& x, const Tensor& y, const Tensor& z) {
    return cond(
        x < 3, [&] { return y; }, [&] { return -z; });
  };
  const Tensor y = tensor({1, 2}), z = tensor({3, 4});
  const auto of_one = [&](int x) {
    return run(vmap([f, x](const Tensor& y, const Tensor& z) { return f(scalar(x), y, z); }))(y, z);
  };
  expect_values(of_one(2), {1, 2});
  expect_values(of_one(4), {-3, -4});
  const auto with_five = [f](const Tensor& x, const Tensor& y) { return f(x, y, scalar(5)); };
  expect_values(run(vmap(with_five))(tensor({2, 4}), y), {1, -5});
  expect_values(run(vmap(f))(tensor({2, 4}), y, z), {1, -4});
}

TEST_P(MoreTransforms, J_SwitchTakesTheBranchOfItsIndex) {
  const auto f = run([](const Tensor& x) {
    return switch_case(
        x,
        [&] {
          return std::pair{x, x};
        },
        [&] {
          return std::pair{x * 2, x * 4};
        },
        [&] {
          return std::pair{x, -x};
        });
  });
  for (const auto& [x, first, second] :
       {std::tuple{-1, -1, -1}, {0, 0, 0}, {1, 2, 4}, {2, 2, -2}, {3, 3, -3}}) {
    const auto [a, b] = f(scalar(x));
    expect_values(a, {double(first)});
    expect_values(b, {double(second)});
  }
}

TEST_P(MoreTransforms, J_VmapOfSwitchTakesTheBranchOfEachRow) {
  const auto f = [](const Tensor& index, const Tensor& x, const Tensor& y) {
    return switch_case(
        index, [&] { return x; }, [&] { return -y; }, [] { return sign(scalar(9)); });
  };
  const Tensor x = tensor({1, 2}), y = tensor({3, 4});
  for (const auto& [index, expected] :
       {std::pair{0, std::vector{1., 2.}}, {1, {-3., -4.}}, {2, {1., 1.}}}) {
    const auto g =
        vmap([f, i = index](const Tensor& x, const Tensor& y) { return f(scalar(i), x, y); });
    expect_values(run(g)(x, y), expected);
  }
  expect_values(run(vmap(f))(tensor({0, 1}), x, y), {1, -4});
}

TEST_P(MoreTransforms, J_LinearizePushesThroughTheTakenBranchOfCond) {
  const auto f = [](const Tensor& x) -> Tensor {
    return cond(
        x < 2.0, [&] { return x * 3.0; }, [&] { return sin(x); });
  };
  const auto both = run([f](const Tensor& x) {
    const auto [y, push] = linearize(f, x);
    return std::pair{y, push(scalar(2.0, f64))};
  });
  for (const auto& [x, y, pushed] :
       {std::tuple{1.0, 3.0, 6.0}, {4.0, std::sin(4.0), std::cos(4.0) * 2.0}}) {
    const auto result = both(scalar(x, f64));
    expect_values(result.first, {y}, 1e-12);
    expect_values(result.second, {pushed}, 1e-12);
  }
}

TEST_P(MoreTransforms, J_LinearizePushesThroughTheTakenBranchOfSwitch) {
  const auto f = [](const Tensor& x) -> Tensor {
    return switch_case(
        cast(floor(x), i32), [&] { return x * 3.0; }, [&] { return sin(x); }, [&] { return -x; });
  };
  const auto both = run([f](const Tensor& x) {
    const auto [y, push] = linearize(f, x);
    return std::pair{y, push(scalar(2.0, f64))};
  });
  for (const auto& [x, y, pushed] : {std::tuple{-1.0, -3.0, 6.0},
                                     {0.0, 0.0, 6.0},
                                     {1.0, std::sin(1.0), std::cos(1.0) * 2.0},
                                     {2.0, -2.0, -2.0},
                                     {3.0, -3.0, -2.0}}) {
    const auto result = both(scalar(x, f64));
    expect_values(result.first, {y}, 1e-12);
    expect_values(result.second, {pushed}, 1e-12);
  }
}

/// A sine with twice the cosine as derivative.
Tensor steep_sine(const Tensor& x) {
  return custom_jvp([](const Tensor& x) { return sin(x); },
                    [](const auto& x, const auto& t) -> Tensor {
                      return cos(std::get<0>(x)) * 2.0 * std::get<0>(t);
                    })(x);
}

TEST_P(MoreTransforms, J_CustomJvpBasic) {
  const Tensor x = scalar(3.0, f64);
  const auto [y, t] = run([](const Tensor& x) { return jvp(steep_sine, x, ones_like(x)); })(x);
  expect_values(y, {std::sin(3.0)}, 1e-12);
  expect_values(t, {2 * std::cos(3.0)}, 1e-12);
  expect_values(run(grad(steep_sine))(x), {2 * std::cos(3.0)}, 1e-12);
}

TEST_P(MoreTransforms, J_CustomJvpVmap) {
  const Tensor x = tensor({0.0, 1.0, 2.0}, f64);
  const auto rows = vmap([](const Tensor& x) { return jvp(steep_sine, x, x); });
  const auto [y, t] = run(rows)(x);
  expect_all_close(y, sin(x), 1e-12);
  expect_all_close(t, cos(x) * 2.0 * x, 1e-12);
  const Tensor xx = reshape(cast(range(6), f64), {2, 3});
  expect_all_close(run(vmap(rows))(xx).second, cos(xx) * 2.0 * xx, 1e-12);
  expect_all_close(run(vmap(grad(steep_sine)))(x), cos(x) * 2.0, 1e-12);
}

/// The primal of a tangent is the function itself, however often it is taken.
TEST_P(MoreTransforms, J_CustomJvpInvariance) {
  const auto f = custom_jvp([](const Tensor& x) { return cos(x * 2.0) / 2.0; },
                            [](const auto&, const auto& t) { return std::get<0>(t) * 3.0; });
  const auto once = [f](const Tensor& x) -> Tensor { return f(x); };
  const auto twice = [once](const Tensor& x) -> Tensor { return jvp(once, x, x).first; };
  const auto thrice = [twice](const Tensor& x) -> Tensor { return jvp(twice, x, x).first; };
  const auto expect_invariant = [&](const auto& g) {
    const auto [y, t] = run([g](const Tensor& x) { return jvp(g, x, x); })(scalar(1.0, f64));
    expect_values(y, {std::cos(2.0) / 2}, 1e-12);
    expect_values(t, {3}, 1e-12);
  };
  expect_invariant(once);
  expect_invariant(twice);
  expect_invariant(thrice);
}

TEST_P(MoreTransforms, J_AssociativeScanUnstructured) {
  for (const int n : {0, 1, 2, 3, 5, 10, 1000}) {
    std::vector<double> expected(static_cast<std::size_t>(n));
    std::iota(expected.begin(), expected.end(), 7.0);
    std::partial_sum(expected.begin(), expected.end(), expected.begin());
    const auto f = run([](const Tensor& x) {
      return associative_scan([](const Tensor& a, const Tensor& b) { return a + b; }, x, 0);
    });
    expect_values(f(range(n) + 7), expected);
  }
}

TEST_P(MoreTransforms, J_AssociativeScanStructured3) {
  using Pair = std::pair<Tensor, Tensor>;
  const auto f = run([](const Pair& x) {
    return associative_scan(
        [](const Pair& a, const Pair& b) {
          return Pair{a.first + b.first, a.second + b.second};
        },
        x, 0);
  });
  const auto [first, second] = f(Pair{tensor({0.0, 1.0, 2.0}), tensor({0.0, 10.0, 20.0})});
  expect_values(first, {0, 1, 3});
  expect_values(second, {0, 10, 30});
}

TEST_P(MoreTransforms, J_AssociativeScanOfBools) {
  const auto f = run([](const Tensor& x) {
    return associative_scan([](const Tensor& a, const Tensor& b) { return logical_xor(a, b); }, x,
                            0);
  });
  expect_values(f(tensor({0, 1, 1, 1, 0, 1}) == 1), {0, 1, 0, 1, 1, 0});
}

}  // namespace
}  // namespace reel
