// DetectNan: the first op that makes a NaN or an infinity, in every mode.
#include <cmath>
#include <limits>

#include "reel/tests/frontend/policies/policies.h"
#include "reel/tests/modes.h"

namespace reel {
namespace {

using DetectNanTest = InEveryMode;
REEL_IN_EVERY_MODE(DetectNanTest);

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

/// Returns the message of the NumericsError of a call under a guard.
template <class F, class... Args>
std::string detected(const F& f, const Args&... args) {
  return message_of<NumericsError>([&] {
    const DetectNan guard;
    return f(args...);
  });
}

TEST_P(DetectNanTest, NamesTheOpAndItsOperands) {
  const auto f = [](const Tensor& x) { return log(x) + 1.0; };
  EXPECT_EQ(detected(run(f), tensor({1., -2., 3., -4.})),
            "log: its result, f32[4], is nan at [1], the first of 2 such elements; its operand is "
            "finite");
  EXPECT_EQ(detected(run(f), tensor({1., kNan})),
            "log: its result, f32[2], is nan at [1]; operand 0, f32[2], is nan at [1] already");
  const auto g = [](const Tensor& x, const Tensor& y) { return x / y; };
  EXPECT_EQ(detected(run(g), tensor({1., 2.}), tensor({1., 0.})),
            "div: its result, f32[2], is inf at [1]; its operands are finite");
  EXPECT_EQ(detected(run(g), tensor({1., kInf}), tensor({1., kInf})),
            "div: its result, f32[2], is nan at [1]; operand 0, f32[2], is inf at [1] already; "
            "operand 1, f32[2], is inf at [1] already");
}

TEST_P(DetectNanTest, GoodValuesAreUnchanged) {
  const auto f = [](const Tensor& x) {
    return sum(scan(Scan{.initial = scalar(0.5),
                         .xs = x,
                         .body =
                             [](const Tensor& x, const Tensor& s) {
                               const Tensor next = tanh(s * x + sigmoid(s));
                               return std::pair{next, next};
                             }})
                   .ys);
  };
  const auto g = run(value_and_grad(f));
  const Tensor x = tensor({0.5, -1., 2., 0.1});
  const auto [value, gradient] = g(x);
  const DetectNan guard;
  const auto [checked, checked_gradient] = g(x);
  expect_values(checked, values_of(value));
  expect_values(checked_gradient, values_of(gradient));
}

/// Without a guard, and behind it, NaN is a value as any other.
TEST_P(DetectNanTest, OnlyWhileTheGuardExists) {
  const auto f = run([](const Tensor& x) { return log(x); });
  EXPECT_TRUE(std::isnan(f(scalar(-1.0)).item<float>()));
  detected(f, scalar(-1.0));
  EXPECT_TRUE(std::isnan(f(scalar(-1.0)).item<float>()));
}

TEST_P(DetectNanTest, ALogInTheThirdOfAThousandIterations) {
  const auto f = [](const Tensor& x) {
    return std::get<1>(while_loop([](const Tensor& i, const Tensor&) { return i < 1000; },
                                  [](const Tensor& i, const Tensor& x) {
                                    return std::tuple{i + 1, log(x) + cast(i, f32) * 0.0};
                                  },
                                  std::tuple{scalar(0), x}, {.name = "steps"}));
  };
  EXPECT_EQ(detected(run(f), scalar(2.0)),
            "log: its result, f32[], is nan; its operand is finite\n"
            "in iteration 2 of while_loop \"steps\"");
}

/// Plans compute the logarithms of all iterations at once, outside of the loop.
TEST_P(DetectNanTest, AnOpThatPassesMoveOutOfTheLoop) {
  const auto f = [](const Tensor& x) {
    return scan(Scan{.initial = scalar(0.0),
                     .xs = x,
                     .body =
                         [](const Tensor& x, const Tensor& s) {
                           const Tensor next = s * 0.5 + log(x);
                           return std::pair{next, next};
                         },
                     .name = "logs"})
        .ys;
  };
  EXPECT_EQ(detected(run(f), tensor({1., 2., 3., -4., 5.})),
            "log: its result, f32[], is nan; its operand is finite\n"
            "in iteration 3 of scan \"logs\"");
}

/// Fused ops hide the values between them, and where hides the NaN from the result.
TEST_P(DetectNanTest, AValueThatTheResultDoesNotShow) {
  const auto f = [](const Tensor& x) { return where(x > 0.0, log(x) * 2.0, x); };
  EXPECT_EQ(detected(run(f), tensor({1., -1.})),
            "log: its result, f32[2], is nan at [1]; its operand is finite");
}

TEST_P(DetectNanTest, ASqrtAtZeroInAGradient) {
  const auto f = [](const Tensor& x) { return sum(sqrt(x) * 0.0); };
  const std::string message = detected(run(grad(f)), tensor({4., 0.}));
  EXPECT_NE(message.find("its result, f32[2], is nan at [1]"), std::string::npos) << message;
  EXPECT_NE(message.find("\nin the gradient of sqrt"), std::string::npos) << message;
}

TEST_P(DetectNanTest, AGradientInALoop) {
  const auto f = [](const Tensor& x) {
    return sum(scan(Scan{.initial = scalar(0.0),
                         .xs = x,
                         .body =
                             [](const Tensor& x, const Tensor& s) {
                               return std::pair{None{}, s + sqrt(x)};
                             },
                         .name = "roots"})
                   .state);
  };
  const std::string message = detected(run(grad(f)), tensor({4., 0., 1.}));
  EXPECT_NE(message.find("its result, f32[], is inf"), std::string::npos) << message;
  EXPECT_NE(message.find("\nin the gradient of sqrt"), std::string::npos) << message;
  EXPECT_NE(message.find("in iteration 1 of the gradient of scan \"roots\""), std::string::npos)
      << message;
}

TEST_P(DetectNanTest, APolicyLeavesTheErrorAsItIs) {
  for (const LoopPolicy& policy : {LoopPolicy{}, LoopPolicy{.checkpoint = Checkpoint::every(2)}}) {
    const auto f = [&](const Tensor& x) {
      return sum(scan(Scan{.initial = scalar(0.0),
                           .xs = x,
                           .body =
                               [](const Tensor& x, const Tensor& s) {
                                 return std::pair{None{}, s * 0.5 + sqrt(x)};
                               },
                           .checkpoint = policy.checkpoint,
                           .name = "roots"})
                     .state);
    };
    const std::string forward = detected(run(value_and_grad(f)), tensor({4., 1., 2., -1., 5.}));
    EXPECT_EQ(forward,
              "sqrt: its result, f32[], is nan; its operand is finite\n"
              "in iteration 3 of scan \"roots\"");
    const std::string backward = detected(run(grad(f)), tensor({4., 1., 2., 0., 5.}));
    EXPECT_NE(backward.find("in iteration 3 of the gradient of scan \"roots\""), std::string::npos)
        << backward;
  }
}

TEST_P(DetectNanTest, AnOverflowInOneEntryOfARaggedBatch) {
  const Dim batch("batch", 3), time("time", tensor({1, 2, 3}, {batch}));
  const Tensor x = tensor({{1., kNan, kInf}, {2., 3., -kInf}, {4., 100., 5.}}, {batch, time});
  const auto f = [](const Tensor& x) { return sum(exp(x), x.dim("time")); };
  EXPECT_EQ(detected(run(f), x),
            "exp: its result, f32[batch=3,time[batch=3]], is inf at [batch=2, time=1]; its operand "
            "is finite");
  const Tensor good = tensor({{1., kNan, kInf}, {2., 3., 1e30}, {4., 1., 5.}}, {batch, time});
  const DetectNan guard;
  expect_values(run(f)(good),
                {std::exp(1), std::exp(2) + std::exp(3), std::exp(4) + std::exp(1) + std::exp(5)},
                1e-5);
}

class RaggedProduct {
 public:
  Dim batch{"batch", 3}, time{"time", tensor({1, 4, 2}, {batch})};
  Tensor operator()(const Tensor& x) const {
    return scan(Scan{.spatial_dim = x.dim("time"),
                     .initial = ones({x.dim("batch")}),
                     .xs = x,
                     .body =
                         [](const Tensor& x, const Tensor& s) {
                           return std::pair{None{}, s + sqrt(x)};
                         },
                     .name = "roots"})
        .state;
  }
};

/// In iteration 2 only entry 1 runs. The others compute on its values.
TEST_P(DetectNanTest, FinishedEntriesAreNeverNamed) {
  const RaggedProduct roots;
  const Tensor x =
      tensor({{1., 0., 0., 0.}, {1., 4., -1., 4.}, {1., 1., 0., 0.}}, {roots.batch, roots.time});
  EXPECT_EQ(detected(run(roots), x),
            "sqrt: its result, f32[batch=3], is nan at [batch=1]; its operand is finite\n"
            "in iteration 2 of scan \"roots\"");
}

TEST_P(DetectNanTest, FinishedEntriesAreNeverNamedInAGradient) {
  const RaggedProduct roots;
  const Tensor x =
      tensor({{1., 0., 0., 0.}, {1., 4., 0., 4.}, {1., 1., 0., 0.}}, {roots.batch, roots.time});
  const auto loss = [&](const Tensor& x) { return sum(roots(x)); };
  const std::string message = detected(run(grad(loss)), x);
  EXPECT_NE(message.find("is inf at [batch=1]"), std::string::npos) << message;
  EXPECT_NE(message.find("in iteration 2 of the gradient of scan \"roots\""), std::string::npos)
      << message;
}

/// An infinity that an op receives, such as a mask's, is no error; nor is any with the option.
TEST_P(DetectNanTest, InfinitiesOfOperandsAreNoError) {
  const auto masked = [](const Tensor& x, const Tensor& mask) { return softmax(x + mask, 0); };
  const DetectNan guard;
  expect_values(run(masked)(tensor({0., 0., 0.}), tensor({0., -kInf, 0.})), {0.5, 0, 0.5});
  const DetectNan only_nan({.infinities = false});
  expect_values(run([](const Tensor& x) { return exp(log(x)); })(tensor({0., 1.})), {0, 1});
  EXPECT_EQ(message_of<NumericsError>([&] {
              run([](const Tensor& x) { return log(x) * x; })(tensor({0., 1.}));
            }),
            "mul: its result, f32[2], is nan at [0]; operand 0, f32[2], is -inf at [0] already");
}

TEST_P(DetectNanTest, AFunctionThatPrintsPrintsOnce) {
  const auto f = run([](const Tensor& x) { return log(print(x, "x")); });
  testing::internal::CaptureStdout();
  const std::string message = detected(f, scalar(-1.0));
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "x: f32[] -1.0\n");
  EXPECT_EQ(message, "log: its result, f32[], is nan; its operand is finite");
}

TEST_P(DetectNanTest, AfterAnErrorTheNextCallWorks) {
  const auto f = run([](const Tensor& x) { return log(x); });
  detected(f, scalar(-1.0));
  const DetectNan guard;
  expect_values(f(scalar(1.0)), {0});
}

TEST(DetectNanOptionTest, JitOptionNamesTheOpInAllExecutors) {
  for (const Executor executor : {Executor::interpreter, Executor::plan, Executor::dataflow}) {
    const auto f = jit([](const Tensor& x) { return sum(log(x)); },
                       {.executor = executor, .detect_nan = true});
    expect_values(f(scalar(1.0)), {0});
    EXPECT_EQ(message_of<NumericsError>([&] { f(scalar(-1.0)); }),
              "log: its result, f32[], is nan; its operand is finite");
    const auto g = jit([](const Tensor& x) { return sum(sqrt(x)); },
                       {.executor = executor, .detect_nan = true});
    const std::string message = message_of<NumericsError>([&] { grad(g)(scalar(0.0)); });
    EXPECT_NE(message.find("in the gradient of sqrt"), std::string::npos) << message;
  }
}

/// A step that throws leaves a model that was moved into it unchanged.
TEST(DetectNanOptionTest, LeavesMovedArgumentsAlone) {
  const auto step =
      jit([](Tensor w, const Tensor& x) { return w * 2.0 + log(x); }, {.detect_nan = true});
  Tensor w = tensor({1., 2.});
  w = step(std::move(w), tensor({1., 1.}));
  EXPECT_THROW(w = step(std::move(w), tensor({1., -1.})), NumericsError);
  expect_values(w, {2, 4});
}

}  // namespace
}  // namespace reel
