// describe and describe_onnx.
#include "reel/reel.h"
#include "reel/tests/check.h"
#include "reel/tests/onnx/model_text.h"
#include "reel/tests/own_folder.h"

namespace reel {
namespace {

constexpr const char* kModel = R"(
  g (float[n, 2] x, bool up) => (float[n, 2] y, float total) <float[2, 2] w = {1, 2, 3, 4}> {
    product = MatMul(x, w)
    y = If (up) <
      then_branch = a () => (float[n, 2] p) { p = Tanh(product) },
      else_branch = b () => (float[n, 2] q) { r = Tanh(product) q = Neg(r) }>
    total = ReduceSum <keepdims = 0> (y)
  })";

TEST(DescribeOnnxTest, NamesTypesAndCountsAreThoseOfTheModel) {
  const OnnxDescription d = describe(model_of(kModel));
  ASSERT_EQ(d.inputs.size(), 2U);
  EXPECT_EQ(d.inputs[0].name, "x");
  EXPECT_EQ(d.inputs[0].type, "float[n,2]");
  EXPECT_EQ(d.inputs[1].type, "bool[]");
  ASSERT_EQ(d.outputs.size(), 2U);
  EXPECT_EQ(d.outputs[1].name, "total");
  EXPECT_EQ(d.outputs[1].type, "float[]");
  ASSERT_EQ(d.parameters.size(), 1U);
  EXPECT_EQ(str(d.parameters.at("w")), "f32[2,2]");
  EXPECT_EQ(d.parameter_count(), 4);
  EXPECT_EQ(d.ops, (std::map<std::string, std::int64_t>{
                       {"If", 1}, {"MatMul", 1}, {"Neg", 1}, {"ReduceSum", 1}, {"Tanh", 2}}));
  EXPECT_EQ(d.op_sets.at("ai.onnx"), 17);
  EXPECT_EQ(d.ir_version, 8);
  EXPECT_TRUE(d.without_rule.empty());
}

class DescribeOnnxFileTest : public InOwnFolder {
 protected:
  DescribeOnnxFileTest() : InOwnFolder("model.onnx") {}
};

TEST_F(DescribeOnnxFileTest, AFileMayHaveOpsWithoutARule) {
  write(path, model_bytes("g (float[2] x) => (float[2] y) { a = local.Unheard(x) b = "
                          "local.Unheard(a) y = Tanh(b) }"));
  EXPECT_THROW(load_onnx(path), OnnxError);
  const OnnxDescription d = describe_onnx(path);
  EXPECT_EQ(d.ops.at("local.Unheard"), 2);
  ASSERT_EQ(d.without_rule.size(), 1U);
  EXPECT_EQ(d.without_rule[0], "op local.Unheard of version 1: nodes of a, of b");
}

TEST(DescribeOnnxTest, AnEmptyModelHasNoDescription) {
  EXPECT_EQ(message_of<ArgumentError>([] { describe(OnnxModel()); }),
            "describe: the model is empty; load_onnx returns one");
  EXPECT_THROW(describe_onnx("no_such_model.onnx"), IoError);
}

}  // namespace
}  // namespace reel
