#include "reel/onnx/model.h"

#include <algorithm>

#include "reel/core/base/str.h"
#include "reel/core/runtime/no_memory.h"
#include "reel/core/types/mode.h"
#include "reel/onnx/plain_dims.h"
#include "reel/onnx/run_graph.h"
#include "reel/onnx/run_limits.h"

namespace reel {

using imported::Declared;
using imported::ElementType;
using imported::Scope;
using imported::Value;

namespace {

void check_declared(const Declared& input, const Tensor& x) {
  const auto dtype = imported::dtype_of(input.type);
  if (dtype && *dtype != x.dtype())
    throw DTypeError(str("OnnxModel: input ", input.name, " is ", x.type(),
                         ", but the model declares ", input.type, ", which is ", *dtype,
                         " in Reel"));
  if (x.type().is_ragged())
    throw ShapeError(
        str("OnnxModel: input ", input.name, " is ", x.type(),
            ", but ONNX knows no ragged dims: give it a dim of one size, and the lengths as "
            "the input that the model has for them"));
  if (!input.shape || input.is_sequence) return;
  const auto& sizes = x.type().sizes();
  bool fits = sizes.size() == input.shape->size();
  for (std::size_t i = 0; fits && i < sizes.size(); ++i) {
    const std::int64_t size = (*input.shape)[i].size;
    fits = size < 0 || sizes[i] < 0 || size == sizes[i];
  }
  if (fits) return;
  std::vector<std::string> declared;
  for (const auto& [size, name] : *input.shape)
    declared.push_back(size >= 0 ? str(size) : name.empty() ? "?" : name);
  throw ShapeError(str("OnnxModel: input ", input.name, " is ", x.type(),
                       ", but the model declares the sizes [", join(declared, ","), "]"));
}

/// Integers and booleans that a trace can read are constants for it: no gradient flows through
/// them.
Value value_of(const Tensor& x, ElementType type) {
  Value value = Value::of(imported::with_plain_dims(x), type);
  value.is_constant = is_tracing() && !x.is_traced() && !is_float(x.dtype());
  return value;
}

Value value_of(const Declared& input, const OnnxValue& given) {
  if (!given.tensor && !given.sequence) {
    if (!input.is_optional)
      throw ArgumentError(
          str("OnnxModel: input ", input.name, " has no value, but is no optional"));
    return {};
  }
  if (input.is_sequence != given.sequence.has_value())
    throw ArgumentError(str("OnnxModel: input ", input.name, " is ",
                            input.is_sequence ? "a sequence" : "a tensor", " in the model"));
  if (given.tensor) {
    check_declared(input, *given.tensor);
    return value_of(*given.tensor, input.type);
  }
  std::vector<Value> elements;
  for (const Tensor& element : *given.sequence) {
    check_declared(input, element);
    elements.push_back(value_of(element, input.type));
  }
  return Value::sequence(std::move(elements), input.type);
}

OnnxValue result_of(const Declared& output, const Value& value) {
  switch (value.kind) {
    case Value::Kind::absent:
      return {};
    case Value::Kind::tensor:
      return {value.tensor, {}};
    case Value::Kind::sequence: {
      std::vector<Tensor> elements;
      for (const Value& element : value.elements) elements.push_back(element.tensor);
      return {{}, std::move(elements)};
    }
    default:
      throw TraceError(str("OnnxModel: output ", output.name,
                           " is a sequence whose length is known only when the graph runs"));
  }
}

}  // namespace

OnnxModel OnnxModel::of(std::shared_ptr<const imported::Program> program,
                        std::map<std::string, Tensor> parameters) {
  OnnxModel model;
  model.program_ = std::move(program);
  model.parameters = std::move(parameters);
  return model;
}

std::map<std::string, OnnxValue> OnnxModel::run(
    const std::map<std::string, OnnxValue>& inputs) const {
  return as_memory_error("OnnxModel", [&] {
    if (!program_) throw ArgumentError("OnnxModel: the model is empty; load_onnx returns one");
    const imported::Graph& graph = program_->graph;
    const imported::RunLimits limits(program_->limits);
    imported::Parameters values;
    for (const auto& [name, type] : program_->parameter_types) {
      const auto found = parameters.find(name);
      if (found == parameters.end())
        throw ArgumentError(str("OnnxModel: parameter ", name, " is missing"));
      values[name] = Value::of(found->second, type);
    }
    Scope scope(graph, nullptr, values);
    for (const auto& [name, value] : inputs)
      if (std::none_of(graph.inputs.begin(), graph.inputs.end(),
                       [&](const Declared& input) { return input.name == name; }))
        throw ArgumentError(
            str("OnnxModel: there is no input ", name, "; the inputs are ", join(input_names())));
    for (const Declared& input : graph.inputs) {
      const auto found = inputs.find(input.name);
      if (found != inputs.end()) {
        scope.set(input.name, value_of(input, found->second));
      } else if (!scope.find(input.name)) {
        throw ArgumentError(str("OnnxModel: input ", input.name, " is missing; the inputs are ",
                                join(input_names())));
      }
    }
    const imported::Values outputs = run_nodes(scope);
    std::map<std::string, OnnxValue> results;
    for (std::size_t i = 0; i < outputs.size(); ++i)
      results[graph.outputs[i].name] = result_of(graph.outputs[i], outputs[i]);
    return results;
  });
}

std::map<std::string, Tensor> OnnxModel::operator()(
    const std::map<std::string, Tensor>& inputs) const {
  std::map<std::string, OnnxValue> values;
  for (const auto& [name, tensor] : inputs) values[name].tensor = tensor;
  std::map<std::string, Tensor> results;
  for (auto& [name, value] : run(values)) {
    if (!value.tensor)
      throw ArgumentError(str("OnnxModel: output ", name, " is no tensor; use OnnxModel::run"));
    results[name] = std::move(*value.tensor);
  }
  return results;
}

std::vector<std::string> OnnxModel::input_names() const {
  std::vector<std::string> names;
  if (!program_) return names;
  for (const Declared& input : program_->graph.inputs)
    if (!program_->graph.parameters.count(input.name) &&
        !program_->graph.constants.count(input.name))
      names.push_back(input.name);
  return names;
}
std::vector<std::string> OnnxModel::output_names() const {
  std::vector<std::string> names;
  if (!program_) return names;
  for (const Declared& output : program_->graph.outputs) names.push_back(output.name);
  return names;
}

}  // namespace reel
