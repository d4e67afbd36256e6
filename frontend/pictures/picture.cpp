#include "reel/frontend/pictures/picture.h"

#include "reel/core/base/str.h"
#include "reel/core/ops/creation/creation.h"
#include "reel/core/ops/shape/dims.h"
#include "reel/frontend/pictures/graph_drawer.h"

namespace reel {
namespace {

using Kind = PictureNode::Kind;

/// Drops unconnected inputs and outputs, such as a loop's trip count, and unused inputs of a trace
/// that are not tensors (dims, the stream of random numbers).
void drop_unconnected(Picture& picture) {
  std::vector<std::uint8_t> keeps(picture.nodes.size(), 0);
  for (std::size_t i = 0; i < picture.nodes.size(); ++i)
    keeps[i] = picture.nodes[i].kind == Kind::box ||
               (picture.nodes[i].kind == Kind::op && picture.nodes[i].label != "dim_token");
  for (const PictureEdge& edge : picture.edges)
    keeps[static_cast<std::size_t>(edge.from)] = keeps[static_cast<std::size_t>(edge.to)] = 1;
  std::vector<int> place(picture.nodes.size(), -1);
  std::vector<PictureNode> nodes;
  for (std::size_t i = 0; i < picture.nodes.size(); ++i) {
    if (!keeps[i]) continue;
    place[i] = static_cast<int>(nodes.size());
    nodes.push_back(std::move(picture.nodes[i]));
  }
  const auto move = [&](int& node) {
    if (node >= 0) node = place[static_cast<std::size_t>(node)];
  };
  for (PictureNode& node : nodes) move(node.parent);
  std::vector<PictureSpan> spans;
  for (PictureSpan span : picture.spans) {
    const bool is_whole = span.node < 0;
    move(span.node);
    if (is_whole || span.node >= 0) spans.push_back(span);
  }
  picture.spans = std::move(spans);
  for (PictureEdge& edge : picture.edges) {
    move(edge.from);
    move(edge.to);
    move(edge.box);
  }
  picture.nodes = std::move(nodes);
}

std::string number_of(const FullAttrs& attrs) {
  const DType dtype = attrs.type.dtype();
  if (is_float(dtype)) return str(attrs.number);
  if (dtype == DType::boolean) return attrs.number != 0 || attrs.integer != 0 ? "true" : "false";
  return str(attrs.integer);
}

}  // namespace

bool is_dim_token(const TensorType& type) {
  return !type.is_list() && type.rank() == 2 && type.dtype() == boolean &&
         type == token_type(type.dims()[1]);
}

void describe(PictureNode& drawn, const OpRecord& record) {
  if (record.op == &full_op) {
    drawn.role = PictureNode::Role::constant;
    drawn.label = number_of(get<FullAttrs>(record.attrs.get()));
  }
  if (!record.attrs) return;
  TextStream text;
  record.attrs->print(text);
  if (!text.str().empty()) drawn.attributes.emplace_back("attributes", text.str());
}

const std::string& list_name_of(const PictureNode& node) {
  return node.list_name.empty() ? node.label : node.list_name;
}

std::string title_of_loop(const std::string& name) {
  const std::size_t blank = name.find(' ');
  if (blank == std::string::npos) return name;
  const std::string function = name.substr(0, blank), twice = str(function, " \"", function, '"');
  return name.starts_with(twice) ? function + name.substr(twice.size()) : name;
}

EndNames names_of_ends(const Graph& graph) {
  EndNames names;
  int numbers[] = {0, 0, 0};  // of arguments, captures, results; dims are not counted
  const auto add = [&](std::vector<std::string>& to, const TensorType& type,
                       const std::vector<std::string>& said, const char* what, int& number) {
    const std::size_t place = to.size();
    if (is_dim_token(type)) {
      to.push_back("dim " + type.dims()[1].name());
      return;
    }
    to.push_back(place < said.size() ? said[place] : str(what, ' ', number));
    ++number;
  };
  for (const ValueId v : graph.inputs) {
    const bool is_capture = names.inputs.size() >= graph.formal_count;
    add(names.inputs, graph.types[v], is_capture ? std::vector<std::string>() : graph.input_names,
        is_capture ? "capture" : "argument", numbers[is_capture]);
  }
  for (const ValueId v : graph.outputs)
    add(names.outputs, graph.types[v], graph.output_names, "result", numbers[2]);
  return names;
}

Picture picture_of(const Graph& graph, const Profile* profile) {
  Picture picture;
  picture.name = graph.name;
  GraphDrawer(picture).draw_whole(graph, profile);
  drop_unconnected(picture);
  if (!profile) return picture;
  picture.runs = profile->runs;
  if (profile->is_first) picture.which_runs = Picture::Runs::first;
  for (const PictureNode& node : picture.nodes)
    if (node.parent < 0 && node.count) picture.nanoseconds += node.count->nanoseconds;
  picture.nanoseconds = std::max(picture.nanoseconds, profile->nanoseconds);
  return picture;
}
Picture picture_of(const Graph& graph) { return picture_of(graph, nullptr); }

const char* name_of(PictureNode::Kind kind) {
  constexpr const char* kNames[] = {"op", "box", "input", "output"};
  return kNames[static_cast<int>(kind)];
}
const char* name_of(PictureNode::Role role) {
  constexpr const char* kNames[] = {"plain",  "constant", "loop",     "cond",    "part",  "group",
                                    "update", "frame",    "argument", "capture", "carry", "slice",
                                    "stack",  "sum",      "result",   "control"};
  return kNames[static_cast<int>(role)];
}
const char* name_of(PictureEdge::Kind kind) {
  constexpr const char* kNames[] = {"data", "capture", "back", "order"};
  return kNames[static_cast<int>(kind)];
}

}  // namespace reel
