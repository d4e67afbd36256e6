// while_loop in every mode: values, gradients of any order, bounds, invariants, errors.
#include "reel/tests/modes.h"

namespace reel {
namespace {

using WhileLoopTest = InEveryMode;
REEL_IN_EVERY_MODE(WhileLoopTest);

struct Memory {
  Tensor step, memory;
};

TEST_P(WhileLoopTest, CountsUntilItsCondition) {
  const auto count = run([](Tensor start) {
    return while_loop([](Tensor i) { return i < 10; }, [](Tensor i) { return i + 1; }, start);
  });
  expect_values(count(scalar(0)), {10});
  expect_values(count(scalar(12)), {12});
  EXPECT_EQ(count.trace_count(), 1);
}

TEST_P(WhileLoopTest, SecondGradientThroughNestedLoopsWithCaptures) {
  // Inner: y -> y·w, i + 1 times; outer: 2 iterations: y = x·w³; d²/dw² = 6·x·w.
  const auto f = [](Tensor w, Tensor x) {
    auto [i, y] = while_loop([](Tensor i, Tensor) { return i < 2; },
                             [&](Tensor i, Tensor y) {
                               auto [j, z] = while_loop([&](Tensor j, Tensor) { return j <= i; },
                                                        [&](Tensor j, Tensor z) {
                                                          return std::tuple{j + 1, z * w};
                                                        },
                                                        std::tuple{0, y});
                               return std::tuple{i + 1, z};
                             },
                             std::tuple{0, x});
    return y;
  };
  const Tensor w = scalar(1.5, f64), x = scalar(2.0, f64);
  expect_values(run(grad(f))(w, x), {3 * 2 * 1.5 * 1.5}, 1e-9);
  expect_values(run(grad(grad(f)))(w, x), {6 * 2 * 1.5}, 1e-9);
}

TEST_P(WhileLoopTest, GradientTakenInsideABody) {
  // s -> d/ds (s³) = 3s², twice from 1: 3, 27.
  const auto f = [](Tensor x) {
    auto [i, s] =
        while_loop([](Tensor i, Tensor) { return i < 2; },
                   [](Tensor i, Tensor s) {
                     return std::tuple{i + 1, grad([](Tensor s) { return s * s * s; })(s)};
                   },
                   std::tuple{0, x});
    return s;
  };
  expect_values(run(f)(scalar(1.0)), {27});
  expect_values(run(grad(f))(scalar(1.0)), {6 * 3 * 6});  // d 3(3x²)² = 3·2·3x²·6x
}

TEST_P(WhileLoopTest, RandomNumbersAreTheSameInEveryMode) {
  const auto walk = [](Tensor x) {
    auto [i, y] = while_loop([](Tensor i, Tensor) { return i < 4; },
                             [](Tensor i, Tensor y) {
                               return std::tuple{i + 1, y + random_normal({3})};
                             },
                             std::tuple{scalar(0), x});
    return y + random_uniform({3});
  };
  manual_seed(11);
  const Tensor first = walk(zeros({3})), second = walk(zeros({3}));
  manual_seed(11);
  const auto again = run(walk);
  expect_same_bits(again(zeros({3})), first);
  expect_same_bits(again(zeros({3})), second);
}

TEST_P(WhileLoopTest, ErrorsOfOptionsAndConditions) {
  const auto with = [&](WhileOptions options) {
    return run([=](Tensor x) {
      return while_loop([](Tensor x) { return x < 3; }, [](Tensor x) { return x + 1; }, x, options);
    });
  };
  EXPECT_EQ(message_of<ArgumentError>([&] { with({.parallel_iterations = 0})(scalar(0)); }),
            "while_loop \"while\": parallel_iterations must be at least 1, got 0");
  EXPECT_EQ(message_of<ArgumentError>([&] {
              with({.maximum_iterations = tensor({1, 2})})(scalar(0));
            }),
            "while_loop \"while\": maximum_iterations must be a scalar, got i32[2]");
  EXPECT_EQ(
      message_of<ShapeError>([&] { with({.shape_invariants = {PartialShape{5}}})(scalar(0)); }),
      "while_loop \"while\": initial values do not match their shape invariant\n  state: i32[], "
      "shape invariant [5]\nGive an invariant that allows the initial value: unknown for a size "
      "that changes, std::nullopt for the value's own shape.");
  // The message lists all wrong invariants instead of the first.
  EXPECT_EQ(message_of<ShapeError>([&] {
              run([](const Tensor& x) {
                return std::get<0>(while_loop(
                    [](const Tensor& a, const Tensor&) { return sum(a) < 3.0; },
                    [](const Tensor& a, const Tensor& b) {
                      return std::pair{a, b};
                    },
                    std::pair{x, x}, {.shape_invariants = {PartialShape{3}, PartialShape{4}}}));
              })(ones({2}));
            }),
            "while_loop \"while\": initial values do not match their shape invariant\n  state.0: "
            "f32[2], shape invariant [3]\n  state.1: f32[2], shape invariant [4]\nGive an "
            "invariant that allows the initial value: unknown for a size that changes, "
            "std::nullopt for the value's own shape.");
  EXPECT_EQ(
      message_of<ArgumentError>([&] { with({.maximum_iterations = Tensor()})(scalar(0)); }),
      "while_loop \"while\": maximum_iterations is an empty Tensor; give a number, or leave it "
      "out");
  EXPECT_EQ(message_of<ShapeError>([&] {
              run([](Tensor x) {
                return while_loop([](Tensor x) { return x < 3; }, [](Tensor x) { return x + 1; },
                                  x);
              })(zeros({2}));
            }),
            "while_loop \"while\": cond must return a boolean scalar, got boolean[2]; reduce it "
            "with any or all, or use "
            "scan, whose entries end one by one");
  EXPECT_EQ(
      message_of<DTypeError>([&] {
        run([](Tensor x) {
          return while_loop([](Tensor x) { return x; }, [](Tensor x) { return x + 1; }, x);
        })(scalar(1));
      }),
      "while_loop \"while\": cond must return a boolean scalar, got i32[]; compare, as in x < 10");
}

TEST(TracedWhileLoopTest, ForwardLoopRunsOnceUnderAGradient) {
  auto f = jit(value_and_grad([](Tensor v) {
    return while_loop([](Tensor v) { return v < 8; }, [](Tensor v) { return v * v; }, v);
  }));
  f(scalar(2.0));
  const std::string dump = str(f.graph());
  int loops = 0;
  for (std::size_t at = dump.find("= loop("); at != std::string::npos;
       at = dump.find("= loop(", at + 1))
    ++loops;
  EXPECT_EQ(loops, 2) << dump;  // one forwards, one backwards
}

TEST_P(WhileLoopTest, NoIterationOfABodyThatMakesADimHasAGradient) {
  const Dim batch("batch", 2), feature("feature", 3);
  const auto loss = [&](const Tensor& s, const Tensor& n) {
    const auto body = [&](const Tensor& i, const Tensor& s) {
      return std::tuple{i + 1, s * 0.5 + sum(pack(s * s, s > 0.1, feature), -1)};
    };
    return sum(std::get<1>(while_loop([&](const Tensor& i, const Tensor&) { return i < n; }, body,
                                      std::tuple{scalar(0), s})));
  };
  const auto f = run(grad(loss));
  const Tensor s = ones({batch, feature});
  expect_values(f(s, scalar(0)), {1, 1, 1, 1, 1, 1});
  expect_values(f(s, scalar(1)), {6.5, 6.5, 6.5, 6.5, 6.5, 6.5});
}

}  // namespace
}  // namespace reel
