#include "reel/frontend/pictures/lowered_picture.h"

#include <algorithm>

#include "reel/core/base/source_lines.h"
#include "reel/core/base/str.h"
#include "reel/core/ops/control/cond.h"
#include "reel/core/ops/loop/loop.h"

namespace reel {
namespace {

using Kind = PictureNode::Kind;
using Role = PictureNode::Role;

/// Returns "Merge_1" for "while/Merge_1".
std::string last_part(const std::string& name) { return name.substr(name.rfind('/') + 1); }

std::vector<std::string> types_of(const LoweredNode& node) {
  std::vector<std::string> types;
  for (const LoweredOutput& output : node.outputs)
    types.push_back(output.type ? str(*output.type) : "handle");
  if (node.kind == LoweredKind::switch_)
    for (std::size_t port = 0; port < types.size(); ++port)
      types[port] = str(port ? "true: " : "false: ", types[port]);
  return types;
}

/// Returns a description of a node that computes no op of the program, shown after a click on it.
const char* words_of(LoweredRole role) {
  switch (role) {
    case LoweredRole::record:
    case LoweredRole::input:
      return "";
    case LoweredRole::identity:
      return "copies its input at the begin or end of a body, condition or branch";
    case LoweredRole::begin:
      return "once for the loop: its bound, lengths and slices as a handle, the counter's 0, "
             "nothing";
    case LoweredRole::types:
      return "once for the loop: the types of its inputs, as a handle";
    case LoweredRole::bindings:
      return "once for the cond: the sizes that dims have in its branches, as a handle";
    case LoweredRole::open:
      return "passes sizes of dims to a body, condition or branch";
    case LoweredRole::in_bound:
      return "whether iteration k may run: k is less than the bound of the loop";
    case LoweredRole::every_entry:
      return "a mask with all entries running";
    case LoweredRole::no_steps:
      return "zero iterations for each entry, before the first";
    case LoweredRole::running:
      return "which entries run in iteration k";
    case LoweredRole::any_running:
      return "whether iteration k runs: true if any entry runs";
    case LoweredRole::both:
      return "the conjunction of two masks";
    case LoweredRole::finished:
      return "values that finished entries read in this iteration, as a handle";
    case LoweredRole::seen:
      return "an input of the body; finished entries read the value of a running one";
    case LoweredRole::next:
      return "a carry after the iteration; finished entries keep their value";
    case LoweredRole::term:
      return "an output of the body for a stack or sum; zeros for finished entries";
    case LoweredRole::count_running:
      return "the number of iterations of each entry, including this one";
    case LoweredRole::position:
      return "the index that the body reads; a reverse loop counts down";
    case LoweredRole::slice:
      return "slice k of a sequence";
    case LoweredRole::put:
      return "a stack with element k added";
    case LoweredRole::add_term:
      return "a sum with one more term";
    case LoweredRole::increment:
      return "k + 1";
    case LoweredRole::made_dim:
      return "the dim that the loop makes, with the trip count as size";
    case LoweredRole::stack:
      return "a stack as a result of the loop";
    case LoweredRole::sum:
      return "a sum as a result of the loop";
    case LoweredRole::trips:
      return "the trip count";
  }
  return "";
}
/// Returns a description of a node that passes tokens.
const char* words_of(LoweredKind kind) {
  switch (kind) {
    case LoweredKind::op:
      return "";
    case LoweredKind::enter:
      return "passes a value into the loop";
    case LoweredKind::merge:
      return "forwards the first value that arrives";
    case LoweredKind::switch_:
      return "forwards a value to the output that a predicate selects; the other one is dead";
    case LoweredKind::loop_cond:
      return "whether one more iteration runs";
    case LoweredKind::next_iteration:
      return "forwards a value to the next iteration";
    case LoweredKind::exit:
      return "passes the last iteration's value out of the loop";
  }
  return "";
}

class LoweredDraughtsman {
 public:
  explicit LoweredDraughtsman(const LoweredGraph& graph)
      : graph_(graph), names_(names_of_ends(*graph.scopes.front().graph)) {}

