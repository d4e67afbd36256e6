// onnx/run_graph.h — runs the nodes of a graph, in eager mode or into a trace.
#pragma once

#include <map>
#include <string>

#include "reel/onnx/program.h"

namespace reel::imported {

using Parameters = std::map<std::string, Value>;

/// The values of a graph that runs; finds values of the graphs around it, too.
class Scope {
 public:
  /// parameters: of the model, by name; they outlive the scope.
  Scope(const Graph& graph, const Scope* outer, const Parameters& parameters)
      : graph_(graph), outer_(outer), parameters_(parameters) {}
  ~Scope();
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

  const Graph& graph() const { return graph_; }
  const Parameters& parameters() const { return parameters_; }
  void set(const std::string& name, Value value) { values_[name] = std::move(value); }
  /// Counts bytes of values that a node of the graph has made. They are freed with the scope.
  void hold(std::int64_t bytes);
  /// Returns a value of this graph or of one around it, or null.
  const Value* find(const std::string& name) const;
  /// Returns the value. Throws ArgumentError if no graph has the name.
  const Value& get(const std::string& name) const;

 private:
  const Graph& graph_;
  const Scope* outer_;
  const Parameters& parameters_;
  std::map<std::string, Value> values_;
  std::int64_t held_ = 0;  ///< bytes of values that nodes have made
};

/// Runs nodes one after another, in the scope that has their inputs.
void run_node(const Node& node, Scope& scope);
/// Returns the outputs of a graph inside a node, given its inputs in order. It reads values of the
/// scope, too.
Values run_graph(const Graph& graph, const Values& inputs, const Scope* outer);
/// Returns the outputs of a function, given its inputs in order.
Values run_function(const Graph& graph, const Values& inputs, const Parameters& parameters);
/// Runs the nodes of the scope's graph and returns its outputs.
Values run_nodes(Scope& scope);

}  // namespace reel::imported
