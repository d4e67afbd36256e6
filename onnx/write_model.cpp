#include "reel/onnx/write_model.h"

#include <limits>

#include "reel/core/base/str.h"
#include "reel/onnx/onnx_error.h"
#include "reel/onnx/proto.h"
// These need the macros that proto.h defines.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
#include <onnx/checker.h>
#include <onnx/shape_inference/implementation.h>
#pragma GCC diagnostic pop

namespace reel::exported {
namespace {

using imported::Attribute;
using ::onnx::AttributeProto;
using ::onnx::GraphProto;
using ::onnx::ModelProto;

void write_tensor(::onnx::TensorProto& to, const imported::Value& value) {
  to.set_data_type(static_cast<int>(value.type));
  for (const std::int64_t size : value.tensor.type().sizes()) to.add_dims(size);
  to.set_raw_data(value.tensor.data<char>(), static_cast<std::size_t>(value.tensor.type().bytes()));
}

void write_declared(::onnx::ValueInfoProto& to, const imported::Declared& declared) {
  to.set_name(declared.name);
  auto& type = *to.mutable_type()->mutable_tensor_type();
  type.set_elem_type(static_cast<int>(declared.type));
  if (!declared.shape) return;
  auto& shape = *type.mutable_shape();
  for (const imported::Declared::Size& size : *declared.shape) {
    auto& dim = *shape.add_dim();
    if (size.size >= 0)
      dim.set_dim_value(size.size);
    else if (!size.name.empty())
      dim.set_dim_param(size.name);
  }
}

void write_graph(GraphProto& to, const imported::Graph& graph);

void write_attribute(AttributeProto& to, const std::string& name, const Attribute& attribute) {
  to.set_name(name);
  switch (attribute.kind) {
    case Attribute::Kind::integer:
      to.set_type(AttributeProto::INT);
      to.set_i(attribute.integer);
      break;
    case Attribute::Kind::integers:
      to.set_type(AttributeProto::INTS);
      for (const std::int64_t value : attribute.integers) to.add_ints(value);
      break;
    case Attribute::Kind::number:
      to.set_type(AttributeProto::FLOAT);
      to.set_f(static_cast<float>(attribute.number));
      break;
    case Attribute::Kind::text:
      to.set_type(AttributeProto::STRING);
      to.set_s(attribute.text);
      break;
    case Attribute::Kind::texts:
      to.set_type(AttributeProto::STRINGS);
      for (const std::string& text : attribute.texts) to.add_strings(text);
      break;
    case Attribute::Kind::tensor:
      to.set_type(AttributeProto::TENSOR);
      write_tensor(*to.mutable_t(), attribute.tensor);
      break;
    case Attribute::Kind::graph:
      to.set_type(AttributeProto::GRAPH);
      write_graph(*to.mutable_g(), *attribute.graph);
      break;
    default:
      throw InternalError(str("save_onnx: attribute ", name, " has a kind without a form in ONNX"));
  }
}

void write_graph(GraphProto& to, const imported::Graph& graph) {
  to.set_name(graph.name);
  for (const imported::Declared& input : graph.inputs) write_declared(*to.add_input(), input);
  for (const imported::Declared& output : graph.outputs) write_declared(*to.add_output(), output);
  for (const auto& [name, value] : graph.constants) {
    auto& tensor = *to.add_initializer();
    tensor.set_name(name);
    write_tensor(tensor, value);
  }
  for (const imported::Node& node : graph.nodes) {
    auto& proto = *to.add_node();
    proto.set_name(node.name);
    proto.set_op_type(node.op);
    for (const std::string& input : node.inputs) proto.add_input(input);
    for (const std::string& output : node.outputs) proto.add_output(output);
    for (const auto& [name, attribute] : node.attributes)
      write_attribute(*proto.add_attribute(), name, attribute);
  }
}

void check(const ModelProto& model) {
  try {
    ::onnx::checker::check_model(model);
    ModelProto inferred = model;  // inference adds types, which the file does not need
    constexpr bool kChecksTypes = true;
    constexpr int kStrict = 1;
    constexpr bool kFollowsValues = false;  // reads beyond arrays in version 1.12
    ::onnx::shape_inference::InferShapes(inferred, ::onnx::OpSchemaRegistry::Instance(),
                                         {kChecksTypes, kStrict, kFollowsValues});
  } catch (const std::exception& error) {
    throw InternalError(str("save_onnx: ONNX's checker refuses the model: ", error.what()));
  }
}

}  // namespace

std::string bytes_of_model(const imported::Graph& graph) {
  ModelProto model;
  model.set_ir_version(kIrVersion);
  model.set_producer_name("Reel");
  auto& op_set = *model.add_opset_import();
  op_set.set_domain("");
  op_set.set_version(kOpSet);
  write_graph(*model.mutable_graph(), graph);
  if (model.ByteSizeLong() >= static_cast<std::size_t>(std::numeric_limits<int>::max()))
    throw OnnxError(str("save_onnx: the model has ", model.ByteSizeLong(),
                        " bytes; a file of ONNX holds less than 2 GiB"));
  check(model);
  return model.SerializeAsString();
}

}  // namespace reel::exported
