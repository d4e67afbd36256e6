// Nested loops and conds, as TensorFlow's users write them.
#include "reel/tests/modes.h"

namespace reel {
namespace {

using TensorFlowNesting = InEveryMode;
REEL_IN_EVERY_MODE(TensorFlowNesting);

Tensor count_to_ten(const Tensor& n) {
  return while_loop([](Tensor x) { return x < 10; }, [](Tensor x) { return x + 1; }, n);
}

TEST_P(TensorFlowNesting, N05_CondInABody) {
  const auto fixed = run([](Tensor n) {
    return while_loop([](Tensor x) { return x < 10; },
                      [](Tensor x) {
                        return cond(
                            true, [&] { return x + 1; }, [&] { return x - 1; });
                      },
                      n);
  });
  expect_values(fixed(scalar(0)), {10});
  const auto of_constants = run([](Tensor n) {
    return while_loop([](Tensor x) { return x < 10; },
                      [](Tensor x) {
                        return cond(
                            scalar(0) < 1, [&] { return x + 1; }, [&] { return x; });
                      },
                      n);
  });
  expect_values(of_constants(scalar(0)), {10});
}

TEST_P(TensorFlowNesting, N05_CondOnTheStateInABody) {
  // Collatz: the number of steps from n to 1.
  const auto steps = run([](Tensor n) {
    return std::get<1>(while_loop([](Tensor n, Tensor) { return n > 1; },
                                  [](Tensor n, Tensor count) {
                                    const Tensor next = cond(
                                        n % 2 == 0, [&] { return n / 2; },
                                        [&] { return n * 3 + 1; });
                                    return std::tuple{next, count + 1};
                                  },
                                  std::tuple{n, 0}));
  });
  for (const auto& [n, expected] : {std::pair{1, 0}, {6, 8}, {7, 16}, {27, 111}})
    expect_values(steps(scalar(n)), {double(expected)});
  EXPECT_EQ(steps.trace_count(), 1);
}

TEST_P(TensorFlowNesting, N06_LoopInEitherBranch) {
  const auto if_true = run([](Tensor p, Tensor n) {
    return cond(
        p, [&] { return count_to_ten(n); }, [&] { return n; });
  });
  const auto if_false = run([](Tensor p, Tensor n) {
    return cond(
        p, [&] { return n; }, [&] { return count_to_ten(n); });
  });
  for (const bool p : {true, false}) {
    expect_values(if_true(scalar(p), scalar(0)), {p ? 10. : 0.});
    expect_values(if_false(scalar(p), scalar(0)), {p ? 0. : 10.});
  }
}

TEST_P(TensorFlowNesting, N08_ConditionAndBodyAreBothConds) {
  const auto loop = run([](Tensor n) {
    return while_loop(
        [](Tensor i) {
          return cond(
              i > 0, [] { return scalar(true); }, [] { return scalar(false); });
        },
        [](Tensor i) {
          return cond(
              i > 0, [&] { return i - 1; }, [&] { return i; });
        },
        n);
  });
  expect_values(loop(scalar(5)), {0});
  expect_values(loop(scalar(-1)), {-1});
}

TEST_P(TensorFlowNesting, N08_ConditionThatRunsALoop) {
  // The greatest k for which 1 + ... + k stays below n: cond itself sums in a loop.
  const auto sum_to = [](const Tensor& k) {
    return std::get<1>(while_loop([&](Tensor i, Tensor) { return i <= k; },
                                  [](Tensor i, Tensor total) {
                                    return std::tuple{i + 1, total + i};
                                  },
                                  std::tuple{1, 0}));
  };
  const auto loop = run([=](Tensor n) {
    return while_loop([&](Tensor k) { return sum_to(k + 1) < n; }, [](Tensor k) { return k + 1; },
                      scalar(0));
  });
  for (const auto& [n, k] : {std::pair{0, 0}, {4, 2}, {7, 3}, {56, 10}, {55, 9}})
    expect_values(loop(scalar(n)), {double(k)});
}

// An assignment in a branch is an additional result of the branch.
TEST_P(TensorFlowNesting, N09_LoopInABranchWithAnAssignment) {
  const auto f = run([](Tensor p, Tensor v) {
    return cond(
        p,
        [&] {
          return std::tuple{1.0, v};
        },
        [&] {
          const auto [i, assigned] = while_loop([](Tensor i, Tensor) { return i < 100; },
                                                [](Tensor i, Tensor) {
                                                  return std::tuple{i + 1, i};
                                                },
                                                std::tuple{scalar(0), v});
          return std::tuple{6.0, assigned};
        });
  });
  const auto [r, v] = f(scalar(false), scalar(1));
  expect_values(r, {6});
  expect_values(v, {99});
  const auto [untaken, kept] = f(scalar(true), scalar(1));
  expect_values(untaken, {1});
  expect_values(kept, {1});
}

TEST_P(TensorFlowNesting, N12_TenCondsInARow) {
  const auto chain = run([](Tensor alive) {
    Tensor count = scalar(0);
    for (int i = 0; i < 10; ++i)
      std::tie(alive, count) = cond(
          alive,
          [&] {
            return std::tuple{scalar(i < 3), count + 1};
          },
          [&] {
            return std::tuple{alive, count};
          });
    return count;
  });
  expect_values(chain(scalar(true)), {4});
  expect_values(chain(scalar(false)), {0});
}

TEST_P(TensorFlowNesting, N13_BranchOfABodyReadsACaptureOfTheLoop) {
  const auto loop = run([](Tensor w, Tensor p) {
    return std::get<1>(while_loop([](Tensor i, Tensor) { return i < 3; },
                                  [&](Tensor i, Tensor x) {
                                    return std::tuple{
                                        i + 1, cond(
                                                   p, [&] { return x + w; }, [&] { return x; })};
                                  },
                                  std::tuple{scalar(0), scalar(0.0)}));
  });
  expect_values(loop(scalar(3.0), scalar(true)), {9});
  expect_values(loop(scalar(3.0), scalar(false)), {0});
}

TEST_P(TensorFlowNesting, N14_LoopOfTheBranchNotTakenDoesNotRun) {
  const auto f = run([](Tensor p, Tensor n) {
    return cond(
        p, [&] { return n * 2; },
        [&] {
          return while_loop([](Tensor x) { return x < 10; },
                            [](Tensor x) { return print(x, "body") + 1; }, n);
        });
  });
  testing::internal::CaptureStdout();
  expect_values(f(scalar(true), scalar(8)), {16});
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
  testing::internal::CaptureStdout();
  expect_values(f(scalar(false), scalar(8)), {10});
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "body: i32[] 8\nbody: i32[] 9\n");
}

TEST_P(TensorFlowNesting, N14_EndlessLoopOfTheBranchNotTakenIsNoMatter) {
  const auto f = run([](Tensor p, Tensor n) {
    return cond(
        p, [&] { return n; },
        [&] {
          return while_loop([](Tensor x) { return x == x; }, [](Tensor x) { return x + 1; }, n);
        });
  });
  expect_values(f(scalar(true), scalar(3)), {3});
}

TEST_P(TensorFlowNesting, ThreeLoopsAndACaptureThatCrossesAllOfThem) {
  // Adds w once for every i <= j <= k < n.
  const auto loop = run([](Tensor n, Tensor w) {
    const auto count = [](const Tensor& from, const Tensor& to, const Tensor& total, auto term) {
      return std::get<1>(while_loop([&](Tensor i, Tensor) { return i < to; },
                                    [&](Tensor i, Tensor total) {
                                      return std::tuple{i + 1, term(i, total)};
                                    },
                                    std::tuple{from, total}));
    };
    return count(scalar(0), n, scalar(0), [&](const Tensor& i, const Tensor& total) {
      return count(i, n, total, [&](const Tensor& j, const Tensor& total) {
        return count(j, n, total, [&](const Tensor&, const Tensor& total) { return total + w; });
      });
    });
  });
  for (int n = 0; n < 6; ++n)
    expect_values(loop(scalar(n), scalar(5)), {5. * n * (n + 1) * (n + 2) / 6});
  EXPECT_EQ(loop.trace_count(), 1);
}

TEST_P(TensorFlowNesting, CondInACondInALoopInACond) {
  const auto f = run([](Tensor x, Tensor p) {
    return cond(
        p,
        [&] {
          return std::get<1>(while_loop([](Tensor i, Tensor) { return i < 4; },
                                        [&](Tensor i, Tensor y) {
                                          const Tensor next = cond(
                                              i < 2,
                                              [&] {
                                                return cond(
                                                    y > x, [&] { return y * 2; },
                                                    [&] { return y + x + 1; });
                                              },
                                              [&] { return y - i; });
                                          return std::tuple{i + 1, next};
                                        },
                                        std::tuple{scalar(0), x}));
        },
        [&] { return -x; });
  });
  // 3 -> 7 (not above 3) -> 14 -> 12 -> 9
  expect_values(f(scalar(3), scalar(true)), {9});
  expect_values(f(scalar(3), scalar(false)), {-3});
}

TEST_P(TensorFlowNesting, BranchesMayHaveTheDimsOfAResultInDifferentOrder) {
  const Dim batch("batch", 2), feature("feature", 3);
  const auto f = run([&](Tensor p, Tensor x) {
    return cond(
        p, [&] { return x; },
        [&] {
          return transpose(x, {feature, batch}) * 2.0;
        });
  });
  const Tensor x = tensor({{1., 2., 3.}, {4., 5., 6.}}, {batch, feature});
  expect_values(transpose(f(scalar(true), x), {batch, feature}), {1, 2, 3, 4, 5, 6});
  expect_values(transpose(f(scalar(false), x), {batch, feature}), {2, 4, 6, 8, 10, 12});
}

TEST_P(TensorFlowNesting, CondMayReturnACaptureInOneBranchAndAConstantInTheOther) {
  const auto f = run([](Tensor p, Tensor x) {
    return cond(
        p,
        [&] {
          return std::tuple{x, scalar(1.0), x};
        },
        [&] {
          return std::tuple{scalar(2.0), x, scalar(3.0)};
        });
  });
  const auto [a, b, c] = f(scalar(true), scalar(7.0));
  expect_values(stack({a, b, c}), {7, 1, 7});
  const auto [d, e, g] = f(scalar(false), scalar(7.0));
  expect_values(stack({d, e, g}), {2, 7, 3});
}

}  // namespace
}  // namespace reel
