#include "reel/onnx/find_parameters.h"

#include <algorithm>
#include <deque>
#include <set>
#include <vector>

#include "reel/core/base/str.h"
#include "reel/core/functions/creation.h"
#include "reel/onnx/onnx_error.h"
#include "reel/onnx/registry.h"

namespace reel::imported {
namespace {

/// A value: the graph that defines it, and its name there.
using Place = std::pair<const Graph*, std::string>;
/// The graphs that enclose a graph, the outermost first, and the graph itself at the end. Its nodes
/// read values of all of them.
using Around = std::vector<const Graph*>;

/// Finds the constants that only give sizes, positions and scales.
///
/// A value is known if it follows from constants and sizes alone. A rule names the inputs that it
/// reads as numbers; a known value there is a number, and so are the values it follows from. Values
/// that follow from an input of the model are not known, so the weights of a network that predicts
/// lengths are no numbers.
class NumberSearch {
 public:
  explicit NumberSearch(const Graph& graph) {
    define(graph);
    std::size_t before = 0;
    do {  // again: a carry that is a number makes further values numbers
      before = numbers_.size();
      visit(graph, {&graph});
    } while (numbers_.size() > before);
  }

  bool contains(const Graph& graph, const std::string& name) const {
    return numbers_.count({&graph, name}) > 0;
  }

 private:
  void define(const Graph& graph) {
    std::set<std::string>& names = defined_[&graph];
    for (const auto& [name, value] : graph.constants) {
      names.insert(name);
      known_.insert({&graph, name});
    }
    for (const Declared& input : graph.inputs) names.insert(input.name);
    for (const Node& node : graph.nodes) {
      names.insert(node.outputs.begin(), node.outputs.end());
      if (node.function) define(*node.function);
      for (const auto& [name, attribute] : node.attributes)
        if (attribute.graph) define(*attribute.graph);
    }
  }

  Place place_of(const Around& around, const std::string& name) const {
    for (std::size_t i = around.size(); i-- > 0;)
      if (defined_.at(around[i]).count(name)) return {around[i], name};
    return {nullptr, name};
  }
  bool is_known(const Around& around, const std::string& name) const {
    return name.empty() || known_.count(place_of(around, name)) > 0;
  }
  void mark(const Around& around, const std::string& name) {
    if (!name.empty() && is_known(around, name)) numbers_.insert(place_of(around, name));
  }
  bool is_number(const Around& around, const std::string& name) const {
    return numbers_.count(place_of(around, name)) > 0;
  }

  void visit(const Graph& graph, const Around& around) {
    for (const Node& node : graph.nodes) find_known(node, around);
    for (auto node = graph.nodes.rbegin(); node != graph.nodes.rend(); ++node)
      find_numbers(*node, around);
  }

  void find_known(const Node& node, const Around& around) {
    if (node.function) {
      const Graph& function = *node.function;
      for (std::size_t i = 0; i < std::min(node.inputs.size(), function.inputs.size()); ++i)
        if (is_known(around, node.inputs[i])) known_.insert({&function, function.inputs[i].name});
      for (const Node& inner : function.nodes) find_known(inner, {&function});
      for (std::size_t i = 0; i < std::min(node.outputs.size(), function.outputs.size()); ++i)
        if (is_known({&function}, function.outputs[i].name))
          known_.insert({around.back(), node.outputs[i]});
      return;
    }
    const bool is_of_sizes = node.domain.empty() && (node.op == "Shape" || node.op == "Size");
    const bool is_pure = node.rule && node.rule->is_pure;
    const auto knows = [&](const std::string& name) { return is_known(around, name); };
    if (is_of_sizes || (is_pure && std::all_of(node.inputs.begin(), node.inputs.end(), knows)))
      for (const std::string& output : node.outputs) known_.insert({around.back(), output});
  }

  void find_numbers(const Node& node, const Around& around) {
    const auto is_wanted = [&](const std::string& name) { return is_number(around, name); };
    if (node.function) return find_numbers_of_graph(node, *node.function, 0, around, {});
    for (const auto& [name, attribute] : node.attributes)
      if (attribute.graph)
        find_numbers_of_graph(node, *attribute.graph, node.op == "Loop" ? 1 : 0, around, around);
    if (node.rule)
      for (std::size_t i = 0; i < std::min<std::size_t>(node.inputs.size(), 32); ++i)
        if (node.rule->numbers >> i & 1) mark(around, node.inputs[i]);
    const bool is_of_sizes = node.domain.empty() && (node.op == "Shape" || node.op == "Size");
    if (!is_of_sizes && std::any_of(node.outputs.begin(), node.outputs.end(), is_wanted))
      for (const std::string& input : node.inputs) mark(around, input);
  }

  /// first: the graph's output number `first` is the node's output 0. outer: the graphs around the
  /// graph: it reads their values.
  void find_numbers_of_graph(const Node& node, const Graph& graph, std::size_t first,
                             const Around& around, Around outer) {
    outer.push_back(&graph);
    for (std::size_t i = 0; i < node.outputs.size() && i + first < graph.outputs.size(); ++i)
      if (is_number(around, node.outputs[i])) mark(outer, graph.outputs[i + first].name);
    visit(graph, outer);
    for (std::size_t i = 0; i < std::min(node.inputs.size(), graph.inputs.size()); ++i)
      if (numbers_.count({&graph, graph.inputs[i].name})) mark(around, node.inputs[i]);
  }

