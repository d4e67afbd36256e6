#include "reel/onnx/read_graph.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "reel/core/base/str.h"
#include "reel/onnx/check_model.h"
#include "reel/onnx/find_parameters.h"
#include "reel/onnx/newer_fields.h"
#include "reel/onnx/onnx_error.h"
#include "reel/onnx/registry.h"

namespace reel::imported {
namespace {

using ::onnx::AttributeProto;
using ::onnx::FunctionProto;
using ::onnx::GraphProto;
using ::onnx::ModelProto;
using ::onnx::NodeProto;

constexpr int kMaxDepth = 64;  // of graphs in nodes and of functions in functions
constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << 30;  // of all calls of functions

using Versions = std::map<std::string, std::int64_t>;
using Attributes = std::map<std::string, const AttributeProto*>;

template <class Imports>
Versions versions_of(const Imports& imports) {
  Versions versions;
  for (const auto& import : imports) versions[domain_of(import.domain())] = import.version();
  return versions;
}

Declared declared(const ::onnx::ValueInfoProto& info) {
  Declared result;
  result.name = info.name();
  const ::onnx::TypeProto* type = &info.type();
  if (type->has_optional_type()) {
    result.is_optional = true;
    type = &type->optional_type().elem_type();
  }
  if (type->has_sequence_type()) {
    result.is_sequence = true;
    type = &type->sequence_type().elem_type();
  }
  if (!type->has_tensor_type()) return result;
  result.type = static_cast<ElementType>(type->tensor_type().elem_type());
  if (!type->tensor_type().has_shape()) return result;
  result.shape.emplace();
  for (const auto& dim : type->tensor_type().shape().dim())
    result.shape->push_back({dim.has_dim_value() ? dim.dim_value() : -1, dim.dim_param()});
  return result;
}

/// Reads one model. Counts nodes, so that functions in functions cannot fill the memory.
class Reader {
 public:
  Reader(const ModelProto& model, const ModelFile& file, const LoadOnnxOptions& options)
      : file_(file), options_(options), versions_(versions_of(model.opset_import())) {
    if (versions_.empty()) versions_[""] = 1;  // before IR version 3
    for (const FunctionProto& function : model.functions())
      functions_[{domain_of(function.domain()), function.name(), overload_of(function)}] = {
          &function, defaults_of(function)};
  }

  Graph graph(const GraphProto& proto, const Versions& versions, const Attributes& given) {
    const Nested nested(*this);
    Graph result;
    result.name = proto.name();
    for (const auto& input : proto.input()) result.inputs.push_back(declared_within(input));
    for (const auto& output : proto.output()) result.outputs.push_back(declared_within(output));
    for (const auto& tensor : proto.initializer())
      if (dtype_of(static_cast<ElementType>(tensor.data_type()))) {  // others are listed later
        result.constants[tensor.name()] = this->tensor(tensor, "initializer " + tensor.name());
        if (tensor.doc_string() == kSavedMark) result.marked.insert(tensor.name());
      }
    if (proto.sparse_initializer_size())
      throw OnnxError(str("graph ", proto.name(), " has sparse initializers"));
    for (const NodeProto& node : proto.node())
      result.nodes.push_back(this->node(node, versions, given));
    return result;
  }
  const Versions& versions() const { return versions_; }

 private:
  struct Nested {
    explicit Nested(Reader& reader) : reader(reader) {
      if (++reader.depth_ > kMaxDepth)
        throw OnnxError(str("graphs or functions are nested more than ", kMaxDepth,
                            " deep; a function that calls itself is not allowed"));
    }
    ~Nested() { --reader.depth_; }
    Reader& reader;
  };

  void check_rank(const std::string& what, std::size_t axes) const {
    if (axes > static_cast<std::size_t>(options_.max_rank))
      throw OnnxError(str(what, " has ", axes,
                          " axes, more than LoadOnnxOptions::max_rank, which is ",
                          options_.max_rank));
  }
  Declared declared_within(const ::onnx::ValueInfoProto& info) const {
    Declared result = declared(info);
    if (result.shape) check_rank(result.name, result.shape->size());
    return result;
  }
  /// Errors name the tensor as `what`.
  Value tensor(const ::onnx::TensorProto& proto, const std::string& what) const {
    check_rank(what, static_cast<std::size_t>(proto.dims_size()));
    return read_tensor(proto, file_);
  }

