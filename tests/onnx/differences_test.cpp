// A test for each row of the table of differences in docs/onnx.md: results of ops in cases
// where systems differ.
#include <cmath>
#include <limits>

#include "reel/onnx/proto.h"
#include "reel/onnx/stored.h"
#include "reel/reel.h"
#include "reel/tests/check.h"
#include "reel/tests/onnx/model_text.h"

namespace reel {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

/// Returns the output y of a model for its input x, in eager mode and traced, which agree.
Tensor y_of(const std::string& text, const Tensor& x) {
  const OnnxModel model = model_of(text);
  const auto f = [&](const Tensor& x) { return model({{"x", x}}).at("y"); };
  const Tensor y = f(x);
  expect_all_close(jit(f)(x), y, 1e-6);
  return y;
}

TEST(OnnxDifferencesTest, RoundTakesHalvesToTheEvenNumber) {
  expect_values(
      y_of("g (float[4] x) => (float[4] y) { y = Round(x) }", tensor({0.5, 1.5, 2.5, -2.5})),
      {0, 2, 2, -2});
}

TEST(OnnxDifferencesTest, ClipGivesTheUpperBoundIfBoundsCross) {
  expect_values(y_of(R"(g (float[3] x) => (float[3] y) <float low = {2}, float high = {1}> {
                         y = Clip(x, low, high) })",
                     tensor({0., 1.5, 3.})),
                {1, 1, 1});
}

TEST(OnnxDifferencesTest, NegativePadsCutElementsOff) {
  expect_values(
      y_of(R"(g (float[4] x) => (float[n] y) <int64[2] pads = {-1, 2}> { y = Pad(x, pads) })",
           tensor({1., 2., 3., 4.})),
      {2, 3, 4, 0, 0});
}

TEST(OnnxDifferencesTest, NegativeAxesCountFromTheEnd) {
  expect_values(y_of(R"(g (float[2, 2] x) => (float[2] y) <int64[1] axes = {-1}> {
                         y = ReduceSum <keepdims = 0> (x, axes) })",
                     tensor({{1., 2.}, {3., 4.}})),
                {3, 7});
}

/// The gates are sigmoid(0) = 0.5 and tanh(0) = 0, so c = 0.5 · 10. onnxruntime returns 0.5
/// tanh(5).
TEST(OnnxDifferencesTest, LstmClipsTheStateBeforeTheLastActivation) {
  expect_values(y_of(R"(g (float[1, 1, 1] x) => (float[1, 1, 1] y)
                <float[1, 4, 1] w = {0, 0, 0, 0}, float[1, 1, 1] h = {0}, float[1, 1, 1] c = {10}> {
                sequence, y = LSTM <hidden_size = 1, clip = 1.0> (x, w, w, , , h, c) })",
                     tensor({{{1.}}})),
                {0.5 * std::tanh(1.0)}, 1e-6);
}

TEST(OnnxDifferencesTest, ARowOfMinusInfinityHasNoNan) {
  const Tensor x = tensor({{-kInf, -kInf}, {0., -kInf}});
  expect_values(y_of("g (float[2, 2] x) => (float[2, 2] y) { y = Softmax <axis = 1> (x) }", x),
                {0, 0, 1, 0});
  expect_values(y_of("g (float[2, 2] x) => (float[2, 2] y) { y = LogSoftmax <axis = 1> (x) }", x),
                {-kInf, -kInf, 0, -kInf});
}

TEST(OnnxDifferencesTest, ReductionsOverNoElements) {
  const Tensor none = zeros({0, 2});
  const auto reduce = [&](const std::string& op) {
    return y_of(
        "g (float[0, 2] x) => (float[2] y) { y = " + op + " <axes = [0], keepdims = 0> (x) }",
        none);
  };
  expect_values(reduce("ReduceMax"), {-kInf, -kInf});
  expect_values(reduce("ReduceMin"), {kInf, kInf});
  expect_values(reduce("ReduceProd"), {1, 1});
  expect_values(reduce("ReduceMean"), {0, 0});
  expect_values(reduce("ReduceLogSumExp"), {-kInf, -kInf});
}

TEST(OnnxDifferencesTest, NaNWinsInMaxAndMin) {
  const Tensor x = tensor({kNaN, 1., -1.}, f32);
  const std::string model = "g (float[3] x) => (float[3] y) <float zero = {0}> { y = ";
  expect_values(y_of(model + "Max(x, zero) }", x), {kNaN, 1, 0});
  expect_values(y_of(model + "Min(zero, x) }", x), {kNaN, 0, -1});
  expect_values(y_of(model + "Relu(x) }", x), {kNaN, 1, 0});
}

TEST(OnnxDifferencesTest, IntegersDivideTowardsZero) {
  const std::string model = "g (int32[4] x) => (int32[4] y) <int32[4] by = {2, 2, -2, 0}> { y = ";
  expect_values(y_of(model + "Div(x, by) }", tensor({7, -7, 7, 7})), {3, -3, -3, 0});
  expect_values(y_of(model + "Mod(x, by) }", tensor({7, -7, 7, 7})), {1, 1, -1, 0});
  expect_values(y_of(model + "Mod <fmod = 1> (x, by) }", tensor({7, -7, 7, 7})), {1, -1, 1, 0});
}

