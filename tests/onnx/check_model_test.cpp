// Reel's own checks of models: each rule, and that the checker of ONNX's library adds nothing.
#include "reel/onnx/check_model.h"

#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>

#include "reel/onnx/check_support.h"
#include "reel/onnx/read_graph.h"
#include "reel/reel.h"
#include "reel/tests/check.h"
#include "reel/tests/onnx/damage.h"
#include "reel/tests/onnx/model_text.h"

namespace reel {
namespace {

using ::onnx::ModelProto;

ModelProto parsed(const std::string& text, int version = 17) {
  ModelProto model;
  model.ParseFromString(model_bytes(text, version));
  return model;
}
/// Returns the message for y = Add(x, x) after a change.
std::string message_after(const std::function<void(ModelProto&)>& change) {
  ModelProto model = parsed("g (float[2] x) => (float[2] y) { y = Add(x, x) }");
  change(model);
  return message_of<OnnxError>([&] { imported::check_model(model); });
}
::onnx::NodeProto& node_of(ModelProto& model) { return *model.mutable_graph()->mutable_node(0); }

TEST(CheckModelTest, AcceptsAModelWithoutFaults) {
  imported::check_model(parsed("g (float[2] x) => (float[2] y) { y = Add(x, x) }"));
}

TEST(CheckModelTest, NewerOpSetsSayHowToExport) {
  EXPECT_EQ(message_after([](ModelProto& m) { m.mutable_opset_import(0)->set_version(31); }),
            "op set 31 is newer than 27; export with opset_version=27");
}

TEST(CheckModelTest, NewerIrVersionsAreRead) {
  ModelProto model = parsed("g (float[2] x) => (float[2] y) { y = Add(x, x) }");
  model.set_ir_version(99);
  EXPECT_FALSE(imported::is_known_to_library(model));
  const OnnxModel loaded = load_onnx_bytes(model.SerializeAsString());
  expect_values(loaded({{"x", tensor({1., 2.})}}).at("y"), {2, 4});
}

TEST(CheckModelTest, NamesAreDefinedOnceAndBeforeUse) {
  EXPECT_EQ(message_after([](ModelProto& m) { node_of(m).set_input(1, "z"); }),
            "the node of y (Add) reads z, which no node before it computes");
  EXPECT_EQ(message_after([](ModelProto& m) { node_of(m).set_output(0, "x"); }),
            "the node of x (Add) computes x, a name that is there already");
  EXPECT_EQ(message_after([](ModelProto& m) { node_of(m).set_output(0, "z"); }),
            "output y of graph g is computed by no node");
}

TEST(CheckModelTest, NodesHaveTheInputsAndOutputsOfTheirOp) {
  EXPECT_EQ(message_after([](ModelProto& m) { node_of(m).add_input("x"); }),
            "the node of y (Add) has 3 inputs, but the op takes 2");
  EXPECT_EQ(message_after([](ModelProto& m) { node_of(m).set_input(0, ""); }),
            "the node of y (Add) leaves out one of its inputs, number 0, which is not optional");
  EXPECT_EQ(message_after([](ModelProto& m) { node_of(m).add_output("z"); }),
            "the node of y (Add) has 2 outputs, but the op takes 1");
}

TEST(CheckModelTest, AttributesAreThoseOfTheVersion) {
  const auto with = [](const std::string& name, int version, bool is_text) {
    return message_after([&](ModelProto& m) {
      m.mutable_opset_import(0)->set_version(version);
      auto& attribute = *node_of(m).add_attribute();
      attribute.set_name(name);
      attribute.set_type(is_text ? ::onnx::AttributeProto::STRING : ::onnx::AttributeProto::INT);
      is_text ? attribute.set_s("0") : attribute.set_i(0);
    });
  };
  EXPECT_EQ(with("axis", 17, false),
            "the node of y (Add) has the attribute axis, which the op lacks in version 17");
  EXPECT_EQ(with("axis", 6, true), "attribute axis of the node of y (Add) has a wrong type");
  EXPECT_EQ(message_after([](ModelProto& m) {
              node_of(m).set_op_type("Cast");
              node_of(m).mutable_input()->RemoveLast();
            }),
            "the node of y (Cast) lacks the attribute to");
}

TEST(CheckModelTest, GraphsOfNodesAreChecked) {
  EXPECT_EQ(message_of<OnnxError>([] {
              imported::check_model(parsed(R"(g (bool c, float[2] x) => (float[2] y) {
                y = If (c) <then_branch = t () => (float[2] a) { a = Abs(x, x) },
                            else_branch = e () => (float[2] b) { b = Abs(x) }>
              })"));
            }),
            "the node of a (Abs) has 2 inputs, but the op takes 1");
}

/// Returns true if the model is refused; `by_library` adds the checker of ONNX's library.
bool is_refused(const ModelProto& model, bool by_library) {
  try {
    imported::check_model(model);
    if (by_library && imported::is_known_to_library(model)) imported::check_by_library(model, "");
    imported::check_support(imported::read_model(model, {"the data", ""}, {}).program, model);
    return false;
  } catch (const std::exception&) {
    return true;
  }
}

TEST(CheckModelTest, TheLibrarysCheckerRefusesNoOtherDamagedModels) {
  std::vector<std::string> seeds;
  std::error_code error;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(REEL_ONNX_DATA "/node", error)) {
    if (entry.path().filename() != "model.onnx" || entry.file_size() > 1 << 12) continue;
    std::ostringstream bytes;
    bytes << std::ifstream(entry.path(), std::ios::binary).rdbuf();
    seeds.push_back(bytes.str());
  }
  if (seeds.empty()) GTEST_SKIP() << "there is no test data of ONNX (Debian: libonnx-testdata)";
  std::sort(seeds.begin(), seeds.end());
  ModelDamage damage(7);
  int refused = 0, accepted = 0;
  for (int i = 0; i < 20'000; ++i) {
    ModelProto model;
    const std::string& seed = seeds[damage.below(seeds.size())];
    if (!model.ParseFromString(damage.damaged(seed, seeds[damage.below(seeds.size())])) ||
        !model.has_graph())
      continue;
    const bool alone = is_refused(model, false);
    ++(alone ? refused : accepted);
    EXPECT_EQ(alone, is_refused(model, true)) << model.ShortDebugString().substr(0, 2000);
  }
  EXPECT_GT(refused, 1000);
  EXPECT_GT(accepted, 1000);
}

// ---- Fields that ONNX's library may not know --------------------------------------------------

/// Returns a model that calls f(x) of the overload `wanted`; the functions "add" and "mul" differ.
std::string overloaded(const std::string& wanted) {
  ModelProto model = parsed("g (float[2] x) => (float[2] y) { y = local.f(x) }");
  model.set_ir_version(10);
  const auto set_text = [](google::protobuf::Message& message, int number,
                           const std::string& text) {
    message.GetReflection()->MutableUnknownFields(&message)->AddLengthDelimited(number, text);
  };
  set_text(node_of(model), 8, wanted);
  for (const auto& [overload, op] : {std::pair{"add", "Add"}, std::pair{"mul", "Mul"}}) {
    auto& function = *model.add_functions();
    function.set_name("f");
    function.set_domain("local");
    function.add_input("a");
    function.add_output("b");
    function.add_opset_import()->set_version(17);
    auto& node = *function.add_node();
    node.set_op_type(op);
    node.add_input("a");
    node.add_input("a");
    node.add_output("b");
    set_text(function, 13, overload);
  }
  return model.SerializeAsString();
}

TEST(NewerFieldsTest, NodesCallTheFunctionOfTheirOverload) {
  const Tensor x = tensor({3., 5.});
  expect_values(load_onnx_bytes(overloaded("add"))({{"x", x}}).at("y"), {6, 10});
  expect_values(load_onnx_bytes(overloaded("mul"))({{"x", x}}).at("y"), {9, 25});
  EXPECT_THROW(load_onnx_bytes(overloaded("sub")), OnnxError);
}

TEST(NewerFieldsTest, AttributesOfFunctionsHaveDefaults) {
  ModelProto model = parsed("g (float[2] x) => (float[2] y) { y = local.f(x) }");
  model.set_ir_version(10);
  auto& function = *model.add_functions();
  function.set_name("f");
  function.set_domain("local");
  function.add_input("a");
  function.add_output("b");
  function.add_opset_import()->set_version(17);
  auto& node = *function.add_node();
  node.set_op_type("LeakyRelu");
  node.add_input("a");
  node.add_output("b");
  auto& reference = *node.add_attribute();
  reference.set_name("alpha");
  reference.set_ref_attr_name("slope");
  reference.set_type(::onnx::AttributeProto::FLOAT);
  ::onnx::AttributeProto slope;
  slope.set_name("slope");
  slope.set_type(::onnx::AttributeProto::FLOAT);
  slope.set_f(0.5);
  function.GetReflection()->MutableUnknownFields(&function)->AddLengthDelimited(
      11, slope.SerializeAsString());
  const Tensor x = tensor({-4., 6.});
  expect_values(load_onnx_bytes(model.SerializeAsString())({{"x", x}}).at("y"), {-2, 6});

  slope.set_f(0.25);
  *node_of(model).add_attribute() = slope;
  expect_values(load_onnx_bytes(model.SerializeAsString())({{"x", x}}).at("y"), {-1, 6});
}

}  // namespace
}  // namespace reel
