// Ops of op sets 18 to 27, and older ops in forms that changed there, by numbers computed by hand.
#include <cmath>

#include "reel/reel.h"
#include "reel/tests/check.h"
#include "reel/tests/gradients.h"
#include "reel/tests/modes.h"
#include "reel/tests/onnx/model_text.h"

namespace reel {
namespace {

using OnnxNewerOpsTest = InEveryMode;
REEL_IN_EVERY_MODE(OnnxNewerOpsTest);

constexpr int kNewest = 27;

TEST_P(OnnxNewerOpsTest, ReductionsTakeAxesAsAnInput) {
  const OnnxModel model = model_of(
      R"(g (float[2, 3] x) => (float[2] y) <int64[1] axes = {1}> {
           y = ReduceMax <keepdims = 0> (x, axes) })",
      18);
  expect_values(run([&](const Tensor& x) {
                  return model({{"x", x}}).at("y");
                })(tensor({{1., 5., 2.}, {-3., -4., -1.}})),
                {5, -1});
}

TEST_P(OnnxNewerOpsTest, PadNamesAxesAndWrapsAround) {
  const OnnxModel model = model_of(
      R"(g (float[1, 3] x) => (float[a, b] y) <int64[2] pads = {1, 2}, int64[1] axes = {-1}> {
           y = Pad <mode = "wrap"> (x, pads, , axes) })",
      19);
  expect_values(run([&](const Tensor& x) {
                  return model({{"x", x}}).at("y");
                })(tensor({{1., 2., 3.}})),
                {3, 1, 2, 3, 1, 2});
}

TEST_P(OnnxNewerOpsTest, QuantizeLinearRoundsHalvesToEvenAndSaturates) {
  const OnnxModel model = model_of(
      R"(g (float[5] x) => (int8[5] y) <float scale = {2}, int8 zero = {1}> {
           y = QuantizeLinear (x, scale, zero) })",
      21);
  expect_values(run([&](const Tensor& x) {
                  return model({{"x", x}}).at("y");
                })(tensor({1., 3., -1., 1000., -1000.})),
                {1, 3, 1, 127, -128});
}

TEST_P(OnnxNewerOpsTest, DequantizeLinearHasAScaleForEachBlock) {
  const OnnxModel model = model_of(
      R"(g (uint8[1, 4] x) => (float[1, 4] y) <float[1, 2] scale = {2, 10}> {
           y = DequantizeLinear <axis = 1, block_size = 2> (x, scale) })",
      21);
  expect_values(run([&](const Tensor& x) {
                  return model({{"x", x}}).at("y");
                })(tensor({{1, 2, 3, 4}})),
                {2, 4, 30, 40});
}

TEST_P(OnnxNewerOpsTest, QLinearMatMulIsExactInIntegers) {
  const OnnxModel model = model_of(
      R"(g (uint8[1, 2] a, uint8[2, 1] b) => (uint8[1, 1] y)
           <float scale = {0.5}, uint8 zero = {3}, float of_y = {2}, uint8 zero_y = {10}> {
           y = QLinearMatMul (a, scale, zero, b, scale, zero, of_y, zero_y) })",
      21);
  // ((5 - 3) (7 - 3) + (4 - 3) (9 - 3)) 0.5 0.5 / 2 + 10 = 14 / 8 + 10
  expect_values(run([&](const Tensor& a) {
                  return model({{"a", a}, {"b", tensor({{7}, {9}})}}).at("y");
                })(tensor({{5, 4}})),
                {12});
}

TEST_P(OnnxNewerOpsTest, AttentionWithAMaskReadsTheKeysThatItAllows) {
  const OnnxModel model = model_of(
      R"(g (float[1, 1, 1, 2] q, bool[1, 2] mask) => (float[1, 1, 1, 2] y)
           <float[1, 1, 2, 2] k = {1, 0, 0, 1}, float[1, 1, 2, 2] v = {1, 2, 3, 4}> {
           y = Attention (q, k, v, mask) })",
      kNewest);
  const auto y_of = [&](const Tensor& mask) {
    return run([&](const Tensor& q) {
      return model({{"q", q}, {"mask", mask}}).at("y");
    })(tensor({{{{5., 5.}}}}));
  };
  expect_values(y_of(tensor({{false, true}})), {3, 4});
  expect_values(y_of(tensor({{true, true}})), {2, 3});  // equal scores: the mean
}