  Node node(const NodeProto& proto, const Versions& versions, const Attributes& given) {
    Node result;
    result.op = proto.op_type();
    result.domain = domain_of(proto.domain());
    result.inputs.assign(proto.input().begin(), proto.input().end());
    result.outputs.assign(proto.output().begin(), proto.output().end());
    result.name = !proto.name().empty()     ? proto.name()
                  : !result.outputs.empty() ? str("of ", result.outputs[0])
                                            : "without a name";
    if (++nodes_ > options_.max_nodes)
      throw OnnxError(str("the model has more nodes than LoadOnnxOptions::max_nodes, which is ",
                          options_.max_nodes, "; those of functions count at each call. Node ",
                          result.name, " (", result.op, ") is beyond it"));
    result.has_name = !proto.name().empty();
    result.is_marked = proto.doc_string() == kSavedMark;
    const auto version = versions.find(result.domain);
    result.version = version == versions.end() ? 0 : version->second;

    Attributes attributes;
    for (const AttributeProto& attribute : proto.attribute()) {
      const AttributeProto* actual = &attribute;
      if (!attribute.ref_attr_name()
               .empty()) {  // an attribute of the function's call, if it has it
        const auto found = given.find(attribute.ref_attr_name());
        if (found == given.end()) continue;
        actual = found->second;
      }
      attributes[attribute.name()] = actual;
    }
    const auto function = functions_.find({result.domain, result.op, overload_of(proto)});
    if (function != functions_.end()) {
      const auto& [called_function, defaults] = function->second;
      for (const AttributeProto& attribute : defaults)
        attributes.emplace(attribute.name(), &attribute);
      result.function = std::make_shared<const Graph>(called(*called_function, attributes));
      return result;
    }
    for (const auto& [name, attribute] : attributes)
      result.attributes[name] = this->attribute(*attribute, result.name, versions, given);
    result.rule = find_rule(result.domain, result.op, result.version);
    return result;
  }

  /// Returns the graph of a function with the attributes of a call.
  Graph called(const FunctionProto& function, const Attributes& attributes) {
    const Nested nested(*this);
    if ((bytes_ += function.ByteSizeLong()) > kMaxBytes)
      throw OnnxError(str("calls of functions make the model larger than ", kMaxBytes, " bytes"));
    Graph result;
    result.name = function.name();
    for (const std::string& name : function.input()) result.inputs.emplace_back().name = name;
    for (const std::string& name : function.output()) result.outputs.emplace_back().name = name;
    const Versions versions = versions_of(function.opset_import());
    for (const NodeProto& node : function.node())
      result.nodes.push_back(this->node(node, versions, attributes));
    return result;
  }

  /// node: its name, for errors.
  Attribute attribute(const AttributeProto& proto, const std::string& node,
                      const Versions& versions, const Attributes& given) {
    Attribute result;
    switch (proto.type()) {
      case AttributeProto::INT:
        result.kind = Attribute::Kind::integer;
        result.integer = proto.i();
        break;
      case AttributeProto::FLOAT:
        result.kind = Attribute::Kind::number;
        result.number = proto.f();
        break;
      case AttributeProto::STRING:
        result.kind = Attribute::Kind::text;
        result.text = proto.s();
        break;
      case AttributeProto::INTS:
        result.kind = Attribute::Kind::integers;
        result.integers.assign(proto.ints().begin(), proto.ints().end());
        break;
      case AttributeProto::FLOATS:
        result.kind = Attribute::Kind::numbers;
        result.numbers.assign(proto.floats().begin(), proto.floats().end());
        break;
      case AttributeProto::STRINGS:
        result.kind = Attribute::Kind::texts;
        result.texts.assign(proto.strings().begin(), proto.strings().end());
        break;
      case AttributeProto::TENSOR:
        if (!dtype_of(static_cast<ElementType>(proto.t().data_type()))) break;  // listed later
        result.kind = Attribute::Kind::tensor;
        // Calls of a function share its tensors.
        if (!tensors_.count(&proto))
          tensors_[&proto] = tensor(proto.t(), str("attribute ", proto.name(), " of node ", node));
        result.tensor = tensors_[&proto];
        break;
      case AttributeProto::GRAPH:
        result.kind = Attribute::Kind::graph;
        result.graph = std::make_shared<const Graph>(graph(proto.g(), versions, given));
        break;
      default:
        break;
    }
    return result;
  }

  const ModelFile& file_;
  const LoadOnnxOptions& options_;
  Versions versions_;
  /// A function, and its attributes that have defaults.
  using Function = std::pair<const FunctionProto*, std::vector<AttributeProto>>;
  std::map<std::tuple<std::string, std::string, std::string>, Function> functions_;  // by overload
  int depth_ = 0;
  std::int64_t nodes_ = 0;
  std::uint64_t bytes_ = 0;
  std::map<const AttributeProto*, Value> tensors_;
};

}  // namespace

ReadModel read_model(const ModelProto& model, const ModelFile& file,
                     const LoadOnnxOptions& options) {
  Reader reader(model, file, options);
  ReadModel result;
  Program& program = result.program;
  program.limits = options;
  program.graph = reader.graph(model.graph(), reader.versions(), {});
  program.op_sets = reader.versions();
  program.ir_version = model.ir_version();
  result.parameters = take_parameters(program);
  return result;
}

}  // namespace reel::imported
