#include "reel/frontend/run_profile.h"

#include <algorithm>
#include <optional>
#include <span>
#include <string_view>

#include "reel/core/base/quantities.h"
#include "reel/core/base/source_lines.h"
#include "reel/core/base/str.h"
#include "reel/frontend/files/replace_file.h"
#include "reel/frontend/pictures/chrome_trace.h"
#include "reel/frontend/pictures/picture.h"
#include "reel/trace/executors/plan/base/explain_format.h"

namespace reel {
namespace {

using Kind = PictureNode::Kind;
using Role = PictureNode::Role;

const PictureNode& node_at(const Picture& picture, int i) {
  return picture.nodes[static_cast<std::size_t>(i)];
}

/// Returns for example "scan "lstm", 50 iterations", "dot -> f32[8,4]", or "fused: mul, add".
std::string words_of(const PictureNode& node) {
  std::string result = list_name_of(node);
  if (!node.note.empty()) result += ", " + node.note;
  if (node.role == Role::group && !node.attributes.empty())
    return result + ": " + node.attributes[0].second;
  if (node.kind == Kind::op && !node.types.empty()) result += " -> " + join(node.types);
  return result;
}

/// Replaces line ends, which user-given names may contain: they would break the table.
std::string one_line(std::string text) {
  for (char& c : text)
    if (static_cast<unsigned char>(c) < ' ') c = ' ';
  return text;
}

/// Returns the enclosing box, as in "scan "rnn""; for a part, with its owner: "condition of
/// while_loop".
std::string place_of(const Picture& picture, const PictureNode& node) {
  const PictureNode& box = node_at(picture, node.parent);
  std::string result = list_name_of(box);
  if (box.role == Role::part && box.parent >= 0) result += " of " + place_of(picture, box);
  if (box.role == Role::cond && box.parent >= 0) result += " in " + place_of(picture, box);
  return result;
}

std::string padded(const std::string& text, std::size_t width) {
  return std::string(width - std::min(width, text.size()), ' ') + text;
}

std::string percent(double share) { return fixed_text(100 * share, 1) + " %"; }

/// A line of the table: the total time of a node, or of work beside the nodes.
struct Row {
  double nanoseconds, calls;
  std::string what;
  int node, box;  ///< its node, and the box around it; -1: none
};

/// Returns a row for each node that ran, and for the time of loops and of the whole besides their
/// ops. Times of ops in row blocks are sums over threads: they are scaled to the loop's time.
class Rows {
 public:
  explicit Rows(const Picture& picture)
      : picture_(picture), time_(picture.nodes.size()), inside_(picture.nodes.size()) {
    const auto& nodes = picture.nodes;
    for (std::size_t i = nodes.size(); i-- > 0;) {
      if (is_timed(nodes[i])) time_[i] = static_cast<double>(nodes[i].count->nanoseconds);
      // Parts of a loop have no time of their own.
      if (nodes[i].parent >= 0)
        inside_[index(nodes[i].parent)] += is_timed(nodes[i]) ? time_[i] : inside_[i];
    }
    if (overlap()) return;
    std::vector<double> factors(nodes.size(), 1);     // by box: of the nodes in it
    for (std::size_t i = 0; i < nodes.size(); ++i) {  // boxes come before their nodes
      const double factor = nodes[i].parent < 0 ? 1 : factors[index(nodes[i].parent)];
      time_[i] *= factor;
      factors[i] = factor;
      if (is_timed(nodes[i]) && inside_[i] > 0)
        factors[i] = std::min(factor, time_[i] / inside_[i]);
      inside_[i] *= factors[i];
    }
  }

  std::vector<Row> all() const {
    std::vector<Row> rows;
    double outside = static_cast<double>(picture_.nanoseconds);
    for (std::size_t i = 0; i < picture_.nodes.size(); ++i) {
      const PictureNode& node = picture_.nodes[i];
      if (!is_timed(node)) continue;
      const auto calls = static_cast<double>(node.count->calls);
      rows.push_back({time_[i], calls, text_of(node), static_cast<int>(i), node.parent});
      if (overlap()) continue;
      if (node.parent < 0) outside -= time_[i];
      if (node.role == Role::loop && inside_[i] > 0)
        rows.push_back(
            {std::max(0.0, time_[i] - inside_[i]), calls,
             "states, slices and hand-over between the ops, in " + one_line(list_name_of(node)), -1,
             static_cast<int>(i)});
    }
    if (!overlap())
      rows.push_back({std::max(0.0, outside), static_cast<double>(picture_.runs),
                      "arguments, memory and results, before and after the ops", -1, -1});
    std::stable_sort(rows.begin(), rows.end(),
                     [](const Row& a, const Row& b) { return a.nanoseconds > b.nanoseconds; });
    return rows;
  }

