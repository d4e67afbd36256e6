// Models that save_onnx writes in each op set.
#include "reel/frontend/layers/linear_attention.h"
#include "reel/frontend/loops/whole_function.h"
#include "reel/onnx/proto.h"
#include "reel/reel.h"
#include "reel/tests/check.h"
#include "reel/tests/onnx/model_text.h"

namespace reel {
namespace {

::onnx::ModelProto model_in(std::int64_t op_set) {
  const auto f = [](const Tensor& x) {
    return std::pair{max(x, {1}), irfft(rfft(x, 1), 1, Dim(4))};
  };
  ::onnx::ModelProto model;
  model.ParseFromString(onnx_bytes(f, ones({2, 4}), {.op_set = op_set}));
  return model;
}

/// Returns the first node of an op.
::onnx::NodeProto node_of(const ::onnx::ModelProto& model, const std::string& op) {
  for (const auto& node : model.graph().node())
    if (node.op_type() == op) return node;
  return {};
}
bool has_attribute(const ::onnx::NodeProto& node, const std::string& name) {
  for (const auto& attribute : node.attribute())
    if (attribute.name() == name) return true;
  return false;
}

TEST(OpSetsTest, ModelsHaveTheOpSetAndAnIrVersionThatKnowsIt) {
  constexpr std::int64_t kIrVersions[] = {8, 8, 9, 9, 10, 10, 11, 12, 13, 13, 13};
  for (std::int64_t op_set = 17; op_set <= 27; ++op_set) {
    const ::onnx::ModelProto model = model_in(op_set);
    EXPECT_EQ(model.opset_import(0).version(), op_set);
    EXPECT_EQ(model.ir_version(), kIrVersions[op_set - 17]) << op_set;
  }
}

TEST(OpSetsTest, AxesOfReductionsAreAnInputFrom18On) {
  EXPECT_TRUE(has_attribute(node_of(model_in(17), "ReduceMax"), "axes"));
  EXPECT_EQ(node_of(model_in(17), "ReduceMax").input_size(), 1);
  EXPECT_FALSE(has_attribute(node_of(model_in(18), "ReduceMax"), "axes"));
  EXPECT_EQ(node_of(model_in(18), "ReduceMax").input_size(), 2);
}

TEST(OpSetsTest, TheAxisOfDftIsAnInputFrom20On) {
  EXPECT_TRUE(has_attribute(node_of(model_in(19), "DFT"), "axis"));
  EXPECT_FALSE(has_attribute(node_of(model_in(20), "DFT"), "axis"));
  EXPECT_EQ(node_of(model_in(20), "DFT").input_size(), 3);
}

/// Returns how many nodes of an op a saved function has.
template <class F, class... Args>
std::int64_t count_of(const std::string& op, std::int64_t op_set, const F& f,
                      const Args&... arguments) {
  const auto ops =
      describe(load_onnx_bytes(onnx_bytes(f, std::tuple{arguments...}, {.op_set = op_set}))).ops;
  const auto found = ops.find(op);
  return found == ops.end() ? 0 : found->second;
}

TEST(OpSetsTest, FunctionsOfTheFrontendAreNodesFrom23On) {
  const Dim time("time", 3), keys("keys", 4), feature("feature", 2);
  const Tensor q = ones({time, feature}), k = ones({keys, feature});
  const auto seen = [](const Tensor& q, const Tensor& k) {
    return attention(q, k, k, k.dim("keys"), k.dim("feature"));
  };
  const auto turned = [](const Tensor& q) {
    return rotary(q, q.dim("feature"), range(q.dim("time"), i32));
  };
  const auto scaled = [](const RmsNorm& norm, const Tensor& q) { return norm(q); };
  const RmsNorm norm = RmsNorm::init(feature);
  for (const std::int64_t op_set : {17, 22, 23, 26, 27}) {
    const std::int64_t expected = op_set >= 23;
    EXPECT_EQ(count_of("Attention", op_set, seen, q, k), expected) << op_set;
    EXPECT_EQ(count_of("RotaryEmbedding", op_set, turned, q), expected) << op_set;
    EXPECT_EQ(count_of("RMSNormalization", op_set, scaled, norm, q), expected) << op_set;
  }
}

TEST(OpSetsTest, AttentionInALoopOrBranchIsANodeThere) {
  const Dim time("time", 3), keys("keys", 4), feature("feature", 2);
  const Tensor q = ones({time, feature}), k = ones({keys, feature});
  const auto looped = [](const Tensor& q, const Tensor& k) {
    return fori_loop(
        0, 3,
        [&](const Tensor&, const Tensor& s) {
          return transpose(attention(s, k, k, k.dim("keys"), k.dim("feature")), Axes(s.dims()));
        },
        q);
  };
  EXPECT_EQ(count_of("Attention", 23, looped, q, k), 1);
  EXPECT_EQ(count_of("Loop", 23, looped, q, k), 1);
  const auto chosen = [](const Tensor& q, const Tensor& k) {
    return cond(
        sum(q) > 0, [&] { return attention(q, k, k, k.dim("keys"), k.dim("feature")); },
        [&] { return q * 2; });
  };
  EXPECT_EQ(count_of("Attention", 23, chosen, q, k), 1);
}

/// f64, which onnxruntime lacks; residuals, which the node does not give; a bias of blocks.
TEST(OpSetsTest, AttentionIsWrittenByOpsWhereTheNodeDoesNotComputeIt) {
  const Dim time("time", 3), keys("keys", 4), feature("feature", 2);
  const Tensor q = ones({time, feature}), k = ones({keys, feature});
  const auto seen = [](const Tensor& q, const Tensor& k) {
    return attention(q, k, k, k.dim("keys"), k.dim("feature"));
  };
  EXPECT_EQ(count_of("Attention", 23, seen, cast(q, f64), cast(k, f64)), 0);
  const auto gradient = [&](const Tensor& q, const Tensor& k) {
    return value_and_grad([&](const Tensor& q) { return sum(seen(q, k)); })(q);
  };
  EXPECT_EQ(count_of("Attention", 23, gradient, q, k), 0);
  const auto biased = [](const Tensor& q, const Tensor& k) {
    const AttentionBias bias = attention_bias(
        q, [](const Tensor&, const AttentionBlock& at) { return cast(at.keys, f32) * 0.1; });
    return attention(q, k, k, k.dim("keys"), k.dim("feature"), {.bias_of = bias});
  };
  EXPECT_EQ(count_of("Attention", 23, biased, q, k), 0);
}

/// Runtimes multiply q and k by the root of the scale.
TEST(OpSetsTest, AttentionWithANegativeScaleIsWrittenByOps) {
  const Dim time("time", 3), keys("keys", 4), feature("feature", 2);
  const auto scaled = [](double scale) {
    return [scale](const Tensor& q, const Tensor& k) {
      return attention(q, k, k, k.dim("keys"), k.dim("feature"), {.scale = scale});
    };
  };
  const Tensor q = ones({time, feature}), k = ones({keys, feature});
  EXPECT_EQ(count_of("Attention", 23, scaled(0.5), q, k), 1);
  EXPECT_EQ(count_of("Attention", 23, scaled(-0.5), q, k), 0);
}

/// The node would be one without a bias.
TEST(OpSetsTest, AFunctionThatDoesNotReadAnOperandIsWrittenByOps) {
  const Dim time("time", 3), keys("keys", 4), feature("feature", 2);
  const auto f = [](bool reads_bias) {
    return [reads_bias](const Tensor& q, const Tensor& k, const Tensor& bias) {
      const Dim keys = k.dim("keys"), feature = k.dim("feature");
      const WholeFunction call{
          "attention", {q, k, k, bias, Tensor(), Tensor()}, {keys, feature, keys}, {1, 0, -1, 0}};
      return whole_function(call, [&] {
        const Tensor y = q + expand(sum(k, {keys}), q.dims());
        return Tensors{reads_bias ? y + expand(sum(bias, {keys}), q.dims()) : y};
      })[0];
    };
  };
  const Tensor q = ones({time, feature}), k = ones({keys, feature}), bias = ones({time, keys});
  EXPECT_EQ(count_of("Attention", 23, f(true), q, k, bias), 1);
  EXPECT_EQ(count_of("Attention", 23, f(false), q, k, bias), 0);
}

/// The window of the node needs the size of keys, which no value shows.
TEST(OpSetsTest, AFunctionWhoseNodeCannotBeWrittenIsWrittenByOps) {
  const Dim time("time", 3), feature("feature", 2), keys("keys");
  const auto f = [keys](const Tensor& q, const Tensor& k) {
    const Dim feature = q.dim("feature");
    const WholeFunction call{
        "attention", {q, k, k, Tensor(), Tensor(), Tensor()}, {keys, feature, keys}, {1, 0, 1, 0}};
    return whole_function(call, [&] { return Tensors{q + k}; })[0];
  };
  const Tensor q = ones({time, feature});
  EXPECT_EQ(count_of("Attention", 23, f, q, q * 2), 0);
  EXPECT_EQ(count_of("Add", 23, f, q, q * 2), 1);
}

TEST(OpSetsTest, AnOffsetWithoutPositionsIsNoOperandOfAttention) {
  const Dim time("time", 3), keys("keys", 4), feature("feature", 2);
  const auto f = [](const Tensor& q, const Tensor& k, const Tensor& offset) {
    return attention(q, k, k, k.dim("keys"), k.dim("feature"), {.offset = offset});
  };
  EXPECT_EQ(count_of("Attention", 23, f, ones({time, feature}), ones({keys, feature}), scalar(2)),
            1);
}

/// onnxruntime has no op set 27, so Reel alone runs the node.
TEST(OpSetsTest, ADepthwiseCausalConvIsANodeIn27) {
  manual_seed(3);
  const Dim batch("batch", 2), time("time", 5), channel("channel", 3);
  const CausalConv layer = CausalConv::depthwise(3, channel);
  const Tensor x = random_normal({time, batch, channel}),
               past = random_normal({layer.past, channel, batch});
  const auto f = [](const CausalConv& layer, const Tensor& x, const Tensor& past) {
    const auto [y, state] = layer(x, x.dim("time"), past);
    return std::tuple{y, state, layer(x, x.dim("time"))};
  };
  EXPECT_EQ(count_of("CausalConvWithState", 26, f, layer, x, past), 0);
  EXPECT_EQ(count_of("CausalConvWithState", 27, f, layer, x, past), 2);
  const OnnxModel model = load_onnx_bytes(
      onnx_bytes(f, std::tuple{layer, x, past},
                 {.arguments = {"", "x", "past"}, .parameters = {0}, .op_set = 27}));
  const auto outputs = model({{"x", x}, {"past", past}});
  const auto [y, state, alone] = f(layer, x, past);
  const auto plain = [](const Tensor& x) { return reshape(x, x.shape()); };
  expect_all_close(outputs.at("y0"), plain(y), 1e-6);
  expect_all_close(outputs.at("y1"), plain(state), 1e-6);
  expect_all_close(outputs.at("y2"), plain(alone), 1e-6);
}

/// Each rule, with dims in other orders than the node's.
TEST(OpSetsTest, LinearAttentionIsANodeIn27) {
  manual_seed(4);
  const Dim batch("batch", 2), time("time", 5), heads("heads", 2), groups("groups", 3),
      feature("feature", 4), value("value", 3);
  const Tensor q = random_normal({time, groups, heads, batch, feature}),
               k = random_normal({batch, time, feature, heads}),
               v = random_normal({value, time, batch, heads}),
               state = random_normal({heads, batch, value, feature}),
               decay = random_normal({time, heads, batch}) * 0.2,
               beta = random_uniform({batch, time});
  const std::vector<std::pair<std::string, LinearAttentionOptions>> rules{
      {"linear", {.scale = 0.25}},
      {"gated", {.decay = decay}},
      {"delta", {.beta = beta}},
      {"gated_delta", {.decay = decay, .beta = beta}}};
  for (const auto& [rule, options] : rules) {
    const auto f = [&](const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& state) {
      return linear_attention(q, k, v, k.dim("time"), k.dim("feature"), state, options);
    };
    EXPECT_EQ(count_of("LinearAttention", 26, f, q, k, v, state), 0) << rule;
    EXPECT_EQ(count_of("LinearAttention", 27, f, q, k, v, state), 1) << rule;
    const std::string bytes = onnx_bytes(f, std::tuple{q, k, v, state}, {.op_set = 27});
    EXPECT_NE(bytes.find(rule), std::string::npos);
    const auto outputs = load_onnx_bytes(bytes)({{"x0", q}, {"x1", k}, {"x2", v}, {"x3", state}});
    const auto [y, last] = f(q, k, v, state);
    expect_all_close(outputs.at("y0"), reshape(y, y.shape()));
    expect_all_close(outputs.at("y1"), reshape(last, last.shape()));
  }
}

/// The node takes a scale of 0 for its default.
TEST(OpSetsTest, LinearAttentionWithAScaleOfZeroIsWrittenByOps) {
  const Dim time("time", 3), feature("feature", 2), value("value", 2);
  const auto scaled = [](double scale) {
    return [scale](const Tensor& k, const Tensor& v, const Tensor& state) {
      return linear_attention(k, k, v, k.dim("time"), k.dim("feature"), state, {.scale = scale});
    };
  };
  const Tensor k = ones({time, feature}), v = ones({time, value}), state = ones({feature, value});
  EXPECT_EQ(count_of("LinearAttention", 27, scaled(0.5), k, v, state), 1);
  EXPECT_EQ(count_of("LinearAttention", 27, scaled(0), k, v, state), 0);
}

/// Lengths end a state before the last element, and dilation is no attribute of the node.
TEST(OpSetsTest, ACausalConvIsWrittenByOpsWhereTheNodeDoesNotComputeIt) {
  const Dim batch("batch", 2), uneven("uneven", tensor({5, 2}, {batch})), channel("channel", 3);
  const Tensor x = ones({batch, uneven, channel}), even = ones({batch, Dim("time", 5), channel});
  const auto with_state = [](const CausalConv& layer, const Tensor& x) {
    return layer(x, x.dims()[1], layer.initial_state({x.dims()[0]})).second;
  };
  const CausalConv layer = CausalConv::depthwise(3, channel);
  EXPECT_EQ(count_of("CausalConvWithState", 27, with_state, layer, x), 0);
  EXPECT_EQ(count_of("CausalConvWithState", 27, with_state, layer, even), 1);
  const CausalConv apart = CausalConv::depthwise(3, channel, {.dilation = 2});
  EXPECT_EQ(count_of("CausalConvWithState", 27, with_state, apart, even), 0);
}

TEST(OpSetsTest, OtherOpSetsAreRefused) {
  EXPECT_EQ(message_of<ArgumentError>([] { model_in(16); }),
            "save_onnx: op_set is 16, but models are written in 17 to 27");
  EXPECT_EQ(message_of<ArgumentError>([] { model_in(28); }),
            "save_onnx: op_set is 28, but models are written in 17 to 27");
}

}  // namespace
}  // namespace reel