TEST_P(OnnxNewerOpsTest, CausalConvolutionInTwoWindowsIsThatOfTheWhole) {
  const OnnxModel model = model_of(
      R"(g (float[1, 1, n] x, float[1, 1, 2] past) => (float[1, 1, n] y, float[1, 1, 2] state)
           <float[1, 1, 3] w = {1, 10, 100}> {
           y, state = CausalConvWithState (x, w, , past) })",
      kNewest);
  const auto apply = [&](const Tensor& x, const Tensor& past) {
    return run([&](const Tensor& x) { return model({{"x", x}, {"past", past}}); })(x);
  };
  const auto whole = apply(tensor({{{1., 2., 3., 4.}}}), zeros({1, 1, 2}));
  expect_values(whole.at("y"), {100, 210, 321, 432});
  const auto first = apply(tensor({{{1., 2.}}}), zeros({1, 1, 2}));
  const auto second = apply(tensor({{{3., 4.}}}), first.at("state"));
  expect_values(second.at("y"), {321, 432});
  expect_values(second.at("state"), {3, 4});
}

TEST_P(OnnxNewerOpsTest, LinearAttentionFollowsTheDeltaRule) {
  const OnnxModel model = model_of(
      R"(g (float[1, 2, 1] q, float[1, 2, 1] v, float[1, 2, 1] beta) =>
           (float[1, 2, 1] y, float[1, 1, 1, 1] state) <float[1, 2, 1] k = {1, 2}> {
           y, state = LinearAttention <q_num_heads = 1, kv_num_heads = 1, scale = 1.0,
                                       update_rule = "delta"> (q, k, v, , , beta) })",
      kNewest);
  // S = 0.5 * 1 * 4 = 2; then S = 2 + 0.5 * 2 * (6 - 2 * 2) = 4.
  const auto out = run([&](const Tensor& q) {
    return model({{"q", q}, {"v", tensor({{{4.}, {6.}}})}, {"beta", tensor({{{0.5}, {0.5}}})}});
  })(tensor({{{1.}, {3.}}}));
  expect_values(out.at("y"), {2, 12});
  expect_values(out.at("state"), {4});
}

TEST_P(OnnxNewerOpsTest, ResizeInterpolatesBetweenCentres) {
  const OnnxModel model = model_of(
      R"(g (float[1, 1, 1, 2] x) => (float[1, 1, 1, 4] y) <float[4] scales = {1, 1, 1, 2}> {
           y = Resize <mode = "linear"> (x, , scales) })",
      19);
  expect_values(run([&](const Tensor& x) {
                  return model({{"x", x}}).at("y");
                })(tensor({{{{0., 4.}}}})),
                {0, 1, 3, 4});
}

TEST_P(OnnxNewerOpsTest, GridSampleReadsZerosOutside) {
  const OnnxModel model = model_of(
      R"(g (float[1, 1, 1, 2] x, float[1, 1, 3, 2] grid) => (float[1, 1, 1, 3] y) {
           y = GridSample <align_corners = 1> (x, grid) })",
      20);
  expect_values(
      run([&](const Tensor& x) {
        return model({{"x", x}, {"grid", tensor({{{{-1., 0.}, {0., 0.}, {2., 0.}}}})}}).at("y");
      })(tensor({{{{2., 6.}}}})),
      {2, 4, 3});
}

TEST_P(OnnxNewerOpsTest, NonMaxSuppressionTakesTheBestBoxes) {
  const OnnxModel model = model_of(
      R"(g (float[1, 3, 4] boxes, float[1, 1, 3] scores) => (int64[n, 3] y)
           <int64 most = {3}, float overlap = {0.5}> {
           y = NonMaxSuppression (boxes, scores, most, overlap) })",
      kNewest);
  const Tensor boxes = tensor({{{0., 0., 1., 1.}, {0., 0.1, 1., 1.1}, {0., 10., 1., 11.}}});
  expect_values(run([&](const Tensor& scores) {
                  return model({{"boxes", boxes}, {"scores", scores}}).at("y");
                })(tensor({{{0.8, 0.9, 0.7}}})),
                {0, 0, 1, 0, 0, 2});
}

TEST_P(OnnxNewerOpsTest, BitsOfFloatsAndIntegersAreKept) {
  const OnnxModel model = model_of(
      R"(g (float[4] x) => (int32[4] bits, float[4] y) {
           bits = BitCast <to = 6> (x)
           y = BitCast <to = 1> (bits) })",
      kNewest);
  const Tensor x = tensor({1.5, -0.0, 1e-30, -3e38}, f32);
  const auto out = run([&](const Tensor& x) { return model({{"x", x}}); })(x);
  expect_values(out.at("bits"), {0x3fc00000, -2147483648., 228737632, -10374682});
  expect_all_close(out.at("y"), x, 0);
}

TEST_P(OnnxNewerOpsTest, BitwiseOpsWorkOnNegativeNumbers) {
  const OnnxModel model = model_of(
      R"(g (int64[3] x, int64[3] z) => (int64[3] both, int64[3] one, int64[3] not) {
           both = BitwiseAnd (x, z)
           one = BitwiseXor (x, z)
           not = BitwiseNot (x) })",
      18);
  const auto out = run([&](const Tensor& x) {
    return model({{"x", x}, {"z", tensor({6, 255, -4}, i64)}});
  })(tensor({3, -1, -7}, i64));
  expect_values(out.at("both"), {2, 255, -8});
  expect_values(out.at("one"), {5, -256, 5});
  expect_values(out.at("not"), {-4, 0, 6});
}

