#include "reel/onnx/write_model.h"

#include <limits>

#include "reel/core/base/str.h"
#include "reel/onnx/check_model.h"
#include "reel/onnx/node_form.h"
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

/// Writes a tensor, with its elements in another file.
void write_external(::onnx::TensorProto& to, const imported::Value& value, ExternalData& data) {
  to.set_data_type(static_cast<int>(value.type));
  for (const std::int64_t size : value.tensor.type().sizes()) to.add_dims(size);
  to.set_data_location(::onnx::TensorProto::EXTERNAL);
  const auto add = [&](const char* key, const std::string& text) {
    auto& entry = *to.add_external_data();
    entry.set_key(key);
    entry.set_value(text);
  };
  add("location", data.location());
  add("offset", str(data.add(value.tensor)));
  add("length", str(value.tensor.type().bytes()));
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

void write_graph(GraphProto& to, const imported::Graph& graph, ExternalData* data = nullptr);

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

constexpr std::int64_t kSmallestExternal = 1024;  // bytes of a tensor in another file

void write_graph(GraphProto& to, const imported::Graph& graph, ExternalData* data) {
  to.set_name(graph.name);
  for (const imported::Declared& input : graph.inputs) write_declared(*to.add_input(), input);
  for (const imported::Declared& output : graph.outputs) write_declared(*to.add_output(), output);
  for (const auto& [name, value] : graph.constants) {
    auto& tensor = *to.add_initializer();
    tensor.set_name(name);
    tensor.set_doc_string(imported::kSavedMark);
    if (data && value.tensor.type().bytes() >= kSmallestExternal)
      write_external(tensor, value, *data);
    else
      write_tensor(tensor, value);
  }
  for (const imported::Node& node : graph.nodes) {
    auto& proto = *to.add_node();
    proto.set_name(node.name);
    proto.set_op_type(node.op);
    if (node.op == "Constant") proto.set_doc_string(imported::kSavedMark);
    for (const std::string& input : node.inputs) proto.add_input(input);
    for (const std::string& output : node.outputs) proto.add_output(output);
    for (const auto& [name, attribute] : node.attributes)
      write_attribute(*proto.add_attribute(), name, attribute);
  }
}

/// Returns the model with inputs instead of the tensors that are in another file: that is not
/// written yet, and the library would look for it.
ModelProto without_other_files(const ModelProto& model) {
  ModelProto result = model;
  auto& graph = *result.mutable_graph();
  graph.clear_initializer();
  for (const auto& tensor : model.graph().initializer()) {
    if (tensor.data_location() != ::onnx::TensorProto::EXTERNAL) {
      *graph.add_initializer() = tensor;
      continue;
    }
    auto& input = *graph.add_input();
    input.set_name(tensor.name());
    auto& type = *input.mutable_type()->mutable_tensor_type();
    type.set_elem_type(tensor.data_type());
    auto& shape = *type.mutable_shape();
    for (const std::int64_t size : tensor.dims()) shape.add_dim()->set_dim_value(size);
  }
  return result;
}

void check(const ModelProto& model) {
  try {
    imported::check_model(model);
    if (!imported::is_known_to_library(model)) return;
    ModelProto inferred = without_other_files(model);
    ::onnx::checker::check_model(inferred);
    // Inference adds types, which the file does not need.
    constexpr bool kChecksTypes = true;
    constexpr int kStrict = 1;
    constexpr bool kFollowsValues = false;  // reads beyond arrays in version 1.12
    ::onnx::shape_inference::InferShapes(inferred, ::onnx::OpSchemaRegistry::Instance(),
                                         {kChecksTypes, kStrict, kFollowsValues});
  } catch (const std::exception& error) {
    throw InternalError(
        str("save_onnx: a check of ONNX's rules refuses the model: ", error.what()));
  }
}

}  // namespace

std::string bytes_of_model(const imported::Graph& graph, std::int64_t op_set_version,
                           ExternalData* data) {
  ModelProto model;
  model.set_ir_version(ir_version_of(op_set_version));
  model.set_producer_name("Reel");
  auto& op_set = *model.add_opset_import();
  op_set.set_domain("");
  op_set.set_version(op_set_version);
  write_graph(*model.mutable_graph(), graph, data);
  if (model.ByteSizeLong() >= static_cast<std::size_t>(std::numeric_limits<int>::max()))
    throw OnnxError(str("save_onnx: the model has ", model.ByteSizeLong(),
                        " bytes; a file of ONNX holds less than 2 GiB"));
  check(model);
  return model.SerializeAsString();
}

}  // namespace reel::exported