  std::map<const Graph*, std::set<std::string>> defined_;
  std::set<Place> known_, numbers_;
};

/// Returns the value of a Constant node that may be a parameter, or nothing.
Value value_of_constant(const Node& node) {
  if (node.op != "Constant" || !node.domain.empty() || node.is_marked) return {};
  const auto value = node.attributes.find("value");
  if (value != node.attributes.end() && value->second.kind == Attribute::Kind::tensor)
    return value->second.tensor;
  const auto floats = node.attributes.find("value_floats");
  if (floats != node.attributes.end() && floats->second.kind == Attribute::Kind::numbers)
    return Value::of(tensor(floats->second.numbers, f32));
  return {};
}

/// Moves the parameters out of a graph and out of its inner graphs.
class ParameterTaker {
  static constexpr std::size_t kMaxNames = std::size_t{1} << 26;

  /// A node, and its attribute unless it is a call, with a graph inside.
  struct Step {
    const Step* around;
    const Node& node;
    const std::string* attribute;
  };
  struct Found {
    Place place;
    const Step* path;
    Value value;
  };

  static std::string text_of(const Step* path) {
    if (!path) return {};
    const std::string text = str(text_of(path->around), path->node.label(), '/');
    return path->attribute ? str(text, *path->attribute, '/') : text;
  }

 public:
  explicit ParameterTaker(const NumberSearch& numbers) : numbers_(numbers) {}

  /// Finds the parameters, in the order of the graphs. path: the innermost node around.
  void find(const Graph& graph, const Step* path = nullptr) {
    const auto add = [&](const std::string& name, const Value& value) {
      found_.push_back({{&graph, name}, path, value});
      ++uses_[name];
    };
    for (const auto& [name, value] : graph.constants)
      if (is_parameter(value, graph.marked.count(name) > 0, graph, name)) add(name, value);
    for (const Node& node : graph.nodes) {
      const Value value = value_of_constant(node);
      if (value.is_present() && is_parameter(value, false, graph, node.outputs.at(0)))
        add(node.outputs[0], value);
      if (node.function) find(*node.function, &steps_.emplace_back(Step{path, node, nullptr}));
      for (const auto& [name, attribute] : node.attributes)
        if (attribute.graph) find(*attribute.graph, &steps_.emplace_back(Step{path, node, &name}));
    }
  }

  /// Gives each parameter its name.
  void name(Program& program, std::map<std::string, Tensor>& parameters) {
    for (const Found& found : found_) {
      const std::string& own = found.place.second;
      const std::string wanted = uses_.at(own) > 1 ? text_of(found.path) + own : own;
      std::string name = wanted;
      for (int& i = last_number_[wanted]; parameters.count(name);) name = str(wanted, '~', ++i + 1);
      length_of_names_ += name.size();
      if (length_of_names_ > kMaxNames)
        throw OnnxError(str("the names of the parameters have more than ", kMaxNames, " bytes"));
      names_[found.place] = name;
      program.parameter_types[name] = found.value.type;
      parameters[name] = found.value.tensor;
    }
  }

  /// Returns the graph without the constants that are parameters.
  Graph taken_out_of(const Graph& graph) const {
    Graph result = graph;
    result.marked.clear();
    result.nodes.clear();
    for (auto it = names_.lower_bound({&graph, ""});
         it != names_.end() && it->first.first == &graph; ++it) {
      result.parameters[it->first.second] = it->second;
      result.constants.erase(it->first.second);
    }
    for (const Node& node : graph.nodes) {
      if (!node.outputs.empty() && node.op == "Constant" &&
          result.parameters.count(node.outputs[0]))
        continue;
      Node& copy = result.nodes.emplace_back(node);
      if (copy.function) copy.function = inner(*copy.function);
      for (auto& [name, attribute] : copy.attributes)
        if (attribute.graph) attribute.graph = inner(*attribute.graph);
    }
    return result;
  }

 private:
  std::shared_ptr<const Graph> inner(const Graph& graph) const {
    return std::make_shared<const Graph>(taken_out_of(graph));
  }

  bool is_parameter(const Value& value, bool is_marked, const Graph& graph,
                    const std::string& name) const {
    if (value.kind != Value::Kind::tensor || !is_float(value.type) || is_tiny_float(value.type))
      return false;
    return is_marked || (value.tensor.numel() > 1 && !numbers_.contains(graph, name));
  }

  const NumberSearch& numbers_;
  std::vector<Found> found_;
  std::deque<Step> steps_;                  // addresses stay
  std::map<std::string, int> uses_;         // by the name of the value
  std::map<std::string, int> last_number_;  // by the name that several parameters share
  std::size_t length_of_names_ = 0;
  std::map<Place, std::string> names_;
};

}  // namespace

std::map<std::string, Tensor> take_parameters(Program& program) {
  const NumberSearch numbers(program.graph);
  ParameterTaker taker(numbers);
  taker.find(program.graph);
  std::map<std::string, Tensor> parameters;
  taker.name(program, parameters);
  program.graph = taker.taken_out_of(program.graph);
  return parameters;
}

}  // namespace reel::imported
