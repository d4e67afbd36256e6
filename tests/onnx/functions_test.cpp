// Functions of a model, and graphs in graphs.
#include "reel/onnx/proto.h"
#include "reel/reel.h"
#include "reel/tests/check.h"
#include "reel/tests/onnx/model_text.h"

namespace reel {
namespace {

/// Adds a function of two nodes: out = operation(operation(a, b), b), in the domain "local".
::onnx::FunctionProto& add_function(::onnx::ModelProto& model, const std::string& name,
                                    const std::string& operation, const std::string& domain = "") {
  auto& function = *model.add_functions();
  function.set_name(name);
  function.set_domain("local");
  function.add_input("a");
  function.add_input("b");
  function.add_output("out");
  auto& import = *function.add_opset_import();
  import.set_domain("");
  import.set_version(17);
  auto& local = *function.add_opset_import();
  local.set_domain("local");
  local.set_version(1);
  for (const auto& [in, out] : {std::pair{"a", "middle"}, std::pair{"middle", "out"}}) {
    auto& node = *function.add_node();
    node.set_op_type(operation);
    node.set_domain(domain);
    node.add_input(in);
    node.add_input("b");
    node.add_output(out);
  }
  return function;
}

::onnx::ModelProto caller(const std::string& name) {
  ::onnx::ModelProto model;
  model.ParseFromString(model_bytes(
      "g (float[2] x) => (float[2] y) <float[2] w = {3, 4}> { y = local." + name + "(x, w) }"));
  return model;
}

TEST(OnnxFunctionsTest, AreCalled) {
  ::onnx::ModelProto model = caller("twice");
  add_function(model, "twice", "Add");
  const OnnxModel loaded = load_onnx_bytes(model.SerializeAsString());
  expect_values(loaded({{"x", tensor({1., 2.})}}).at("y"), {7, 10});
}

TEST(OnnxFunctionsTest, MayCallOthers) {
  ::onnx::ModelProto model = caller("four_times");
  add_function(model, "twice", "Add");
  add_function(model, "four_times", "twice", "local");
  const OnnxModel loaded = load_onnx_bytes(model.SerializeAsString());
  expect_values(loaded({{"x", tensor({1., 2.})}}).at("y"), {13, 18});
}

TEST(OnnxFunctionsTest, RecursiveFunctionsAreRefused) {
  ::onnx::ModelProto model = caller("forever");
  add_function(model, "forever", "forever", "local");
  EXPECT_THROW(load_onnx_bytes(model.SerializeAsString()), OnnxError);
}

TEST(OnnxFunctionsTest, FunctionsThatGrowWithoutLimitAreRefused) {
  ::onnx::ModelProto model = caller("f30");
  add_function(model, "f0", "Add");
  for (int i = 1; i <= 30; ++i) add_function(model, str("f", i), str("f", i - 1), "local");
  EXPECT_THROW(load_onnx_bytes(model.SerializeAsString()), OnnxError);
}

}  // namespace
}  // namespace reel
