// onnx/program.h — Program, a model as the interpreter runs it, without protobuf.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "reel/onnx/load_options.h"
#include "reel/onnx/value.h"

namespace reel::imported {

struct Graph;
struct Rule;

/// The documentation of Constant nodes and initializers that save_onnx writes: the former are
/// constants when the model is loaded again, the latter parameters, whatever their sizes.
inline constexpr const char* kSavedMark = "saved by Reel";

/// One attribute of a node.
struct Attribute {
  enum class Kind { none, integer, number, text, integers, numbers, texts, tensor, graph };

  Kind kind = Kind::none;
  std::int64_t integer = 0;
  double number = 0;
  std::string text;
  std::vector<std::int64_t> integers;
  std::vector<double> numbers;
  std::vector<std::string> texts;
  Value tensor;
  std::shared_ptr<const Graph> graph;
};

struct Node {
  std::string name;                          ///< of the node, or else of its first output
  std::string domain, op;                    ///< the domain "ai.onnx" is ""
  std::vector<std::string> inputs, outputs;  ///< "" for an optional one that is left out
  std::map<std::string, Attribute> attributes;
  std::int64_t version = 0;               ///< of the domain's op set
  const Rule* rule = nullptr;             ///< null for a call of `function`
  std::shared_ptr<const Graph> function;  ///< a function of the model, with this call's attributes
  bool is_marked = false;                 ///< a Constant that save_onnx wrote: no parameter

  /// Returns the name, or the first output of a node without one.
  const std::string& label() const { return has_name || outputs.empty() ? name : outputs[0]; }
  bool has_name = true;  ///< of its own
};

/// The declared type of an input or output.
struct Declared {
  std::string name;
  ElementType type = ElementType::undefined;
  bool is_sequence = false, is_optional = false;
  /// A size, or the name of a symbolic one; empty for a size that is not stated.
  struct Size {
    std::int64_t size = -1;
    std::string name;
  };
  std::optional<std::vector<Size>> shape;
};

struct Graph {
  std::string name;
  std::vector<Declared> inputs, outputs;
  std::map<std::string, Value> constants;         ///< initializers that are no parameters
  std::map<std::string, std::string> parameters;  ///< the parameter that a value is, by name
  std::set<std::string> marked;                   ///< initializers that save_onnx wrote
  std::vector<Node> nodes;
};

/// A model.
struct Program {
  Graph graph;
  std::map<std::string, ElementType> parameter_types;  ///< by the parameters' names
  std::map<std::string, std::int64_t> op_sets;         ///< versions by domain; ONNX's own is ""
  std::int64_t ir_version = 0;
  LoadOnnxOptions limits;
};

/// Calls fn(graph, path) for a graph and for all graphs in its nodes.
template <class Fn>
void for_each_node(const Graph& graph, Fn&& fn) {
  for (const Node& node : graph.nodes) {
    fn(node);
    if (node.function) for_each_node(*node.function, fn);
    for (const auto& [name, attribute] : node.attributes)
      if (attribute.graph) for_each_node(*attribute.graph, fn);
  }
}

}  // namespace reel::imported
