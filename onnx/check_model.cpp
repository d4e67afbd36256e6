#include "reel/onnx/check_model.h"

#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "reel/core/base/str.h"
#include "reel/onnx/element_type.h"
#include "reel/onnx/newer_fields.h"
#include "reel/onnx/onnx_error.h"
#include "reel/onnx/op_forms.h"
#include "reel/onnx/registry.h"

namespace reel::imported {
namespace {

using ::onnx::AttributeProto;
using ::onnx::FunctionProto;
using ::onnx::GraphProto;
using ::onnx::ModelProto;
using ::onnx::NodeProto;
using ::onnx::TensorProto;

constexpr std::int64_t kFirstWithTypes = 2;      // IR versions: attributes have a type,
constexpr std::int64_t kFirstWithOpSets = 3;     // models name op sets,
constexpr std::int64_t kFirstWithConstants = 4;  // initializers need not be inputs,
constexpr std::int64_t kFirstWithFunctions = 8;  // functions have a domain
constexpr std::int64_t kLastWithFullLists = 17;  // op set: later ones allow empty lists

using OpSets = std::map<std::string, std::int64_t>;
/// A function's identity: its domain, name and overload.
using FunctionKey = std::tuple<std::string, std::string, std::string>;

template <class... Parts>
[[noreturn]] void refuse(const Parts&... parts) {
  throw OnnxError(str(parts...));
}

/// Names that are defined, in a graph and in those around it.
class Names {
 public:
  explicit Names(const Names* outer = nullptr) : outer_(outer) {}
  bool has_here(const std::string& name) const { return names_.count(name) > 0; }
  bool has(const std::string& name) const {
    return has_here(name) || (outer_ && outer_->has(name));
  }
  void add(const std::string& name) { names_.insert(name); }

