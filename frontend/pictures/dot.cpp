// Writes pictures in Graphviz's language.

#include "reel/core/base/str.h"
#include "reel/frontend/pictures/picture.h"

namespace reel {
namespace {

using Kind = PictureNode::Kind;
using Role = PictureNode::Role;

/// Quotes a text. Graphviz ends texts at a NUL, and its output must not have other control
/// characters either.
std::string quoted(const std::string& text) {
  constexpr const char* kUnknown = "\xEF\xBF\xBD";  // U+FFFD
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    if (c == '\n')
      result += "\\n";
    else if (static_cast<unsigned char>(c) < ' ' && c != '\t')
      result += kUnknown;
    else
      result += c;
  }
  return result + '"';
}

const char* colour_of(Role role) {
  switch (role) {
    case Role::loop:
    case Role::frame:
    case Role::slice:
    case Role::stack:
      return "#2563a8";
    case Role::cond:
      return "#7a4bb3";
    case Role::group:
    case Role::update:
    case Role::sum:
      return "#2f7d5b";
    case Role::carry:
      return "#c2570c";
    case Role::control:
      return "#8b5e05";
    default:
      return "#7b8a9c";
  }
}

class DotWriter {
 public:
  explicit DotWriter(const Picture& picture)
      : picture_(picture), inside_(picture.nodes.size() + 1) {
    for (std::size_t i = 0; i < picture.nodes.size(); ++i)
      inside_[static_cast<std::size_t>(picture.nodes[i].parent + 1)].push_back(static_cast<int>(i));
  }

  std::string run() {
    out_ << "digraph " << quoted(picture_.name) << " {\n"
         << "  graph [fontname=\"sans-serif\", fontsize=11, compound=true]\n"
         << "  node [fontname=\"sans-serif\", fontsize=10, shape=box, style=rounded, height=0.3]\n"
         << "  edge [fontname=\"monospace\", fontsize=8, color=\"#7b8a9c\", arrowsize=0.6]\n";
    write_inside(-1, "  ");
    for (const PictureEdge& edge : picture_.edges) write(edge);
    out_ << "}\n";
    return out_.str();
  }

 private:
  void write_inside(int box, const std::string& indent) {
    for (const int i : inside_[static_cast<std::size_t>(box + 1)]) {
      const PictureNode& node = picture_.nodes[static_cast<std::size_t>(i)];
      if (node.kind == Kind::box) {
        out_ << indent << "subgraph cluster_" << i << " {\n"
             << indent << "  label=" << quoted(title_of(node)) << "; style=rounded; color=\""
             << colour_of(node.role) << "\"\n";
        write_inside(i, indent + "  ");
        out_ << indent << "}\n";
      } else {
        out_ << indent << 'n' << i << " [label=" << quoted(title_of(node));
        if (node.kind != Kind::op)
          out_ << ", shape=ellipse, style=" << (node.role == Role::capture ? "dashed" : "solid");
        if (node.role != Role::plain) out_ << ", color=\"" << colour_of(node.role) << '"';
        out_ << "]\n";
      }
    }
  }

  static std::string title_of(const PictureNode& node) {
    std::string result = node.label;
    if (!node.note.empty()) result += '\n' + node.note;
    return result;
  }

  void write(const PictureEdge& edge) {
    const PictureNode& from = picture_.nodes[static_cast<std::size_t>(edge.from)];
    out_ << "  n" << edge.from << " -> n" << edge.to << " [";
    const auto output = static_cast<std::size_t>(edge.output);
    if (output < from.types.size()) out_ << "label=" << quoted(' ' + from.types[output]) << ", ";
    switch (edge.kind) {
      case PictureEdge::Kind::data:
        out_ << "style=solid";
        break;
      case PictureEdge::Kind::capture:
        out_ << "style=dashed";
        break;
      case PictureEdge::Kind::back:
        out_ << "style=bold, color=\"#c2570c\", constraint=false";
        break;
      case PictureEdge::Kind::order:
        out_ << "style=dotted";
        break;
    }
    out_ << "]\n";
  }

  const Picture& picture_;
  std::vector<std::vector<int>> inside_;  ///< nodes by box, the picture itself first
  TextStream out_;
};

}  // namespace

std::string dot_of(const Picture& picture) { return DotWriter(picture).run(); }

}  // namespace reel
