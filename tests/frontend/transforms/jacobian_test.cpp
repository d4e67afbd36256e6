// jacobian, jacfwd, hessian, linearize and custom_jvp: against formulas and against each other.
#include "reel/tests/modes.h"

namespace reel {
namespace {

class JacobianTest : public InEveryMode {};

TEST_P(JacobianTest, JacobianOfAProductIsTheMatrix) {
  const Dim in("in", 3), out("out", 2);
  manual_seed(1);
  const Tensor w = random_normal({out, in}, f64), x = random_normal({in}, f64);
  const auto f = [&](const Tensor& x) -> Tensor { return matmul(w, x, in); };
  for (const Tensor& j : {run(jacobian(f))(x), run(jacfwd(f))(x)}) {
    EXPECT_EQ(j.type(), w.type());
    expect_all_close(j, w, 1e-12);
  }
  const Tensor plain = reshape(w, std::vector<std::int64_t>{2, 3}),
               at = reshape(x, std::vector<std::int64_t>{3});
  const auto g = [&](const Tensor& x) -> Tensor { return matmul(plain, x); };
  expect_all_close(run(jacobian(g))(at), plain, 1e-12);
  expect_all_close(run(jacfwd(g))(at), plain, 1e-12);
}

TEST_P(JacobianTest, SharedDimsGetOthersInFront) {
  const Dim batch("batch", 2), time("time", 2);
  const Tensor x = tensor({{0.1, 0.2}, {0.3, 0.4}}, {batch, time}, f64);
  const auto f = [&](const Tensor& x) -> Tensor { return square(x); };
  const Tensor j = run(jacobian(f))(x);
  ASSERT_EQ(j.rank(), 4);
  EXPECT_EQ(j.dims()[0].name(), "batch");
  EXPECT_FALSE(j.dims()[0] == batch);
  EXPECT_TRUE(j.dims()[2] == batch);
  expect_values(j, {0.2, 0, 0, 0, 0, 0.4, 0, 0, 0, 0, 0.6, 0, 0, 0, 0, 0.8}, 1e-12);
  expect_all_close(run(jacfwd(f))(x), j, 1e-12);
}

TEST_P(JacobianTest, JacobianOfALoopAgreesWithDifferences) {
  const Tensor x = tensor({0.3, -0.5, 0.7}, f64);
  const auto f = [](const Tensor& x) -> Tensor {
    return fori_loop(
        0, 4, [&](const Tensor&, const Tensor& s) { return sin(s) * x + shift(s, 0, 1); }, x);
  };
  constexpr double kStep = 1e-5;
  std::vector<double> expected(9);
  for (std::size_t i = 0; i < 3; ++i) {
    std::vector<double> up = values_of(x), down = up;
    up[i] += kStep;
    down[i] -= kStep;
    const auto slope = values_of((f(tensor(up)) - f(tensor(down))) / (2 * kStep));
    for (std::size_t k = 0; k < 3; ++k) expected[k * 3 + i] = slope[k];
  }
  expect_values(run(jacobian(f))(x), expected, 1e-8);
  expect_values(run(jacfwd(f))(x), expected, 1e-8);
}

TEST_P(JacobianTest, JacobianOfATreeIsATree) {
  const Dim in("in", 2);
  const Tensor x = tensor({1.0, 2.0}, {in}, f64), s = scalar(3.0, f64);
  const auto f = [](const std::pair<Tensor, Tensor>& p) -> Tensor { return p.first * p.second; };
  const auto [of_x, of_s] = run(jacobian(f))(std::pair{x, s});
  expect_values(of_x, {3, 0, 0, 3}, 1e-12);
  expect_values(of_s, {1, 2}, 1e-12);
  const auto [again, of_s_again] = run(jacfwd(f))(std::pair{x, s});
  expect_values(again, {3, 0, 0, 3}, 1e-12);
  expect_values(of_s_again, {1, 2}, 1e-12);
}

TEST_P(JacobianTest, LeavesThatAreNotFloatingHaveZeros) {
  struct Argument {
    Tensor x, factor, nothing;
  };
  const auto f = [](const Argument& a) -> Tensor {
    return slice(a.x, 0, 0, 2) * cast(a.factor, f64);
  };
  const Argument at{tensor({1.0, 2.0, 3.0}, f64), tensor({4, 5}), Tensor()};
  for (const Argument& j : {run(jacobian(f))(at), run(jacfwd(f))(at)}) {
    expect_values(j.x, {4, 0, 0, 0, 5, 0});
    EXPECT_EQ(j.factor.type(), TensorType(i32, {2, 2}));
    expect_values(j.factor, {0, 0, 0, 0});
    EXPECT_FALSE(j.nothing.is_defined());
  }
  const auto whole = [](const Tensor& n) -> Tensor { return cast(n, f64); };
  expect_values(run(jacfwd(whole))(tensor({4, 5})), {0, 0, 0, 0});
}

TEST_P(JacobianTest, PaddingHasNoDerivatives) {
  const Dim batch("batch", 2), time("time", tensor({2, 1}, {batch}));
  const Tensor x = tensor({1.0, 2.0, 3.0, NAN}, {batch, time}, f64);
  const auto f = [&](const Tensor& x) -> Tensor { return sum(square(x), time); };
  expect_values(mask_padding(run(jacobian(f))(x)), {2, 4, 0, 0, 0, 0, 6, 0}, 1e-12);
}

TEST_P(JacobianTest, HessianIsSymmetricAndKnown) {
  const Tensor x = tensor({0.5, 2.0}, f64);
  const auto f = [](const Tensor& x) -> Tensor { return sum(x * x * x) + square(sum(x)); };
  expect_values(run(hessian(f))(x), {6 * 0.5 + 2, 2, 2, 6 * 2.0 + 2}, 1e-12);
}

TEST_P(JacobianTest, LinearizePushesTangentsOfOneRun) {
  const Tensor x = tensor({0.5, 2.0}, f64), t = tensor({1.0, -1.0}, f64);
  const auto f = [](const Tensor& x) -> Tensor { return sin(x) * sum(x); };
  const auto pushed = run([f](const Tensor& x, const Tensor& t) {
    const auto [y, push] = linearize(f, x);
    return std::tuple{y, push(t), push(t * 2.0)};
  })(x, t);
  const auto [y, tangent] = jvp(f, x, t);
  expect_all_close(std::get<0>(pushed), y, 1e-12);
  expect_all_close(std::get<1>(pushed), tangent, 1e-12);
  expect_all_close(std::get<2>(pushed), tangent * 2.0, 1e-12);
  const auto all = run([f](const Tensor& x, const Tensor& ts) {
    const auto linear = linearize(f, x);
    return vmap(linear.second)(ts);
  })(x, tensor({{1.0, 0.0}, {0.0, 1.0}}, f64));
  expect_all_close(all, transpose(jacfwd(f)(x), {1, 0}), 1e-12);
}

TEST_P(JacobianTest, CustomJvpHoldsInBothDirections) {
  const auto f = custom_jvp([](const Tensor& x) { return exp(x); },
                            [](const auto& x, const auto& t) -> Tensor {
                              return std::get<0>(t) * std::get<0>(x) * std::get<0>(x);
                            });
  const Tensor x = tensor({1.0, 3.0}, f64), t = tensor({1.0, 2.0}, f64);
  const auto both = run([f](const Tensor& x, const Tensor& t) {
    return jvp([f](const Tensor& x) -> Tensor { return f(x); }, x, t);
  })(x, t);
  expect_all_close(both.first, exp(x), 1e-12);
  expect_values(both.second, {1, 18}, 1e-12);
  const auto slope = grad([f](const Tensor& x) -> Tensor { return sum(f(x)); });
  expect_values(run(slope)(x), {1, 9}, 1e-12);
  expect_values(run(grad([slope](const Tensor& x) -> Tensor { return sum(slope(x)); }))(x), {2, 6},
                1e-12);
}

TEST(JacobianErrorTest, TheTangentOfCustomJvpHasTheTypeOfTheResult) {
  const auto f = custom_jvp([](const Tensor& x) { return sin(x); },
                            [](const auto&, const auto& t) { return sum(std::get<0>(t)); });
  EXPECT_EQ(message_of<ShapeError>(
                [&] { grad([&](const Tensor& x) -> Tensor { return sum(f(x)); })(zeros({2})); }),
            "custom_jvp: the tangent has another type than the result\n  result: f32[] for f32[2]\n"
            "Return a tangent of the type of the result.");
}

TEST(JacobianErrorTest, RefusesIntegers) {
  EXPECT_EQ(message_of<DTypeError>([] {
              jacobian([](const Tensor& x) -> Tensor { return cast(x, i32); })(zeros({2}));
            }),
            "jacobian: f must return a floating tensor, got i32[2]");
}

REEL_IN_EVERY_MODE(JacobianTest);

}  // namespace
}  // namespace reel