 private:
  std::set<std::string> names_;
  const Names* outer_;
};

std::string title_of(const NodeProto& node) {
  std::string title = str("node ", node.name());
  if (node.name().empty())
    title = node.output_size() ? str("the node of ", node.output(0)) : "a node";
  return str(title, " (", node.op_type(), ")");
}

// ---- Tensors and types ------------------------------------------------------------------------

/// The field that has the elements of a type, unless they are raw data.
int elements_in_field(const TensorProto& tensor) {
  switch (static_cast<ElementType>(tensor.data_type())) {
    case ElementType::float32:
    case ElementType::complex64:
      return tensor.float_data_size();
    case ElementType::float64:
    case ElementType::complex128:
      return tensor.double_data_size();
    case ElementType::int64:
      return tensor.int64_data_size();
    case ElementType::uint32:
    case ElementType::uint64:
      return tensor.uint64_data_size();
    case ElementType::string:
      return tensor.string_data_size();
    default:
      return tensor.int32_data_size();
  }
}

void check_tensor(const TensorProto& tensor) {
  const auto refuse_tensor = [&](const auto&... reason) {
    refuse("tensor ", tensor.name(), " ", reason...);
  };
  if (tensor.data_type() == TensorProto::UNDEFINED) refuse_tensor("has no type");
  const int fields = (tensor.float_data_size() > 0) + (tensor.int32_data_size() > 0) +
                     (tensor.string_data_size() > 0) + (tensor.int64_data_size() > 0) +
                     (!tensor.raw_data().empty()) + (tensor.double_data_size() > 0) +
                     (tensor.uint64_data_size() > 0);
  if (tensor.data_location() == TensorProto::EXTERNAL) {
    if (fields) refuse_tensor("has elements in the model and in another file");
    for (const auto& entry : tensor.external_data())
      if (entry.key() == "location") return;
    refuse_tensor("has its elements in another file, but names none");
  }
  bool is_empty = false;
  for (const std::int64_t size : tensor.dims()) is_empty = is_empty || size == 0;
  if (fields != (is_empty ? 0 : 1))
    refuse_tensor("has elements in ", fields, " fields, but must have them in ", is_empty ? 0 : 1);
  if (is_empty) return;
  if (!tensor.raw_data().empty()) {
    if (tensor.data_type() == TensorProto::STRING) refuse_tensor("has texts as raw data");
  } else if (!elements_in_field(tensor)) {
    refuse_tensor("has its elements in the field of another type than ",
                  static_cast<ElementType>(tensor.data_type()));
  }
}

/// Values of graphs in nodes need no types.
void check_declared(const ::onnx::ValueInfoProto& info, const std::string& graph, bool is_main) {
  using Type = ::onnx::TypeProto;
  if (info.name().empty()) refuse("graph ", graph, " has an input or output without a name");
  if (!is_main) return;
  const Type& type = info.type();
  bool is_whole = info.has_type();
  switch (type.value_case()) {
    case Type::kTensorType:
      is_whole = type.tensor_type().has_elem_type() && type.tensor_type().has_shape();
      break;
    case Type::kSequenceType:
      is_whole = type.sequence_type().has_elem_type();
      break;
    case Type::kOptionalType:
      is_whole = type.optional_type().has_elem_type();
      break;
    case Type::kMapType:
      is_whole = type.map_type().has_key_type() && type.map_type().has_value_type();
      break;
    case Type::kSparseTensorType:
      is_whole = type.sparse_tensor_type().has_elem_type() && type.sparse_tensor_type().has_shape();
      break;
    default:
      is_whole = is_whole && type.value_case() != Type::VALUE_NOT_SET;
  }
  if (!is_whole) refuse("value ", info.name(), " of graph ", graph, " has an incomplete type");
}

// ---- Nodes ------------------------------------------------------------------------------------

/// Throws OnnxError unless a list of names has the number and the presence that a form has.
template <class List>
void check_values(const List& names, const ValueForms& form, const char* kind,
                  const NodeProto& node) {
  const auto count = static_cast<std::size_t>(names.size());
  const std::size_t most = form.is_required.size();
  if (count < form.fewest || (!form.any_number && count > most))
    refuse(title_of(node), " has ", count, " ", kind, ", but the op takes ", form.fewest,
           form.any_number      ? " or more"
           : most > form.fewest ? str(" to ", most)
                                : "");
  for (std::size_t i = 0; i < count && i < most; ++i)
    if (form.is_required[i] && names[static_cast<int>(i)].empty())
      refuse(title_of(node), " leaves out one of its ", kind, ", number ", i,
             ", which is not optional");
}

/// The letter of an attribute's type, as in forms.
char letter_of(AttributeProto::AttributeType type) {
  switch (type) {
    case AttributeProto::FLOAT:
      return 'f';
    case AttributeProto::INT:
      return 'i';
    case AttributeProto::STRING:
      return 's';
    case AttributeProto::TENSOR:
      return 't';
    case AttributeProto::GRAPH:
      return 'g';
    case AttributeProto::SPARSE_TENSOR:
      return 'p';
    case AttributeProto::TYPE_PROTO:
      return 'y';
    case AttributeProto::FLOATS:
      return 'F';
    case AttributeProto::INTS:
      return 'I';
    case AttributeProto::STRINGS:
      return 'S';
    case AttributeProto::TENSORS:
      return 'T';
    case AttributeProto::GRAPHS:
      return 'G';
    case AttributeProto::SPARSE_TENSORS:
      return 'P';
    case AttributeProto::TYPE_PROTOS:
      return 'Y';
    default:
      return '?';
  }
}

/// The letters of the fields of an attribute that have a value.
std::string filled_fields(const AttributeProto& attribute) {
  std::string filled;
  const auto add = [&](bool is_filled, char letter) {
    if (is_filled) filled += letter;
  };
  add(attribute.has_f(), 'f');
  add(attribute.has_i(), 'i');
  add(attribute.has_s(), 's');
  add(attribute.has_t(), 't');
  add(attribute.has_g(), 'g');
  add(attribute.has_tp(), 'y');
  add(attribute.has_sparse_tensor(), 'p');
  add(attribute.floats_size() > 0, 'F');
  add(attribute.ints_size() > 0, 'I');
  add(attribute.strings_size() > 0, 'S');
  add(attribute.tensors_size() > 0, 'T');
  add(attribute.graphs_size() > 0, 'G');
  add(attribute.sparse_tensors_size() > 0, 'P');
  add(attribute.type_protos_size() > 0, 'Y');
  return filled;
}

/// Checks one model.
class Checker {
 public:
  explicit Checker(const ModelProto& model) : model_(model), op_sets_(op_sets_of_model()) {}

  void check() {
    if (model_.ir_version() <= 0) refuse("the model states no IR version");
    std::set<std::string> keys;
    for (const auto& entry : model_.metadata_props())
      if (!keys.insert(entry.key()).second)
        refuse("the model has the metadata ", entry.key(), " twice");
    for (const FunctionProto& function : model_.functions())
      if (!functions_.insert(key_of(function)).second)
        refuse("the model has the function ", function.name(), " twice");
    check_graph(model_.graph(), op_sets_, nullptr);
    for (const FunctionProto& function : model_.functions()) check_function(function);
  }

