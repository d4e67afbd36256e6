#include "reel/tests/onnx/damage.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "reel/onnx/proto.h"

namespace reel {

using ::onnx::GraphProto;
using ::onnx::ModelProto;

std::string ModelDamage::damaged(std::string bytes, const std::string& other) {
  if (below(2)) bytes = with_changed_model(bytes, other);
  if (below(2))
    for (std::uint64_t i = below(8) + 1; i > 0; --i) change_bytes(bytes);
  return bytes;
}

std::string ModelDamage::with_changed_model(const std::string& bytes, const std::string& other) {
  ModelProto model, source;
  if (!model.ParseFromString(bytes)) return bytes;
  source.ParseFromString(other);
  for (std::uint64_t i = below(4) + 1; i > 0; --i) change(model, *model.mutable_graph(), source);
  return model.SerializeAsString();
}

void ModelDamage::change_bytes(std::string& bytes) {
  if (bytes.empty()) return;
  const std::size_t at = below(bytes.size());
  switch (below(5)) {
    case 0:
      bytes[at] = static_cast<char>(random_());
      break;
    case 1:
      bytes.erase(at, below(16) + 1);
      break;
    case 2:
      bytes.insert(at, bytes.substr(below(bytes.size()), below(32) + 1));
      break;
    case 3:
      bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(8)));
      break;
    default:
      bytes[at] = '\xff';
  }
}

std::int64_t ModelDamage::any_number() {
  constexpr std::int64_t kLarge = std::int64_t{1} << 40;
  using Limits = std::numeric_limits<std::int64_t>;
  constexpr std::int64_t kNumbers[] = {
      0, 1, -1, 2, 3, 7, 64, -2, 1 << 20, kLarge, Limits::max(), Limits::min()};
  return kNumbers[below(std::size(kNumbers))];
}

void ModelDamage::change_element(::onnx::TensorProto& tensor) {
  const std::int64_t number = any_number();
  const double numbers[] = {static_cast<double>(number), std::nan(""), HUGE_VAL, 0.5, -1e300};
  const double real = numbers[below(std::size(numbers))];
  const auto narrow = static_cast<float>(real);
  const auto put = [&](const auto& element) {
    std::string& raw = *tensor.mutable_raw_data();
    if (raw.size() < sizeof element) return;
    std::memcpy(raw.data() + below(raw.size() / sizeof element) * sizeof element, &element,
                sizeof element);
  };
  const auto at = [&](int count) {
    return static_cast<int>(below(static_cast<std::uint64_t>(count)));
  };
  if (tensor.int64_data_size()) tensor.set_int64_data(at(tensor.int64_data_size()), number);
  if (tensor.float_data_size()) tensor.set_float_data(at(tensor.float_data_size()), narrow);
  if (!tensor.has_raw_data()) return;
  if (tensor.data_type() == ::onnx::TensorProto::FLOAT)
    put(narrow);
  else if (tensor.data_type() == ::onnx::TensorProto::DOUBLE)
    put(real);
  else if (tensor.data_type() == ::onnx::TensorProto::INT64)
    put(number);
  else
    put(static_cast<std::int32_t>(number));
}

void ModelDamage::change(ModelProto& model, GraphProto& graph, const ModelProto& other) {
  if (below(8) == 0 && model.opset_import_size()) {
    model.mutable_opset_import(0)->set_version(any_number());
    return;
  }
  if (graph.node_size() == 0) return;
  auto& node =
      *graph.mutable_node(static_cast<int>(below(static_cast<std::uint64_t>(graph.node_size()))));
  const auto any = [&](int count) {
    return static_cast<int>(below(static_cast<std::uint64_t>(count)));
  };
  switch (below(13)) {
    case 0:
      if (other.graph().node_size())
        node.set_op_type(other.graph().node(any(other.graph().node_size())).op_type());
      break;
    case 1:
      if (node.input_size() && node.output_size())
        node.set_input(any(node.input_size()), node.output(0));
      break;
    case 2:
      if (node.input_size()) node.mutable_input()->RemoveLast();
      break;
    case 3:
      *graph.add_node() = node;
      break;
    case 4:
      if (other.graph().node_size())
        *graph.add_node() = other.graph().node(any(other.graph().node_size()));
      break;
    case 5: {  // a graph in itself
      auto& attribute = *node.add_attribute();
      attribute.set_name("body");
      attribute.set_type(::onnx::AttributeProto::GRAPH);
      const GraphProto copy = graph;
      *attribute.mutable_g() = copy;
      break;
    }
    case 6:
      if (node.attribute_size()) {
        auto& attribute = *node.mutable_attribute(any(node.attribute_size()));
        attribute.set_i(any_number());
        if (attribute.ints_size()) attribute.set_ints(any(attribute.ints_size()), any_number());
      }
      break;
    case 7:
    case 10:
    case 11:
      if (graph.initializer_size()) {  // numbers of an input: sizes, axes, positions
        change_element(*graph.mutable_initializer(any(graph.initializer_size())));
      }
      break;
    case 12:
      if (graph.initializer_size()) {
        auto& tensor = *graph.mutable_initializer(any(graph.initializer_size()));
        tensor.add_dims(any_number());
        tensor.set_data_type(any(20));
      }
      break;
    case 8: {  // a function that the node calls, and which calls itself
      auto& function = *model.add_functions();
      function.set_name("f");
      function.set_domain("local");
      for (const auto& name : node.input()) function.add_input(name);
      for (const auto& name : node.output()) function.add_output(name);
      if (model.opset_import_size()) *function.add_opset_import() = model.opset_import(0);
      auto& import = *function.add_opset_import();
      import.set_domain("local");
      import.set_version(1);
      *function.add_node() = node;
      node.set_domain("local");
      node.set_op_type("f");
      *function.add_node() = node;
      *model.add_opset_import() = import;
      break;
    }
    default:
      if (node.attribute_size()) node.mutable_attribute()->RemoveLast();
  }
}

}  // namespace reel
