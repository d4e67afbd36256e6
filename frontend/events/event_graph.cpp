#include "reel/frontend/events/event_graph.h"

#include <map>
#include <set>
#include <string_view>
#include <vector>

#include "reel/core/base/str.h"
#include "reel/frontend/events/protobuf_writer.h"
#include "reel/frontend/pictures/picture.h"

namespace reel {
namespace {

// Fields of the messages, from
// tensorflow/core/framework/{graph,node_def,attr_value,versions}.proto.
namespace graph_def {
constexpr int kNode = 1, kVersions = 4, kProducer = 1;
}
namespace node_def {
constexpr int kName = 1, kOp = 2, kInput = 3, kAttr = 5;
}
namespace attr {
constexpr int kKey = 1, kValue = 2, kBytes = 2;
}
/// The oldest version of GraphDef that TensorBoard reads without conversion.
constexpr int kProducer = 22;

/// Returns the label with the characters that names of nodes may have.
std::string name_from(std::string_view label) {
  std::string result;
  for (const char c : label) {
    const bool is_allowed = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                            (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
    if (is_allowed)
      result += c;
    else if (!result.empty() && result.back() != '_')
      result += '_';
  }
  while (!result.empty() && result.back() == '_') result.pop_back();
  if (result.empty()) return "node";
  if (result[0] == '_' || result[0] == '-' || result[0] == '.') result.insert(0, 1, 'n');
  return result;
}

class GraphMessage {
 public:
  explicit GraphMessage(const Picture& picture) : picture_(picture) {
    for (const PictureNode& node : picture.nodes) {
      const std::string scope = node.parent < 0 ? "" : names_[at(node.parent)] + '/';
      names_.push_back(unique(scope + name_from(node.label)));
    }
    inputs_.resize(picture.nodes.size());
    for (const PictureEdge& edge : picture.edges) add_input(edge);
  }

  std::string write() const {
    ProtobufWriter result, versions;
    for (std::size_t i = 0; i < picture_.nodes.size(); ++i)
      if (picture_.nodes[i].kind != PictureNode::Kind::box)
        result.bytes(graph_def::kNode, node_message(i));
    versions.integer(graph_def::kProducer, kProducer);
    result.bytes(graph_def::kVersions, versions.message());
    return result.message();
  }

 private:
  static std::size_t at(int node) { return static_cast<std::size_t>(node); }

  std::string unique(const std::string& name) {
    if (taken_.insert(name).second) return name;
    for (int i = ++counts_[name];; i = ++counts_[name])
      if (std::string other = str(name, '_', i); taken_.insert(other).second) return other;
  }

  void add_input(const PictureEdge& edge) {
    const std::string& from = names_[at(edge.from)];
    if (edge.kind == PictureEdge::Kind::order)
      inputs_[at(edge.to)].emplace(kBehindAll, '^' + from);
    else
      inputs_[at(edge.to)].emplace(edge.input,
                                   edge.output > 0 ? str(from, ':', edge.output) : from);
  }

  std::string node_message(std::size_t i) const {
    const PictureNode& node = picture_.nodes[i];
    ProtobufWriter result;
    result.bytes(node_def::kName, names_[i]);
    result.bytes(node_def::kOp, op_of(node));
    for (const auto& [place, input] : inputs_[i]) result.bytes(node_def::kInput, input);
    for (std::size_t k = 0; k < node.types.size(); ++k)
      add_attr(result, node.types.size() == 1 ? "type" : str("type of output ", k), node.types[k]);
    for (const auto& [name, text] : node.attributes) add_attr(result, name, text);
    if (!node.source.empty()) add_attr(result, "source", node.source);
    if (!node.note.empty()) add_attr(result, "note", node.note);
    return result.message();
  }
  static std::string op_of(const PictureNode& node) {
    switch (node.kind) {
      case PictureNode::Kind::input:
        return node.parent < 0 ? "Placeholder" : name_of(node.role);
      case PictureNode::Kind::output:
        return name_of(node.role);
      default:
        return node.label;
    }
  }
  static void add_attr(ProtobufWriter& to, const std::string& name, const std::string& text) {
    ProtobufWriter content, entry;
    content.bytes(attr::kBytes, text);
    entry.bytes(attr::kKey, name);
    entry.bytes(attr::kValue, content.message());
    to.bytes(node_def::kAttr, entry.message());
  }

  static constexpr int kBehindAll = 1 << 30;  ///< control inputs stand behind the others
  const Picture& picture_;
  std::vector<std::string> names_;  ///< by node
  std::set<std::string> taken_;
  std::map<std::string, int> counts_;
  std::vector<std::multimap<int, std::string>> inputs_;  ///< by node: by place
};

}  // namespace

std::string graph_message(const Graph& graph) {
  const Picture picture = picture_of(graph);
  return GraphMessage(picture).write();
}

}  // namespace reel