 private:
  template <class Imports>
  static OpSets op_sets_of(const Imports& imports) {
    OpSets op_sets;
    for (const auto& import : imports) {
      const std::string domain = domain_of(import.domain());
      if (domain.empty() && import.version() > kLatestVersion)
        refuse("op set ", import.version(), " is newer than ", kLatestVersion,
               "; export with opset_version=", kLatestVersion);
      op_sets[domain] = import.version();
    }
    return op_sets;
  }
  OpSets op_sets_of_model() const {
    if (model_.ir_version() >= kFirstWithOpSets && !model_.opset_import_size())
      refuse("the model names no op set, as models from IR version 3 on must");
    if (model_.ir_version() < kFirstWithOpSets && model_.opset_import_size())
      refuse("the model names an op set, as models before IR version 3 must not");
    OpSets op_sets = op_sets_of(model_.opset_import());
    if (op_sets.empty()) op_sets[""] = 1;
    return op_sets;
  }
  static FunctionKey key_of(const FunctionProto& function) {
    return {domain_of(function.domain()), function.name(), overload_of(function)};
  }

  void check_graph(const GraphProto& graph, const OpSets& op_sets, const Names* outer) {
    if (graph.name().empty()) refuse("a graph has no name");
    for (const auto& input : graph.input()) check_declared(input, graph.name(), !outer);
    for (const auto& output : graph.output()) check_declared(output, graph.name(), !outer);
    Names names(outer);
    for (const auto& input : graph.input()) {
      if (names.has_here(input.name()))
        refuse("graph ", graph.name(), " has the input ", input.name(), " twice");
      names.add(input.name());
    }
    std::set<std::string> initializers;
    const auto add_initializer = [&](const TensorProto& tensor) {
      check_tensor(tensor);
      if (tensor.name().empty())
        refuse("graph ", graph.name(), " has an initializer without a name");
      if (!initializers.insert(tensor.name()).second)
        refuse("graph ", graph.name(), " has the initializer ", tensor.name(), " twice");
      if (model_.ir_version() < kFirstWithConstants && !names.has_here(tensor.name()))
        refuse("initializer ", tensor.name(), " is no input, as before IR version 4 it must be");
    };
    for (const TensorProto& tensor : graph.initializer()) add_initializer(tensor);
    for (const auto& sparse : graph.sparse_initializer()) add_initializer(sparse.values());
    for (const std::string& name : initializers) names.add(name);
    for (const NodeProto& node : graph.node()) check_node(node, op_sets, names, false);
    for (const auto& output : graph.output())
      if (!names.has(output.name()))
        refuse("output ", output.name(), " of graph ", graph.name(), " is computed by no node");
  }

  void check_node(const NodeProto& node, const OpSets& op_sets, Names& names, bool is_in_function) {
    if (node.op_type().empty()) refuse(title_of(node), " names no op");
    if (!node.input_size() && !node.output_size())
      refuse(title_of(node), " has no inputs and no outputs");
    for (const std::string& input : node.input())
      if (!input.empty() && !names.has(input))
        refuse(title_of(node), " reads ", input, ", which no node before it computes");
    const std::string domain = domain_of(node.domain());
    const auto op_set = op_sets.find(domain);
    if (op_set == op_sets.end())
      refuse(title_of(node), " has an op of the domain \"", domain,
             "\", of which the model names no op set");
    check_attributes(node, op_sets, names, is_in_function);
    const bool is_call = functions_.count({domain, node.op_type(), overload_of(node)}) > 0;
    const OpForm* form = find_form(domain, node.op_type(), op_set->second);
    if (form && !is_call) check_form(node, *form, op_set->second);
    // Elsewhere check_support() lists such ops; it does not see functions that nothing calls.
    if (!form && !is_call && is_in_function && (domain.empty() || domain == kTraining))
      refuse(title_of(node), " has an op that op set ", op_set->second, " lacks");
    for (const std::string& output : node.output()) {
      if (output.empty()) continue;
      if (names.has(output))
        refuse(title_of(node), " computes ", output, ", a name that is there already");
      names.add(output);
    }
  }

