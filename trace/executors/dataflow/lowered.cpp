#include "reel/trace/executors/dataflow/lowered.h"

#include <array>
#include <ostream>

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

std::ostream& operator<<(std::ostream& out, const LoweredGraph& graph) {
  const auto put_port = [&](const LoweredPort& port) {
    const LoweredNode& from = graph.nodes[static_cast<std::size_t>(port.node)];
    out << from.name;
    if (from.outputs.size() > 1) out << str(':', port.port);
  };
  for (std::size_t f = 0; f < graph.frames.size(); ++f) {
    const LoweredFrame& frame = graph.frames[f];
    const auto stands_here = [&](const LoweredNode& node) {
      return (node.kind == LoweredKind::enter ? node.enters : node.frame) == static_cast<int>(f);
    };
    bool is_empty = true;
    for (const LoweredNode& node : graph.nodes) {
      if (!stands_here(node)) continue;
      if (is_empty && f)
        out << "frame " << frame.name << ", " << str(frame.parallel_iterations)
            << (frame.parallel_iterations == 1 ? " iteration" : " iterations") << " at once:\n";
      is_empty = false;
      out << "  " << node.name << " = ";
      if (node.kind != LoweredKind::op)
        out << (node.is_constant ? "constant " : "") << name_of(node.kind);
      else if (node.op)
        out << node.op->name;
      else
        out << name_of(node.role);
      out << '(';
      const char* before = "";
      for (const LoweredPort& input : node.inputs) {
        out << before;
        put_port(input);
        before = ", ";
      }
      for (const int control : node.controls) {
        out << before << '^' << graph.nodes[static_cast<std::size_t>(control)].name;
        before = ", ";
      }
      out << ')';
      before = " : ";
      for (const LoweredOutput& output : node.outputs) {
        out << before;
        if (output.type)
          out << *output.type;
        else
          out << "handle";
        before = ", ";
      }
      out << '\n';
    }
  }
  out << "  return ";
  const char* before = "";
  for (const LoweredPort& output : graph.outputs) {
    out << before;
    put_port(output);
    before = ", ";
  }
  return out << '\n';
}

}  // namespace reel