  /// Returns the time of a run that is in none of these rows. Nothing for dataflow runs.
  std::optional<double> rest(std::span<const Row> rows) const {
    if (overlap()) return std::nullopt;
    double result = static_cast<double>(picture_.nanoseconds);
    const auto has_node = [&](int i) {
      return std::any_of(rows.begin(), rows.end(), [&](const Row& row) { return row.node == i; });
    };
    for (const Row& row : rows) {
      bool is_inside = false;  // a row of an enclosing loop has its time
      for (int box = row.box; box >= 0; box = node_at(picture_, box).parent)
        is_inside = is_inside || has_node(box);
      if (!is_inside) result -= row.nanoseconds;
    }
    return std::max(0.0, result);
  }

 private:
  static std::size_t index(int i) { return static_cast<std::size_t>(i); }
  static bool is_timed(const PictureNode& node) {
    return node.count && node.count->calls > 0 && node.role != Role::argument;
  }
  /// True for dataflow runs, in which ops and iterations overlap.
  bool overlap() const { return picture_.which_runs == Picture::Runs::last; }
  std::string text_of(const PictureNode& node) const {
    std::string text = one_line(words_of(node));
    if (node.parent >= 0) text += ", in " + one_line(place_of(picture_, node));
    if (!node.source.empty()) text += str("  (", first_line(node.source), ')');
    return text;
  }

  const Picture& picture_;
  std::vector<double> time_;    ///< by node
  std::vector<double> inside_;  ///< by box: time of the nodes in it
};

std::string which_runs(const Picture& picture) {
  switch (picture.which_runs) {
    case Picture::Runs::first:
      return "the first one, which plans the loops";
    case Picture::Runs::last:
      return "the last one";
    default:
      return str("the mean of ", picture.runs);
  }
}

void summarise(std::ostream& out, const Picture& picture) {
  constexpr std::size_t kMaxRows = 10;
  const auto runs = static_cast<double>(std::max<std::int64_t>(picture.runs, 1));
  out << (picture.name.empty() ? "a graph without a name" : one_line(picture.name)) << ": ";
  if (!picture.failure.empty()) {
    out << "run op by op, by the interpreter, because its plan failed: "
        << one_line(picture.failure) << '\n';
    if (!picture.runs) return;
    out << "before that: ";
  }
  if (!picture.runs) {
    out << "no run has finished\n";
    return;
  }
  const double all = static_cast<double>(picture.nanoseconds);
  out << time_text(all / runs * 1e-9) << " a run, " << which_runs(picture) << '\n';
  const Rows found(picture);
  const std::vector<Row> rows = found.all();
  const std::size_t shown = std::min(kMaxRows, rows.size());
  if (shown) out << "      time     share       runs  what\n";
  for (std::size_t k = 0; k < shown; ++k)
    out << padded(time_text(rows[k].nanoseconds / runs * 1e-9), 10)
        << padded(percent(rows[k].nanoseconds / std::max(all, 1.0)), 10)
        << padded(str(rows[k].calls / runs), 11) << "  " << rows[k].what << '\n';
  if (rows.size() > shown) {
    out << "and " << rows.size() - shown << " more";
    if (const auto rest = found.rest({rows.data(), shown}))
      out << ", with " << percent(*rest / std::max(all, 1.0)) << " besides the lines above";
    out << '\n';
  }
  if (picture.spans_left_out)
    out << "the time line omits " << picture.spans_left_out
        << (picture.spans_left_out == 1 ? " span" : " spans") << "; the times above include them\n";
}

/// True if a place names a line of code: "model.cpp:12 loss".
bool has_line(const PictureNode& node) {
  for (std::size_t at = 0; (at = node.source.find(':', at)) != std::string::npos; ++at)
    if (at + 1 < node.source.size() && node.source[at + 1] >= '0' && node.source[at + 1] <= '9')
      return true;
  return false;
}

}  // namespace

RunProfile::RunProfile(std::vector<Picture> parts)
    : parts_(std::make_shared<const std::vector<Picture>>(std::move(parts))) {}

std::string RunProfile::summary() const {
  TextStream out;
  bool has_ops = false, has_lines = false;
  for (const Picture& part : *parts_) {
    summarise(out, part);
    for (const PictureNode& node : part.nodes) {
      has_ops = has_ops || (part.runs > 0 && node.count);
      has_lines = has_lines || has_line(node);
    }
  }
  if (has_ops && !has_lines)
    out << "compile your program with -g1 or more to see lines of code; it costs no speed\n";
  return out.str();
}

void RunProfile::write_chrome_trace(const std::string& path) const {
  const std::string text = chrome_trace_of(*parts_);
  const std::string_view whole(text);
  replace_file(path, {&whole, 1}, "write_chrome_trace");
}

}  // namespace reel
