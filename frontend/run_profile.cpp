#include "reel/frontend/run_profile.h"

#include <algorithm>
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
  std::vector<int> order;
  for (std::size_t i = 0; i < picture.nodes.size(); ++i) {
    const PictureNode& node = picture.nodes[i];
    if (!node.count || node.count->calls == 0 || node.role == Role::argument) continue;
    order.push_back(static_cast<int>(i));
  }
  const auto nanoseconds = [&](int i) { return node_at(picture, i).count->nanoseconds; };
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return nanoseconds(a) > nanoseconds(b); });
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
  const std::size_t shown = std::min(kMaxRows, order.size());
  if (shown) out << "      time     share       runs  what\n";
  for (std::size_t k = 0; k < shown; ++k) {
    const PictureNode& node = node_at(picture, order[k]);
    const double mean = static_cast<double>(node.count->nanoseconds) / runs;
    out << padded(time_text(mean * 1e-9), 10)
        << padded(percent(mean * runs / std::max(all, 1.0)), 10)
        << padded(str(static_cast<double>(node.count->calls) / runs), 11) << "  "
        << one_line(words_of(node));
    if (node.parent >= 0) out << ", in " << one_line(place_of(picture, node));
    if (!node.source.empty()) out << "  (" << first_line(node.source) << ')';
    out << '\n';
  }
  if (order.size() > shown) out << "and " << order.size() - shown << " more\n";
  if (picture.spans_left_out)
    out << "the time line omits " << picture.spans_left_out
        << (picture.spans_left_out == 1 ? " span" : " spans") << "; the times above include them\n";
}

}  // namespace

RunProfile::RunProfile(std::vector<Picture> parts)
    : parts_(std::make_shared<const std::vector<Picture>>(std::move(parts))) {}

std::string RunProfile::summary() const {
  TextStream out;
  for (const Picture& part : *parts_) summarise(out, part);
  return out.str();
}

void RunProfile::write_chrome_trace(const std::string& path) const {
  const std::string text = chrome_trace_of(*parts_);
  const std::string_view whole(text);
  replace_file(path, {&whole, 1}, "write_chrome_trace");
}

}  // namespace reel
