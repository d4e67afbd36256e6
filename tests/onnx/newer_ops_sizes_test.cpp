// Ops of newer op sets in traces that serve any size: one trace, calls of several lengths.
#include "reel/reel.h"
#include "reel/tests/check.h"
#include "reel/tests/onnx/model_text.h"

namespace reel {
namespace {

/// Expects that one trace for any length of axis 1 of x gives the values of eager mode.
void expect_for_any_length(const std::string& text, int width = 4) {
  const OnnxModel model = model_of(text, 27);
  const auto f = [&](const Tensor& x) { return model({{"x", x}}); };
  const auto traced = jit(f, {.any_length = {{0, 1}}});
  for (const std::int64_t length : {3, 5, 1}) {
    const Tensor x = random_normal({Dim(2), Dim(length), Dim(width)});
    const auto eager = f(x), there = traced(x);
    for (const auto& [name, y] : eager) expect_all_close(there.at(name), y, 1e-5);
  }
  EXPECT_EQ(traced.trace_count(), 1);
}

TEST(OnnxNewerOpsSizesTest, AttentionOfAnyLength) {
  expect_for_any_length(R"(g (float[2, t, 4] x) => (float[2, t, 4] y, float[2, 2, t, 2] k) {
    y, k = Attention <q_num_heads = 2, kv_num_heads = 2, is_causal = 1> (x, x, x) })");
}

TEST(OnnxNewerOpsSizesTest, LinearAttentionOfAnyLength) {
  expect_for_any_length(R"(g (float[2, t, 4] x) => (float[2, t, 4] y, float[2, 2, 2, 2] state) {
    y, state = LinearAttention <q_num_heads = 2, kv_num_heads = 2, update_rule = "gated"> (
        x, x, x, , x) })");
}

TEST(OnnxNewerOpsSizesTest, CausalConvolutionOfAnyLength) {
  expect_for_any_length(R"(g (float[2, t, 4] x) => (float[2, 4, t] y, float[2, 4, 2] state)
    <float[4, 1, 3] w = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}> {
    columns = Transpose <perm = [0, 2, 1]> (x)
    y, state = CausalConvWithState <activation = "silu"> (columns, w) })");
}

TEST(OnnxNewerOpsSizesTest, RotaryEmbeddingOfAnyLength) {
  expect_for_any_length(R"(g (float[2, t, 4] x) => (float[2, t, 4] y) {
    halves = CastLike (x, x)
    one, other = Split <axis = 2, num_outputs = 2> (halves)
    sines = Sin (one)
    cosines = Cos (one)
    y = RotaryEmbedding <num_heads = 1, interleaved = 1> (x, cosines, sines) })");
}

TEST(OnnxNewerOpsSizesTest, NormsAndQuantisedOpsOfAnyLength) {
  expect_for_any_length(R"(g (float[2, t, 4] x) => (float[2, t, 4] y, float[2, t, 4] z)
    <float[4] scale = {1, 2, 3, 4}, float unit = {0.25}, int8 zero = {3}> {
    y = RMSNormalization (x, scale)
    bytes = QuantizeLinear (x, unit, zero)
    z = DequantizeLinear (bytes, unit, zero) })");
}

TEST(OnnxNewerOpsSizesTest, CumProdAndBitsOfAnyLength) {
  expect_for_any_length(R"(g (float[2, t, 4] x) => (float[2, t, 4] y, int32[2, t, 4] z)
    <int64 axis = {1}> {
    y = CumProd (x, axis)
    bits = BitCast <to = 6> (x)
    z = BitwiseXor (bits, bits) })");
}

}  // namespace
}  // namespace reel