TEST(OnnxDifferencesTest, IntegersOfFewerBitsWrapAround) {
  const OnnxModel model = model_of("g (uint8[2] x, uint8[2] z) => (uint8[2] y) { y = Add(x, z) }");
  expect_values(model({{"x", tensor({250, 1})}, {"z", tensor({10, 2})}}).at("y"), {4, 3});
  expect_values(
      y_of("g (float[3] x) => (int8[3] y) { y = Cast <to = 3> (x) }", tensor({130., -1.9, 1.9})),
      {-126, -1, 1});
}

TEST(OnnxDifferencesTest, UnsignedIntegersBeyondI64AreRefused) {
  ::onnx::ModelProto model;
  ASSERT_TRUE(model.ParseFromString(
      model_bytes("g () => (uint64[1] y) <uint64[1] big = {7}> { y = Identity(big) }")));
  ::onnx::TensorProto& big = *model.mutable_graph()->mutable_initializer(0);
  big.clear_uint64_data();
  big.add_uint64_data(std::uint64_t{1} << 63);
  const std::string message =
      message_of<OnnxError>([&] { load_onnx_bytes(model.SerializeAsString()); });
  EXPECT_NE(message.find("has a uint64 of 2^63 or more"), std::string::npos) << message;
}

TEST(OnnxDifferencesTest, CastToFloat16RoundsAndArithmeticDoesNot) {
  expect_values(y_of("g (float[3] x) => (float16[3] y) { y = Cast <to = 10> (x) }",
                     tensor({0.1, 70000., 1e-8})),
                {0.0999755859375, kInf, 0}, 1e-12);
}

TEST(OnnxDifferencesTest, Float4HasNoNan) {
  expect_values(
      imported::stored_as(tensor({kNaN, 1.25, 100.}, f32), imported::ElementType::float4e2m1),
      {0, 1, 6});
}

TEST(OnnxDifferencesTest, TheFirstOfEqualElementsIsTheExtremeOne) {
  expect_values(y_of("g (float[4] x) => (int64 y) { y = ArgMax <axis = 0, keepdims = 0> (x) }",
                     tensor({1., 3., 3., 2.})),
                {1});
  expect_values(y_of(R"(g (float[4] x) => (int64[2] y) <int64[1] k = {2}> {
                         values, y = TopK <axis = 0> (x, k) })",
                     tensor({3., 1., 3., 3.})),
                {0, 2});
}

TEST(OnnxDifferencesTest, SlicesAreCutToTheAxis) {
  expect_values(
      y_of(R"(g (float[3] x) => (float[n] y) <int64[1] from = {-100}, int64[1] to = {100}> {
                         y = Slice(x, from, to) })",
           tensor({1., 2., 3.})),
      {1, 2, 3});
  expect_values(y_of(R"(g (float[3] x) => (float[n] y)
                        <int64[1] from = {100}, int64[1] to = {-100}, int64[1] axes = {0}, int64[1] steps = {-2}> {
                         y = Slice(x, from, to, axes, steps) })",
                     tensor({1., 2., 3.})),
                {3, 1});
}

TEST(OnnxDifferencesTest, OneHotOfAPositionOutOfRangeIsOff) {
  expect_values(
      y_of(R"(g (int64[3] x) => (float[3, 2] y) <int64 depth = {2}, float[2] values = {0, 1}> {
                         y = OneHot(x, depth, values) })",
           tensor({-1, 2, 0}, i64)),
      {0, 1, 0, 0, 1, 0});
}

TEST(OnnxDifferencesTest, AnIndexOutOfRangeIsAnError) {
  const OnnxModel model = model_of(R"(
    g (float[2, 2] x, int64[1, 2] at) => (float[1, 2] y) { y = GatherElements <axis = 1> (x, at) })");
  const auto f = [&](const Tensor& at) {
    return model({{"x", tensor({{1., 2.}, {3., 4.}})}, {"at", at}}).at("y");
  };
  expect_values(f(tensor({{-1, 0}}, i64)), {2, 1});
  const Tensor outside = tensor({{2, 0}}, i64);  // element 3 has its flat position
  EXPECT_THROW(f(outside), AssertionError);
  EXPECT_THROW(jit(f)(outside), AssertionError);
}

TEST(OnnxDifferencesTest, ADropoutThatDoesNotTrainDrawsNothing) {
  manual_seed(7);
  const Tensor before = random_state();
  expect_values(y_of("g (float[2] x) => (float[2] y) { y = Dropout(x) }", tensor({1., 2.})),
                {1, 2});
  expect_same_bits(random_state(), before);
}

TEST(OnnxDifferencesTest, BehindTheEndOfAnEntryRecurrentOutputsAreZeroAndTheStateStays) {
  const OnnxModel model = model_of(R"(
    g (float[3, 1, 1] x, int32[1] lengths) => (float[3, 1, 1, 1] y, float[1, 1, 1] h)
    <float[1, 1, 1] w = {1}, float[1, 1, 1] r = {1}> {
      y, h = RNN <hidden_size = 1, activations = ["Relu"]> (x, w, r, , lengths)
    })");
  const auto out = model({{"x", tensor({{{1.}}, {{2.}}, {{4.}}})}, {"lengths", tensor({2})}});
  expect_values(out.at("y"), {1, 3, 0});
  expect_values(out.at("h"), {3});
}

}  // namespace
}  // namespace reel
