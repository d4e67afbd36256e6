// Errors of while_loop that TensorFlow's users rely on, with their whole text: E01 to E16, without
// errors of TensorFlow's executor.
#include <optional>

#include "reel/tests/modes.h"

namespace reel {
namespace {

class TensorFlowErrors : public InEveryMode {
 protected:
  template <class E, class F, class... Args>
  std::string error_of(const F& f, const Args&... args) const {
    return message_of<E>([&] { run(f)(args...); });
  }
};
REEL_IN_EVERY_MODE(TensorFlowErrors);

// E01, a cond or body that cannot be called with the state, does not compile: "cond and body are
// called with the state, or with the members of a tuple or pair as arguments".

TEST_P(TensorFlowErrors, E02_NothingToCarry) {
  EXPECT_EQ(error_of<StructureError>(
                [](const Tensor& x) {
                  while_loop([](const None&) { return false; }, [](const None& n) { return n; },
                             None{}, {.name = "decode"});
                  return x;
                },
                scalar(0)),
            "while_loop \"decode\": the state is empty; a loop needs at least one tensor to carry");
  EXPECT_EQ(error_of<StructureError>(
                [](const Tensor& x) {
                  while_loop([](const std::vector<Tensor>&) { return false; },
                             [](const std::vector<Tensor>& s) { return s; }, std::vector<Tensor>{});
                  return x;
                },
                scalar(0)),
            "while_loop \"while\": the state is empty; a loop needs at least one tensor to carry");
}

TEST_P(TensorFlowErrors, E03_ParallelIterationsMustBePositive) {
  const auto with = [](int iterations) {
    return [=](const Tensor& x) {
      return while_loop([](const Tensor& x) { return x < 3; },
                        [](const Tensor& x) { return x + 1; }, x,
                        {.parallel_iterations = iterations, .name = "decode"});
    };
  };
  EXPECT_EQ(error_of<ArgumentError>(with(0), scalar(0)),
            "while_loop \"decode\": parallel_iterations must be at least 1, got 0");
  EXPECT_EQ(error_of<ArgumentError>(with(-1), scalar(0)),
            "while_loop \"decode\": parallel_iterations must be at least 1, got -1");
}

TEST_P(TensorFlowErrors, E04_E05_BodyReturnsAnotherNumberOfValues) {
  using List = std::vector<Tensor>;
  const auto with = [](const List& returned) {
    return [=](const List& x) {
      return while_loop([](const List& x) { return x[0] < 3; },
                        [&](const List&) { return returned; }, x, {.name = "decode"});
    };
  };
  const Tensor one = scalar(1);
  EXPECT_EQ(error_of<StructureError>(with({one, one, one}), List{one, one}),
            "while_loop \"decode\": the state returned by the body differs from the state it was "
            "given\n  state.2: nothing going in, i32[] coming out\nReturn every leaf with the type "
            "it had on entry. A container keeps its size and its keys from iteration to iteration; "
            "a list that grows can be a TensorArray.");
  EXPECT_EQ(error_of<StructureError>(with({one, one}), List{one, one, one}),
            "while_loop \"decode\": the state returned by the body differs from the state it was "
            "given\n  state.2: i32[] going in, nothing coming out\nReturn every leaf with the type "
            "it had on entry. A container keeps its size and its keys from iteration to iteration; "
            "a list that grows can be a TensorArray.");
}

TEST_P(TensorFlowErrors, E06_DtypesMustStay) {
  EXPECT_EQ(error_of<DTypeError>(
                [](const Tensor& x) {
                  return while_loop([](const Tensor& x) { return x < 3; },
                                    [](const Tensor& x) { return cast(x, f64); }, x,
                                    {.name = "decode"});
                },
                scalar(0.0)),
            "while_loop \"decode\": the state returned by the body differs from the state it was "
            "given\n  state: f32[] going in, f64[] coming out (dtypes differ)\nReturn every leaf "
            "with the type it had on entry.");
}

TEST_P(TensorFlowErrors, E07_MaximumIterationsMustBeAnIntegerScalar) {
  const auto with = [](const Tensor& most) {
    return [=](const Tensor& x) {
      return while_loop([](const Tensor& x) { return x < 3; },
                        [](const Tensor& x) { return x + 1; }, x,
                        {.maximum_iterations = most, .name = "decode"});
    };
  };
  EXPECT_EQ(error_of<ArgumentError>(with(tensor({1, 2})), scalar(0)),
            "while_loop \"decode\": maximum_iterations must be a scalar, got i32[2]");
  EXPECT_EQ(error_of<DTypeError>(with(scalar(2.0)), scalar(0)),
            "while_loop \"decode\": maximum_iterations must be an integer, got f32[]");
}

TEST(TensorFlowTracedErrors, E08_AConstantOfABodyOutside) {
  const auto error = [](const auto& use) {
    return message_of<TraceError>([&] {
      jit([&](const Tensor& x) {
        Tensor inner;
        while_loop([](const Tensor& s) { return s < 3.0; },
                   [&](const Tensor& s) { return s + (inner = scalar(5.0) * 1.0); }, x);
        return use(x, inner);
      })(scalar(0.0));
    });
  };
  const std::string expected =
      ": a value of type f32[] that mul made in the body of while_loop \"while\" is used outside "
      "of it; values leave a body only through its state or outputs, a branch or a traced function "
      "only through its result";
  EXPECT_EQ(error([](const Tensor& x, const Tensor& inner) { return x + inner; }),
            "add" + expected);
  EXPECT_EQ(error([](const Tensor& x, const Tensor& inner) {
              return while_loop([&](const Tensor& s) { return s < inner; },
                                [](const Tensor& s) { return s + 1.0; }, x, {.name = "second"});
            }),
            "less" + expected + "\nin iteration 0 of while_loop \"second\"");
  EXPECT_EQ(error([](const Tensor& x, const Tensor& inner) {
              return cond(
                  x > 0.0, [&] { return inner + x; }, [&] { return x; });
            }),
            "add" + expected);
}

TEST_P(TensorFlowErrors, E09_AValueOfAnOuterLoopInAnInnerOne) {
  const auto f = run([](const Tensor& x) {
    return while_loop([](const Tensor& s) { return s < 20.0; },
                      [](const Tensor& s) {
                        const Tensor twice = s * 2.0;
                        return while_loop([&](const Tensor& t) { return t < twice; },
                                          [&](const Tensor& t) { return t + twice * 0.25; }, s);
                      },
                      x);
  });
  expect_values(f(scalar(1.0)), {32});
}

// Reads beyond the end of a table in iteration 3.
Tensor sum_of_table(const Tensor& x) {
  const Tensor table = range(3);
  return std::get<1>(while_loop([](const Tensor& i, const Tensor&) { return i < 10; },
                                [&](const Tensor& i, const Tensor& s) {
                                  return std::tuple{i + 1, s + gather(table, i, 0)};
                                },
                                std::tuple{scalar(0), x},
                                {.parallel_iterations = 4, .name = "decode"}));
}

TEST_P(TensorFlowErrors, E15_AnErrorNamesTheLoopAndTheIteration) {
  const auto f = run(sum_of_table);
  const auto error = [&] { return message_of<IndexError>([&] { f(scalar(0)); }); };
  EXPECT_EQ(error(),
            "gather: index 3 is out of range for axis 0 of i32[3], which has size 3\nin iteration "
            "3 of while_loop \"decode\"");
  EXPECT_EQ(error(), error());  // the graph runs again
}

TEST_P(TensorFlowErrors, E15_AnErrorInLoopsInLoops) {
  const auto f = [](const Tensor& x) {
    return scan(Scan{.initial = x,
                     .xs = range(4),
                     .body =
                         [&](const Tensor& n, const Tensor& s) {
                           const Tensor table = range(2);
                           return std::pair{
                               None{}, std::get<1>(while_loop(
                                           [&](const Tensor& i, const Tensor&) { return i < n; },
                                           [&](const Tensor& i, const Tensor& s) {
                                             return std::tuple{i + 1, s + gather(table, i, 0)};
                                           },
                                           std::tuple{scalar(0), s}, {.name = "inner"}))};
                         },
                     .name = "outer"})
        .state;
  };
  EXPECT_EQ(error_of<IndexError>(f, scalar(0)),
            "gather: index 2 is out of range for axis 0 of i32[2], which has size 2\nin iteration "
            "2 of while_loop \"inner\"\nin iteration 3 of scan \"outer\"");
}

TEST_P(TensorFlowErrors, E15_AnErrorOfAnOpInABodyOrCond) {
  const Dim feature("feature", 2), other("other", 2);
  EXPECT_EQ(error_of<ShapeError>(
                [&](const Tensor& x) {
                  return while_loop([](const Tensor& s) { return sum(s) < 3.0; },
                                    [&](const Tensor& s) { return s + zeros({other}); }, x,
                                    {.name = "decode"});
                },
                zeros({feature})),
            "add: dims differ: lhs f32[feature=2] lacks other=2, rhs f32[other=2] lacks feature=2; "
            "each lacks a dim of the other, but one operand must have all dims of the result: give "
            "it the missing ones with expand\nin iteration 0 of while_loop \"decode\"");
  EXPECT_EQ(error_of<ShapeError>(
                [&](const Tensor& x) {
                  return while_loop([&](const Tensor& s) { return sum(s + zeros({other})) < 3.0; },
                                    [](const Tensor& s) { return s; }, x, {.name = "decode"});
                },
                zeros({feature})),
            "add: dims differ: lhs f32[feature=2] lacks other=2, rhs f32[other=2] lacks feature=2; "
            "each lacks a dim of the other, but one operand must have all dims of the result: give "
            "it the missing ones with expand\nin iteration 0 of while_loop \"decode\"");
}

// In the gradient, the named iteration is the forward loop's.
TEST(TensorFlowTracedErrors, E15_AnErrorInAGradient) {
  const auto spoilt = custom_vjp(
      [](const Tensor& x) {
        return std::pair{x * 1.0, x};
      },
      [](const Tensor& x, const Tensor& g) {
        return g * cast(gather(range(3), cast(x, i32), 0), f32);
      });
  const auto f = [&](const Tensor& x) {
    return while_loop([](const Tensor& s) { return s < 4.0; },
                      [&](const Tensor& s) { return spoilt(s) + 1.0; }, x, {.name = "decode"});
  };
  EXPECT_EQ(message_of<IndexError>([&] { jit(grad(f))(scalar(0.0)); }),
            "gather: index 3 is out of range for axis 0 of i32[3], which has size 3\nin iteration "
            "3 of the gradient of while_loop \"decode\"");
}

TEST_P(TensorFlowErrors, E16_ScanWithAnotherNumberOfOutputsThanItsState) {
  using List = std::vector<Tensor>;
  EXPECT_EQ(error_of<StructureError>(
                [](const Tensor& x) {
                  return scan(Scan{.initial = List{scalar(0.0)},
                                   .xs = x,
                                   .body =
                                       [](const Tensor& x, const List& s) {
                                         return std::pair{x, List{s[0] + x, s[0] * x}};
                                       }})
                      .state;
                },
                zeros({3})),
            "scan \"scan\": the state returned by the body differs from the state it was given\n  "
            "state.1: nothing going in, f32[] coming out\nReturn every leaf with the type it had "
            "on entry. A container keeps its size and its keys from iteration to iteration; a list "
            "that grows can be a TensorArray.");
}

}  // namespace
}  // namespace reel
