#include "reel/onnx/run_graph.h"

#include <algorithm>
#include <stdexcept>

#include "reel/core/base/errors.h"
#include "reel/core/base/str.h"
#include "reel/core/runtime/allocation_limit.h"
#include "reel/core/types/mode.h"
#include "reel/onnx/onnx_error.h"
#include "reel/onnx/registry.h"
#include "reel/onnx/run_limits.h"

namespace reel::imported {
namespace {

bool is_constant(const Value& value) {
  if (value.kind == Value::Kind::sequence)
    return std::all_of(value.elements.begin(), value.elements.end(), is_constant);
  return value.kind == Value::Kind::absent || value.is_constant;
}

void mark_constant(Value& value) {
  value.is_constant = true;
  for (Value& element : value.elements) mark_constant(element);
}

/// Applies the rule. If all inputs are constants, the rule runs aside of traces and tapes: the
/// results are constants, too.
Values apply_rule(const Call& call) {
  const Rule& rule = *call.node().rule;
  const Values& in = call.inputs();
  if (!rule.is_pure || !std::all_of(in.begin(), in.end(), is_constant)) return rule.run(call);
  const ModeScope aside({});
  Values out = rule.run(call);
  for (Value& value : out) mark_constant(value);
  return out;
}

/// Runs a graph inside a node in a scope of its own.
Values run_scope(Scope scope, const Values& inputs) {
  const Graph& graph = scope.graph();
  if (inputs.size() < graph.inputs.size())
    throw ArgumentError(str("graph ", graph.name, " takes ", graph.inputs.size(),
                            " inputs, but got ", inputs.size()));
  for (std::size_t i = 0; i < graph.inputs.size(); ++i) scope.set(graph.inputs[i].name, inputs[i]);
  return run_nodes(scope);
}

Values call_node(const Node& node, const Scope& scope) {
  Values inputs;
  for (const std::string& name : node.inputs)
    inputs.push_back(name.empty() ? Value() : scope.get(name));
  if (node.function) {
    inputs.resize(node.function->inputs.size());
    return run_function(*node.function, inputs, scope.parameters());
  }
  return apply_rule(Call(node, std::move(inputs), scope));
}

/// Calls a node within the limits of the call of the model.
Values call_within(RunLimits& limits, const Node& node, Scope& scope) try {
  const std::uint64_t begin = next_block_id();
  Values outputs;
  {
    const AllocationLimit limit(limits.bytes_left());
    outputs = call_node(node, scope);
  }
  for (const Value& output : outputs) check_sizes(node, output);
  const std::int64_t bytes = bytes_made_since(begin, outputs);
  if (bytes > limits.bytes_left()) refuse_bytes(node);
  scope.hold(bytes);
  return outputs;
} catch (const AllocationLimitError&) {
  refuse_bytes(node);
}

}  // namespace

Scope::~Scope() {
  if (held_) hold(-held_);
}

void Scope::hold(std::int64_t bytes) {
  RunLimits* const limits = RunLimits::of_this_thread();
  if (!limits) return;
  limits->hold(bytes);
  held_ += bytes;
}

const Value* Scope::find(const std::string& name) const {
  for (const Scope* scope = this; scope; scope = scope->outer_) {
    const auto found = scope->values_.find(name);
    if (found != scope->values_.end()) return &found->second;
    const auto constant = scope->graph_.constants.find(name);
    if (constant != scope->graph_.constants.end()) return &constant->second;
    const auto parameter = scope->graph_.parameters.find(name);
    if (parameter != scope->graph_.parameters.end()) return &parameters_.at(parameter->second);
  }
  return nullptr;
}

const Value& Scope::get(const std::string& name) const {
  const Value* value = find(name);
  if (!value) throw ArgumentError(str("the model has no value ", name));
  return *value;
}

void run_node(const Node& node, Scope& scope) try {
  RunLimits* const limits = RunLimits::of_this_thread();
  Values outputs = limits ? call_within(*limits, node, scope) : call_node(node, scope);
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i].empty()) continue;
    if (i >= outputs.size())
      throw ArgumentError(str(node.op, ": has no output ", i, " (", node.outputs[i], ")"));
    scope.set(node.outputs[i], std::move(outputs[i]));
  }
} catch (Error& error) {
  error.add_line(str("in node ", node.name, " (", node.op, ")"));
  throw;
} catch (const std::out_of_range&) {  // of at(): the checker does not count elements
  throw ArgumentError(str(node.op, ": a list or tensor has too few elements\nin node ", node.name,
                          " (", node.op, ")"));
}

Values run_nodes(Scope& scope) {
  for (const Node& node : scope.graph().nodes) run_node(node, scope);
  Values outputs;
  for (const Declared& output : scope.graph().outputs) outputs.push_back(scope.get(output.name));
  return outputs;
}

Values run_graph(const Graph& graph, const Values& inputs, const Scope* outer) {
  return run_scope(Scope(graph, outer, outer->parameters()), inputs);
}

Values run_function(const Graph& graph, const Values& inputs, const Parameters& parameters) {
  return run_scope(Scope(graph, nullptr, parameters), inputs);
}

}  // namespace reel::imported