  void check_attributes(const NodeProto& node, const OpSets& op_sets, const Names& names,
                        bool is_in_function) {
    std::set<std::string> seen;
    for (const AttributeProto& attribute : node.attribute()) {
      const auto refuse_attribute = [&](const auto&... reason) {
        refuse("attribute ", attribute.name(), " of ", title_of(node), " ", reason...);
      };
      if (attribute.name().empty()) refuse(title_of(node), " has an attribute without a name");
      if (!seen.insert(attribute.name()).second) refuse_attribute("is there twice");
      const std::string filled = filled_fields(attribute);
      if (filled.size() > 1) refuse_attribute("has several values");
      if (attribute.has_type() ? !filled.empty() && filled[0] != letter_of(attribute.type())
                               : model_.ir_version() >= kFirstWithTypes)
        refuse_attribute("has a value of another type than it states");
      if (is_in_function && attribute.has_ref_attr_name() && !filled.empty())
        refuse_attribute("has a value, and the name of the function's attribute");
      if (attribute.has_t()) check_tensor(attribute.t());
      for (const TensorProto& tensor : attribute.tensors()) check_tensor(tensor);
      if (attribute.has_g()) check_graph(attribute.g(), op_sets, &names);
      for (const GraphProto& graph : attribute.graphs()) check_graph(graph, op_sets, &names);
    }
  }

  void check_form(const NodeProto& node, const OpForm& form, std::int64_t version) const {
    if (form.is_removed) refuse(title_of(node), " has an op that op set ", form.since, " removed");
    check_values(node.input(), form.inputs, "inputs", node);
    check_values(node.output(), form.outputs, "outputs", node);
    std::set<std::string> given;
    for (const AttributeProto& attribute : node.attribute()) {
      given.insert(attribute.name());
      const auto found = form.attributes.find(attribute.name());
      if (found == form.attributes.end()) {
        if (attribute.name().starts_with("__")) continue;  // of some implementation
        refuse(title_of(node), " has the attribute ", attribute.name(),
               ", which the op lacks in version ", version);
      }
      const char type = found->second.type;
      if (letter_of(attribute.type()) != type)
        refuse("attribute ", attribute.name(), " of ", title_of(node), " has a wrong type");
      const bool is_named = !attribute.ref_attr_name().empty();
      const bool is_simple = type == 'f' || type == 'i' || type == 's';
      const bool is_list = type >= 'A' && type <= 'Z';
      const bool may_be_empty = is_simple || (is_list && version > kLastWithFullLists);
      if (!is_named && !may_be_empty && filled_fields(attribute).empty())
        refuse("attribute ", attribute.name(), " of ", title_of(node), " has no value");
    }
    for (const auto& [name, attribute] : form.attributes)
      if (attribute.is_required && !given.count(name))
        refuse(title_of(node), " lacks the attribute ", name);
  }

  void check_function(const FunctionProto& function) {
    if (function.name().empty()) refuse("a function has no name");
    if (model_.ir_version() >= kFirstWithFunctions && !function.has_domain())
      refuse("function ", function.name(), " has no domain");
    const OpSets op_sets = op_sets_of(function.opset_import());
    Names names;
    for (const std::string& input : function.input()) {
      if (names.has_here(input))
        refuse("function ", function.name(), " has the input ", input, " twice");
      names.add(input);
    }
    const auto check_once = [&](const auto& list, const char* kind) {
      std::set<std::string> seen;
      for (const std::string& name : list)
        if (!seen.insert(name).second)
          refuse("function ", function.name(), " has the ", kind, " ", name, " twice");
    };
    check_once(function.output(), "output");
    check_once(function.attribute(), "attribute");
    for (const NodeProto& node : function.node()) {
      check_same_version(node, op_sets);
      check_node(node, op_sets, names, true);
    }
    for (const std::string& output : function.output())
      if (!names.has(output))
        refuse("output ", output, " of function ", function.name(), " is computed by no node");
  }

  /// Throws OnnxError if an op has another form in the function's op set than in the model's.
  void check_same_version(const NodeProto& node, const OpSets& of_function) const {
    const std::string domain = domain_of(node.domain());
    const auto here = of_function.find(domain), there = op_sets_.find(domain);
    if (here == of_function.end() || there == op_sets_.end()) return;
    const OpForm* form = find_form(domain, node.op_type(), here->second);
    const OpForm* other = find_form(domain, node.op_type(), there->second);
    const auto since = [](const OpForm* of) { return of ? of->since : 0; };
    if (since(form) != since(other))
      refuse(title_of(node), " is in a function of op set ", here->second,
             ", in which the op has another version than in the model's op set ", there->second);
  }

  const ModelProto& model_;
  OpSets op_sets_;
  std::set<FunctionKey> functions_;
};

}  // namespace

void check_model(const ModelProto& model) { Checker(model).check(); }

}  // namespace reel::imported