  LoweredPicture run() {
    for (const LoweredFrame& frame : graph_.frames) draw(frame);
    for (const LoweredNode& node : graph_.nodes) draw(node);
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) connect(i);
    for (std::size_t i = 0; i < graph_.outputs.size(); ++i) {
      const LoweredPort& port = graph_.outputs[i];
      if (port.node < 0) continue;
      const auto& type = graph_.nodes[static_cast<std::size_t>(port.node)]
                             .outputs[static_cast<std::size_t>(port.port)]
                             .type;
      if (type && is_dim_token(*type)) continue;
      const int result = picture().add({Kind::output, -1, Role::result, names_.outputs[i]});
      picture().edges.push_back({at(port.node), port.port, result, 0, -1, PictureEdge::Kind::data});
    }
    return std::move(result_);
  }

 private:
  Picture& picture() { return result_.picture; }
  int at(int node) const { return result_.nodes[static_cast<std::size_t>(node)]; }
  int box_of(int frame) const { return result_.frames[static_cast<std::size_t>(frame)]; }

  void draw(const LoweredFrame& frame) {
    if (frame.parent < 0) {
      result_.frames.push_back(-1);
      return;
    }
    PictureNode box{Kind::box, box_of(frame.parent), Role::frame, frame.name};
    const int most = frame.parallel_iterations;
    box.note = str("at most ", most, most == 1 ? " iteration" : " iterations", " at once");
    box.list_name = title_of_loop(frame.title);
    box.attributes.emplace_back("frame of", frame.title);
    box.source = source_text(frame.source);
    result_.frames.push_back(picture().add(std::move(box)));
  }

  void draw(const LoweredNode& node) {
    PictureNode drawn{Kind::op, box_of(node.frame), Role::plain, last_part(node.name)};
    drawn.types = types_of(node);
    drawn.attributes.emplace_back("name", node.name);
    if (node.record >= 0)
      drawn.source = source_text(node.graph->records[static_cast<std::size_t>(node.record)].source);
    if (node.kind != LoweredKind::op) {
      drawn.role = Role::control;
      drawn.attributes.emplace_back("does", words_of(node.kind));
    }
    switch (node.kind) {
      case LoweredKind::enter:
        drawn.kind = Kind::input;
        drawn.parent = box_of(node.enters);
        if (node.is_constant) {
          drawn.role = Role::capture;
          drawn.attributes.emplace_back("constant", "the same token in every iteration");
        }
        break;
      case LoweredKind::exit:
        drawn.kind = Kind::output;
        break;
      case LoweredKind::op:
        describe(node, drawn);
        break;
      default:
        break;
    }
    result_.nodes.push_back(picture().add(std::move(drawn)));
  }

  void describe(const LoweredNode& node, PictureNode& drawn) const {
    if (node.role == LoweredRole::input) {
      drawn.kind = Kind::input;
      const auto place = static_cast<std::size_t>(node.index);
      const bool is_capture = place >= graph_.scopes.front().graph->formal_count;
      drawn.role = is_capture ? Role::capture : Role::argument;
      drawn.label = names_.inputs[place];
      return;
    }
    if (node.role != LoweredRole::record) {
      drawn.attributes.emplace_back("does", words_of(node.role));
      return;
    }
    if (node.record < 0 || node.op == &loop_op || node.op == &cond_op) return;
    reel::describe(drawn, node.graph->records[static_cast<std::size_t>(node.record)]);
  }

  void connect(std::size_t i) {
    const LoweredNode& node = graph_.nodes[i];
    const int to = at(static_cast<int>(i)), box = box_of(node.frame);
    int input = 0;
    for (const LoweredPort& from : node.inputs) {
      const LoweredNode& maker = graph_.nodes[static_cast<std::size_t>(from.node)];
      PictureEdge::Kind kind = PictureEdge::Kind::data;
      if (maker.kind == LoweredKind::next_iteration) kind = PictureEdge::Kind::back;
      if ((maker.kind == LoweredKind::enter && maker.is_constant) ||
          (node.kind == LoweredKind::enter && node.is_constant))
        kind = PictureEdge::Kind::capture;
      picture().edges.push_back({at(from.node), from.port, to, input++, box, kind});
    }
    for (const int from : node.controls)
      picture().edges.push_back({at(from), 0, to, input++, box, PictureEdge::Kind::order});
  }

  const LoweredGraph& graph_;
  const EndNames names_;
  LoweredPicture result_;
};

}  // namespace

LoweredPicture picture_of(const LoweredGraph& graph) { return LoweredDraughtsman(graph).run(); }

bool has_control_flow(const Graph& graph) {
  return std::any_of(graph.records.begin(), graph.records.end(), [](const OpRecord& record) {
    return record.op == &loop_op || record.op == &cond_op;
  });
}

}  // namespace reel
