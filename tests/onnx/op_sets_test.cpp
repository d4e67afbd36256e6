// Models that save_onnx writes in each op set.
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

TEST(OpSetsTest, OtherOpSetsAreRefused) {
  EXPECT_EQ(message_of<ArgumentError>([] { model_in(16); }),
            "save_onnx: op_set is 16, but models are written in 17 to 27");
  EXPECT_EQ(message_of<ArgumentError>([] { model_in(28); }),
            "save_onnx: op_set is 28, but models are written in 17 to 27");
}

}  // namespace
}  // namespace reel
