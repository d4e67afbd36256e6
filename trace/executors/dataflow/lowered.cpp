#include "reel/trace/executors/dataflow/lowered.h"

#include <array>
#include <ostream>
#include <utility>

#include "reel/core/base/errors.h"
#include "reel/core/base/str.h"

namespace reel {

const char* name_of(LoweredKind kind) {
  constexpr std::array kNames{"op",       "Enter",         "Merge", "Switch",
                              "LoopCond", "NextIteration", "Exit"};
  return kNames[static_cast<std::size_t>(kind)];
}

const char* name_of(LoweredRole role) {
  constexpr std::array kNames{
      "record",   "input",       "identity", "begin",         "types",       "bindings", "open",
      "in_bound", "every_entry", "no_steps", "running",       "any_running", "both",     "finished",
      "seen",     "next",        "term",     "count_running", "position",    "slice",    "put",
      "add_term", "increment",   "made_dim", "stack",         "sum",         "trips"};
  static_assert(kNames.size() == static_cast<std::size_t>(LoweredRole::trips) + 1);
  return kNames[static_cast<std::size_t>(role)];
}

namespace {

/// Returns the frame in which a node's outputs arrive.
int frame_of_outputs(const LoweredGraph& graph, const LoweredNode& node) {
  if (node.kind == LoweredKind::enter) return node.enters;
  if (node.kind == LoweredKind::exit)
    return graph.frames[static_cast<std::size_t>(node.frame)].parent;
  return node.frame;
}

struct Arity {
  std::size_t least_in, most_in, out;
};
Arity arity_of(const LoweredNode& node) {
  constexpr std::size_t kAny = ~std::size_t{0};
  switch (node.kind) {
    case LoweredKind::op:
      return {0, kAny, node.outputs.size()};
    case LoweredKind::merge:
      return {1, kAny, 1};
    case LoweredKind::switch_:
      return {2, 2, 2};
    default:
      return {1, 1, 1};
  }
}

}  // namespace

void verify(const LoweredGraph& graph) {
  const auto title = [&](int frame) {
    const std::string& name = graph.frames[static_cast<std::size_t>(frame)].name;
    return name.empty() ? std::string("outside of all loops") : str("in frame '", name, '\'');
  };
  std::vector<int> conds(graph.frames.size(), 0), enters(graph.frames.size(), 0);
  for (const LoweredNode& node : graph.nodes) {
    const Arity arity = arity_of(node);
    if (node.inputs.size() < arity.least_in || node.inputs.size() > arity.most_in ||
        node.outputs.size() != arity.out)
      throw ArgumentError(str(node.name, ": a ", name_of(node.kind), " with ", node.inputs.size(),
                              " inputs and ", node.outputs.size(), " outputs"));
    const auto check = [&](int from) {
      const LoweredNode& source = graph.nodes.at(static_cast<std::size_t>(from));
      if (frame_of_outputs(graph, source) != node.frame)
        throw ArgumentError(str(node.name, ": has inputs from different frames; it runs ",
                                title(node.frame), ", its input ", source.name, " is ",
                                title(frame_of_outputs(graph, source))));
    };
    for (const LoweredPort& input : node.inputs) {
      check(input.node);
      const std::size_t ports = graph.nodes[static_cast<std::size_t>(input.node)].outputs.size();
      if (static_cast<std::size_t>(input.port) >= ports)
        throw ArgumentError(str(node.name, ": reads port ", input.port, " of ",
                                graph.nodes[static_cast<std::size_t>(input.node)].name,
                                ", which has ", ports));
    }
    for (const int control : node.controls) check(control);
    if (node.kind == LoweredKind::loop_cond) ++conds[static_cast<std::size_t>(node.frame)];
    if (node.kind != LoweredKind::enter) continue;
    if (node.enters < 1 || static_cast<std::size_t>(node.enters) >= graph.frames.size() ||
        graph.frames[static_cast<std::size_t>(node.enters)].parent != node.frame)
      throw ArgumentError(str(node.name, ": enters frame ", node.enters,
                              ", which is not inside the frame of the node"));
    ++enters[static_cast<std::size_t>(node.enters)];
  }
  for (std::size_t f = 1; f < graph.frames.size(); ++f) {
    if (conds[f] > 1)
      throw ArgumentError(str("frame '", graph.frames[f].name, "' has ", conds[f],
                              " LoopCond nodes; there may be one"));
    if (graph.frames[f].parallel_iterations < 1)
      throw ArgumentError(str("frame '", graph.frames[f].name,
                              "': parallel_iterations must be at least 1, got ",
                              graph.frames[f].parallel_iterations));
  }
}

namespace {

/// Prints a graph as text, node by node.
class LoweredText {
 public:
  LoweredText(std::ostream& out, const LoweredGraph& graph) : out_(out), graph_(graph) {}

  void write() const {
    for (std::size_t f = 0; f < graph_.frames.size(); ++f) write_frame(static_cast<int>(f));
    out_ << "  return ";
    const char* before = "";
    write_ports(graph_.outputs, before);
    out_ << '\n';
  }

 private:
  void write_frame(int number) const {
    const LoweredFrame& frame = graph_.frames[static_cast<std::size_t>(number)];
    bool is_empty = true;
    for (const LoweredNode& node : graph_.nodes) {
      if ((node.kind == LoweredKind::enter ? node.enters : node.frame) != number) continue;
      if (is_empty && number)
        out_ << "frame " << frame.name << ", " << str(frame.parallel_iterations)
             << (frame.parallel_iterations == 1 ? " iteration" : " iterations") << " at once:\n";
      is_empty = false;
      write_node(node);
    }
  }
  void write_node(const LoweredNode& node) const {
    out_ << "  " << node.name << " = ";
    if (node.kind != LoweredKind::op)
      out_ << (node.is_constant ? "constant " : "") << name_of(node.kind);
    else if (node.op)
      out_ << node.op->name;
    else
      out_ << name_of(node.role);
    out_ << '(';
    const char* before = "";
    write_ports(node.inputs, before);
    for (const int control : node.controls)
      next(before) << '^' << graph_.nodes[static_cast<std::size_t>(control)].name;
    out_ << ')';
    before = " : ";
    for (const LoweredOutput& output : node.outputs)
      if (output.type)
        next(before) << *output.type;
      else
        next(before) << "handle";
    out_ << '\n';
  }
  void write_ports(const std::vector<LoweredPort>& ports, const char*& before) const {
    for (const LoweredPort& port : ports) {
      const LoweredNode& from = graph_.nodes[static_cast<std::size_t>(port.node)];
      next(before) << from.name;
      if (from.outputs.size() > 1) out_ << str(':', port.port);
    }
  }
  /// Begins an element of a list: `before` stands in front of it, and then a comma.
  std::ostream& next(const char*& before) const { return out_ << std::exchange(before, ", "); }

  std::ostream& out_;
  const LoweredGraph& graph_;
};

}  // namespace

std::ostream& operator<<(std::ostream& out, const LoweredGraph& graph) {
  LoweredText(out, graph).write();
  return out;
}

}  // namespace reel
