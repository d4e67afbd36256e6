// cond in every mode: the branch taken, gradients, nesting in loops, errors.
#include "reel/tests/modes.h"

namespace reel {
namespace {

using CondTest = InEveryMode;
REEL_IN_EVERY_MODE(CondTest);

TEST_P(CondTest, RunsTheBranchThatThePredicateChooses) {
  const auto f = run([](Tensor p, Tensor x) {
    return cond(
        p, [&] { return x + 1.0; }, [&] { return x * 10.0; });
  });
  expect_values(f(scalar(true), scalar(2.0)), {3});
  expect_values(f(scalar(false), scalar(2.0)), {20});
  EXPECT_EQ(f.trace_count(), 1);
}

TEST_P(CondTest, BothBranchesShareTheirCaptures) {
  const auto f = [](Tensor w, Tensor p) {
    return cond(
        p, [&] { return w * w; }, [&] { return w * w * w; });
  };
  expect_values(run(grad(f))(scalar(2.0), scalar(true)), {4});
  expect_values(run(grad(f))(scalar(2.0), scalar(false)), {12});
  expect_values(run(grad(grad(f)))(scalar(2.0), scalar(false)), {12});
}

TEST_P(CondTest, LoopInABranchAndABranchInALoop) {
  const auto f = [](Tensor x) {
    return while_loop([](Tensor x) { return x < 128; },
                      [](Tensor x) {
                        return cond(
                            x < 8.0,
                            [&] {
                              return while_loop([](Tensor y) { return y < 4; },
                                                [](Tensor y) { return y * 2; }, x) *
                                     2;
                            },
                            [&] { return square(x); });
                      },
                      x);
  };
  // 1 -> 4 * 2 = 8 -> 64 -> 4096.
  expect_values(run(f)(scalar(1.0)), {4096});
  expect_values(run(grad(f))(scalar(1.0)), {8 * 16 * 128});
}

TEST_P(CondTest, TreesAndNumbersComeBack) {
  const auto f = run([](Tensor p) {
    return cond(
        p,
        [] {
          return std::tuple{1, scalar(2.0)};
        },
        [] {
          return std::tuple{3, scalar(4.0)};
        });
  });
  const auto [i, x] = f(scalar(false));
  expect_values(i, {3});
  expect_values(x, {4});
}

TEST(TracedCondTest, PrintsInTheTakenBranchOnlyAndOnceUnderAGradient) {
  const auto f = jit(grad([](Tensor x) {
    return cond(
        x > 0.0, [&] { return square(print(x, "yes")); }, [&] { return print(x, "no") * 2.0; });
  }));
  testing::internal::CaptureStdout();
  f(scalar(3.0));
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "yes: f32[] 3.0\n");
}

TEST_P(CondTest, BranchesMayEachMakeADimOfOneSize) {
  const auto f = [](Tensor x, int other) {
    return cond(
        sum(x) > 0.0,
        [&] {
          const Dim k("k", 2);
          return expand(sum(x), {k});
        },
        [&] {
          const Dim k("k", other);
          return expand(sum(x * x), {k});
        });
  };
  for (const int other : {2, 3}) {
    const auto h = [&](Tensor x) { return sum(f(x, other)); };
    const auto g = run([&](Tensor x) { return f(x, other); });
    expect_values(g(tensor({1., 2.})), {3, 3});
    expect_values(run(grad(h))(tensor({1., 2.})), {2, 2});
    expect_values(g(tensor({-1., -2.})), std::vector<double>(other, 5));
    expect_values(run(grad(h))(tensor({-1., -2.})), {-2. * other, -4. * other});
  }
}

TEST_P(CondTest, BranchesTakeTheArgumentsBehindThem) {
  const auto f = [](Tensor p, Tensor x, Tensor y) {
    return cond(
        p, [](const Tensor& x, const std::pair<Tensor, int>& y) { return x * y.first; },
        [](const Tensor& x, const auto& y) { return x + y.first * y.second; }, x, std::pair{y, 3});
  };
  const auto of_x = [&](Tensor x, Tensor p, Tensor y) { return f(p, x, y); };
  expect_values(run(f)(scalar(true), scalar(2.0), scalar(5.0)), {10});
  expect_values(run(f)(scalar(false), scalar(2.0), scalar(5.0)), {17});
  expect_values(run(grad(of_x))(scalar(2.0), scalar(true), scalar(5.0)), {5});
  expect_values(run(grad(of_x))(scalar(2.0), scalar(false), scalar(5.0)), {1});
  EXPECT_EQ(cond(
                false, [](int x) { return x; }, [](int x) { return x + 1; }, 3)
                .item<int>(),
            4);
}

}  // namespace
}  // namespace reel
