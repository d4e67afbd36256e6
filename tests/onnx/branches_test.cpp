// Branches of If that cannot run for the sizes of a trace.
#include "reel/reel.h"
#include "reel/tests/check.h"
#include "reel/tests/modes.h"
#include "reel/tests/onnx/model_text.h"

namespace reel {
namespace {

/// One branch takes windows of four samples, the other of eight.
constexpr const char* kRates = R"(
  g (float[n] x, bool is_slow) => (float[m] y) {
    two = Constant <value = float[2] {10, 100}> ()
    y = If (is_slow) <
      then_branch = slow () => (float[a] p) {
        slow_sizes = Constant <value = int64[2] {2, 2}> ()
        slow_rows = Reshape(x, slow_sizes)
        p = MatMul(slow_rows, two)
      },
      else_branch = fast () => (float[b] q) {
        fast_sizes = Constant <value = int64[2] {4, 2}> ()
        fast_rows = Reshape(x, fast_sizes)
        q = MatMul(fast_rows, two)
      }>
  })";

using OnnxBranchesTest = InEveryMode;
REEL_IN_EVERY_MODE(OnnxBranchesTest);

TEST_P(OnnxBranchesTest, ABranchThatCannotRunDoesNotMatterUnlessItIsTaken) {
  const OnnxModel model = model_of(kRates);
  const auto f = run([](const OnnxModel& m, const Tensor& x, const Tensor& is_slow) {
    return m({{"x", x}, {"is_slow", is_slow}}).at("y");
  });
  expect_values(f(model, tensor({1., 2., 3., 4.}), scalar(true)), {210, 430});
  expect_values(f(model, tensor({1., 2., 3., 4., 5., 6., 7., 8.}), scalar(false)),
                {210, 430, 650, 870});
}

TEST(OnnxBranchErrorsTest, TheRunThatTakesTheBranchThrowsItsError) {
  const OnnxModel model = model_of(kRates);
  const auto f = jit([](const OnnxModel& m, const Tensor& x, const Tensor& is_slow) {
    return m({{"x", x}, {"is_slow", is_slow}}).at("y");
  });
  const Tensor x = tensor({1., 2., 3., 4.});
  expect_values(f(model, x, scalar(true)), {210, 430});
  const std::string error = message_of<AssertionError>([&] { f(model, x, scalar(false)); });
  EXPECT_NE(error.find("If: the run does not take the branch fast, which cannot run for the sizes"),
            std::string::npos)
      << error;
  EXPECT_NE(error.find("in node of fast_rows (Reshape)"), std::string::npos) << error;
}

TEST(OnnxBranchErrorsTest, GradientsFlowThroughTheBranchThatRuns) {
  const OnnxModel model = model_of(kRates);
  const auto gradient = jit([](const OnnxModel& m, const Tensor& x, const Tensor& is_slow) {
    return grad([&](const OnnxModel& m) {
      return sum(m({{"x", x}, {"is_slow", is_slow}}).at("y"));
    })(m);
  });
  const OnnxModel result = gradient(model, tensor({1., 2., 3., 4.}), scalar(true));
  expect_values(result.parameters.at("two"), {4, 6});
}

TEST(OnnxBranchErrorsTest, TwoBranchesThatCannotRunAreAnErrorOfTheTrace) {
  const OnnxModel model = model_of(kRates);
  const auto f = jit([](const OnnxModel& m, const Tensor& x, const Tensor& is_slow) {
    return m({{"x", x}, {"is_slow", is_slow}}).at("y");
  });
  EXPECT_THROW(f(model, tensor({1., 2., 3.}), scalar(true)), Error);
}

TEST(OnnxBranchErrorsTest, BranchesOfOtherRanksNeedAConditionThatTheTraceKnows) {
  const OnnxModel model = model_of(R"(
  g (float[n] x, bool is_whole) => (float[m] y) {
    z = If (is_whole) <
      then_branch = sum () => (float p) { p = ReduceSum <keepdims = 0> (x) },
      else_branch = each () => (float[k] q) { q = Identity(x) }>
    y = Add(z, x)
  })");
  const Tensor x = tensor({1., 2., 3.});
  const auto y = [&](const Tensor& x, const Tensor& is_whole) {
    return model({{"x", x}, {"is_whole", is_whole}}).at("y");
  };
  const std::string error = message_of<TraceError>([&] { jit(y)(x, scalar(true)); });
  EXPECT_NE(error.find("If: sum and each return values of different ranks"), std::string::npos)
      << error;
  for (const bool is_whole : {true, false}) {
    const Tensor known = scalar(is_whole);
    const auto of_x = [&](const Tensor& x) -> Tensor { return y(x, known); };
    expect_values(of_x(x), is_whole ? std::vector<double>{7, 8, 9} : std::vector<double>{2, 4, 6});
    expect_same_bits(jit(of_x)(x), of_x(x));
  }
}

}  // namespace
}  // namespace reel