/// x0 <= 1 ? (x1 in {2, 5} ? 10 : 20) : 30, plus the tree x1 > 3 ? 1 : 2. `child` is the first
/// child of the root, which a damaged tree changes.
OnnxModel trees(int child = 1) {
  return model_of(str(R"(g (float[n, 2] x) => (float[n, 1] y) {
           y = ai.onnx.ml.TreeEnsemble <n_targets = 1, tree_roots = [0, 2],
             nodes_featureids = [0, 1, 1], nodes_splits = float[3] {1, 0, 3},
             nodes_modes = uint8[3] {0, 6, 3}, membership_values = float[2] {2, 5},
             nodes_truenodeids = [)",
                      child, R"(, 0, 3], nodes_trueleafs = [0, 1, 1],
             nodes_falsenodeids = [2, 1, 4], nodes_falseleafs = [1, 1, 1],
             nodes_missing_value_tracks_true = [1, 0, 0],
             leaf_targetids = [0, 0, 0, 0, 0], leaf_weights = float[5] {10, 20, 30, 1, 2}> (x) })"),
                  kNewest);
}

TEST_P(OnnxNewerOpsTest, TreesSumTheirLeaves) {
  const OnnxModel model = trees();
  expect_values(run([&](const Tensor& x) {
                  return model({{"x", x}}).at("y");
                })(tensor({{0., 2.}, {1., 4.}, {9., 4.}, {std::nan(""), 5.}})),
                {12, 21, 31, 11});
}

TEST(OnnxNewerOpsErrorTest, SizesOutOfRangeAreErrors) {
  const auto message_for = [](const std::string& text, const Tensor& x) {
    return message_of<ArgumentError>([&] { model_of(text, kNewest)({{"x", x}}); });
  };
  const Tensor image = zeros({1, 4, 2, 2});
  EXPECT_NE(message_for("g (float[1, 4, 2, 2] x) => (float[a, b, c, d] y) { y = DepthToSpace "
                        "<blocksize = 4294967296> (x) }",
                        image)
                .find("does not fit f32[1,4,2,2]"),
            std::string::npos);
  EXPECT_NE(message_for(R"(g (float[4] x) => (float[a] y)
                           <int64[2] pads = {0, 9223372036854775807}> {
                           y = Pad <mode = "reflect"> (x, pads) })",
                        zeros({4}))
                .find("a number of pads is 9223372036854775807"),
            std::string::npos);
  EXPECT_NE(message_for(R"(g (float x) => (float[2, n] y)
                           <int64[2] at = {0, 1}, float[2] values = {0, 1}> {
                           y = OneHot (at, x, values) })",
                        scalar(std::nan(""), f32))
                .find("the depth is nan"),
            std::string::npos);
  EXPECT_NE(message_for(R"(g (float[1, 2, 3] x) => (float[a, b, c, d] y)
                           <int64[4] size = {1, 1, 1099511627776, 2}> {
                           y = AffineGrid (x, size) })",
                        zeros({1, 2, 3}))
                .find("a grid has at most"),
            std::string::npos);
}

TEST(OnnxTreesErrorTest, AWayThatDoesNotEndIsAnError) {
  const std::string message = message_of<ArgumentError>([] { trees(0)({{"x", zeros({1, 2})}}); });
  EXPECT_NE(message.find("a way through a tree does not end"), std::string::npos) << message;
}

TEST(OnnxNewerOpsGradientTest, NewOpsHaveTheirDerivatives) {
  const auto expect_derivative = [](const std::string& text, const Tensor& x) {
    const OnnxModel model = model_of(text, kNewest);
    const auto f = [&](const Tensor& x) {
      const Tensor y = model({{"x", x}}).at("y");
      const Tensor flat = reshape(y, {-1});
      return sum(flat * cast(range(flat.dim(0).size()) + 1, flat.dtype()));
    };
    expect_gradient_of(f, x, grad(f)(x), 1e-6);
  };
  const Tensor image = tensor({{{{0.5, -1.}, {2., 0.25}}}}, f64);
  expect_derivative(
      R"(g (double[1, 1, 2, 2] x) => (double[1, 1, 3, 3] y) <int64[4] s = {1, 1, 3, 3}> {
                         y = Resize <mode = "cubic"> (x, , , s) })",
      image);
  expect_derivative(R"(g (double[1, 1, 2, 2] x) => (double[1, 1, 2, 2] y) {
                         y = Attention <is_causal = 1> (x, x, x) })",
                    image);
  expect_derivative(R"(g (double[1, 1, 2, 2] x) => (double[1, 1, 1, 1] y) {
                         y = LpPool <kernel_shape = [2, 2], p = 3> (x) })",
                    image);
}

}  // namespace
}  // namespace reel
