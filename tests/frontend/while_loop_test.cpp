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

TEST_P(WhileLoopTest, ErrorListsEveryLeafThatDiffers) {
  const Dim batch("batch", 3), feature("feature", 4), other("other", 4);
  const auto loop = run([&](Tensor h) {
    return while_loop([](const Memory& s) { return s.step < 2; },
                      [&](const Memory& s) {
                        return Memory{cast(s.step, i64), zeros({batch, other})};
                      },
                      Memory{scalar(0), h}, {.name = "encoder"})
        .memory;
  });
  EXPECT_EQ(
      message_of<DTypeError>([&] {
        loop(zeros({batch, feature}));
      }),
      "while_loop \"encoder\": the state returned by the body differs from the state it was given\n"
      "  state.step: i32[] going in, i64[] coming out (dtypes differ)\n"
      "  state.memory: f32[batch=3,feature=4] going in, f32[batch=3,other=4] coming out (dims "
      "differ)\n"
      "Return every leaf with the type it had on entry.");
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
      "while_loop \"while\": the shape invariant [5] of state is not compatible with its initial "
      "value, i32[]");
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

TEST_P(WhileLoopTest, ExceptionOfTheUserLeavesEverythingAsItWas) {
  const auto throwing = run([](Tensor x) {
    return while_loop([](Tensor x) { return x < 3.0; },
                      [](Tensor x) -> Tensor {
                        throw std::runtime_error("from the user");
                        return x;
                      },
                      x);
  });
  EXPECT_EQ(message_of<std::runtime_error>([&] { throwing(scalar(0.0)); }), "from the user");
  expect_values(run([](Tensor x) { return x + 1.0; })(scalar(1.0)), {2});
  Tape tape;  // a tape that saw the loop begin goes on working
  const Tensor w = scalar(2.0);
  tape.watch(w);
  EXPECT_THROW(throwing(w), std::runtime_error);
  expect_values(tape.gradient(w * w, w), {4});
}

TEST(TracedWhileLoopTest, ConditionThatIsAlwaysTrueIsAnErrorWithoutABound) {
  auto endless = jit([](Tensor x) {
    return while_loop([](Tensor) { return true; }, [](Tensor x) { return x + 1; }, x);
  });
  EXPECT_EQ(message_of<TraceError>([&] { endless(scalar(0)); }),
            "while_loop \"while\": cond is always true, so the traced loop would never end; return "
            "a tensor from cond, or "
            "give maximum_iterations");
}

TEST(TracedWhileLoopTest, ValueOfABodyCannotLeaveIt) {
  const auto leak = jit([](Tensor x) {
    Tensor leaked;
    while_loop([](Tensor x) { return x < 3.0; }, [&](Tensor x) { return leaked = x + 1.0; }, x);
    return leaked;
  });
  EXPECT_EQ(message_of<TraceError>([&] { leak(scalar(0.0)); }),
            "a value of type f32[] is used outside the trace, or the body or branch of a loop, in "
            "which it was made; "
            "values leave a body only through its state or outputs");
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
