#include "reel/onnx/describe.h"

#include "reel/core/base/str.h"
#include "reel/onnx/program.h"

namespace reel {
namespace {

using imported::Declared;

OnnxDescription::Value described(const Declared& declared) {
  OnnxDescription::Value value{declared.name, {}};
  if (declared.type == imported::ElementType::undefined) return value;
  value.type = str(declared.is_optional ? "optional " : "",
                   declared.is_sequence ? "sequence of " : "", declared.type);
  if (!declared.shape) return value;
  std::vector<std::string> sizes;
  for (const auto& [size, name] : *declared.shape)
    sizes.push_back(size >= 0 ? str(size) : name.empty() ? "?" : name);
  value.type += str('[', join(sizes, ","), ']');
  return value;
}

}  // namespace

std::int64_t OnnxDescription::parameter_count() const {
  std::int64_t count = 0;
  for (const auto& [name, type] : parameters) count += type.numel();
  return count;
}

OnnxDescription describe(const OnnxModel& model) {
  if (!model.program()) throw ArgumentError("describe: the model is empty; load_onnx returns one");
  const imported::Program& program = *model.program();
  OnnxDescription result;
  for (const Declared& input : program.graph.inputs)
    if (!program.graph.parameters.count(input.name) && !program.graph.constants.count(input.name))
      result.inputs.push_back(described(input));
  for (const Declared& output : program.graph.outputs) result.outputs.push_back(described(output));
  for (const auto& [name, tensor] : model.parameters)
    result.parameters.emplace(name, tensor.type());
  for_each_node(program.graph, [&](const imported::Node& node) {
    if (node.function) return;
    ++result.ops[node.domain.empty() ? node.op : str(node.domain, '.', node.op)];
  });
  for (const auto& [domain, version] : program.op_sets)
    result.op_sets[domain.empty() ? "ai.onnx" : domain] = version;
  result.ir_version = program.ir_version;
  return result;
}

}  // namespace reel
