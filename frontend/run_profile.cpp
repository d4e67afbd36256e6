#include "reel/frontend/run_profile.h"

#include <algorithm>
#include <cstdio>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>

#include "reel/core/str.h"
#include "reel/frontend/pictures/picture.h"
#include "reel/frontend/replace_file.h"
#include "reel/trace/executors/plan/words.h"

namespace reel {
namespace {

using Kind = PictureNode::Kind;
using Role = PictureNode::Role;

const PictureNode& node_at(const Picture& picture, int i) {
  return picture.nodes[static_cast<std::size_t>(i)];
}

/// "scan "lstm", 50 steps", "dot -> f32[8,4]", "fused: mul, add"
std::string words_of(const PictureNode& node) {
  std::string result = node.label;
  if (!node.note.empty()) result += ", " + node.note;
  if (node.role == Role::group && !node.attributes.empty())
    return result + ": " + node.attributes[0].second;
  if (node.kind == Kind::op && !node.types.empty()) result += " -> " + join(node.types);
  return result;
}

/// The first line, that of the op itself.
std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

std::string padded(const std::string& text, std::size_t width) {
  return std::string(width - std::min(width, text.size()), ' ') + text;
}

std::string percent(double share) {
  char text[16];
  std::snprintf(text, sizeof text, "%.1f %%", 100 * share);
  return text;
}

void summarise(std::ostream& out, const Picture& picture) {
  constexpr std::size_t kMost = 10;
  const auto runs = static_cast<double>(std::max<std::int64_t>(picture.runs, 1));
  std::int64_t all = 0;
  std::vector<int> order;
  for (std::size_t i = 0; i < picture.nodes.size(); ++i) {
    const PictureNode& node = picture.nodes[i];
    if (!node.count || node.count->calls == 0) continue;
    if (node.parent < 0) all += node.count->nanoseconds;
    order.push_back(static_cast<int>(i));
  }
  const auto nanoseconds = [&](int i) { return node_at(picture, i).count->nanoseconds; };
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return nanoseconds(a) > nanoseconds(b); });
  out << (picture.name.empty() ? "a graph without a name" : picture.name) << ": ";
  if (!picture.runs) {
    out << "it has not run to its end\n";
    return;
  }
  out << time_text(static_cast<double>(all) / runs * 1e-9) << " a run, "
      << (picture.is_first_run ? "the first one, in which loops are planned"
                               : str("the mean of ", picture.runs))
      << '\n';
  const std::size_t shown = std::min(kMost, order.size());
  if (shown) out << "      time     share       runs  what\n";
  for (std::size_t k = 0; k < shown; ++k) {
    const PictureNode& node = node_at(picture, order[k]);
    const double mean = static_cast<double>(node.count->nanoseconds) / runs;
    out << padded(time_text(mean * 1e-9), 10)
        << padded(percent(mean * runs / static_cast<double>(std::max<std::int64_t>(all, 1))), 10)
        << padded(str(static_cast<double>(node.count->calls) / runs), 11) << "  " << words_of(node);
    if (node.parent >= 0) out << ", in " << node_at(picture, node.parent).label;
    if (!node.source.empty()) out << "  (" << first_line(node.source) << ')';
    out << '\n';
  }
  if (order.size() > shown) out << "and " << order.size() - shown << " more\n";
}

}  // namespace

RunProfile::RunProfile(std::vector<Picture> parts)
    : parts_(std::make_shared<const std::vector<Picture>>(std::move(parts))) {}

std::string RunProfile::summary() const {
  std::ostringstream out;
  for (const Picture& part : *parts_) summarise(out, part);
  const std::string text = out.str();
  return text.empty() ? "it has not run to its end\n" : text;
}

void RunProfile::write_chrome_trace(const std::string& path) const {
  using nlohmann::json;
  std::int64_t start = std::numeric_limits<std::int64_t>::max();
  for (const Picture& part : *parts_)
    for (const PictureSpan& span : part.spans) start = std::min(start, span.begin);
  const auto microseconds = [](std::int64_t nanoseconds) {
    return static_cast<double>(nanoseconds) * 1e-3;
  };
  json events = json::array();
  std::int64_t left_out = 0;
  std::map<unsigned, bool> threads;
  for (const Picture& part : *parts_) {
    left_out += part.spans_left_out;
    // A viewer nests what begins at one time in the order of the file: what is longer comes first.
    std::vector<const PictureSpan*> spans;
    for (const PictureSpan& span : part.spans) spans.push_back(&span);
    std::stable_sort(spans.begin(), spans.end(), [](const PictureSpan* a, const PictureSpan* b) {
      return a->begin != b->begin ? a->begin < b->begin : a->end > b->end;
    });
    std::map<int, std::map<unsigned, std::int64_t>> iterations;  // of a loop's run, by thread
    for (const PictureSpan* span : spans) {
      threads[span->thread] = true;
      json event{{"ph", "X"},
                 {"pid", 1},
                 {"tid", span->thread},
                 {"ts", microseconds(span->begin - start)},
                 {"dur", microseconds(span->end - span->begin)}};
      if (span->node < 0) {
        event["name"] = part.name;
        event["cat"] = "run";
      } else if (span->is_iteration) {
        const PictureNode& box = node_at(part, span->node);
        const std::int64_t k = iterations[span->node][span->thread]++;
        event["name"] = box.role == Role::loop ? str("iteration ", k) : box.label;
        event["cat"] = "iteration";
      } else {
        const PictureNode& node = node_at(part, span->node);
        iterations.erase(span->node);
        event["name"] = node.label;
        event["cat"] = name_of(node.role);
        json& args = event["args"] = json::object();
        if (!node.types.empty()) args["gives"] = join(node.types);
        if (!node.source.empty()) args["source"] = first_line(node.source);
        if (!node.note.empty()) args["runs"] = node.note;
        if (node.role == Role::group && !node.attributes.empty())
          args["does"] = node.attributes[0].second;
      }
      events.push_back(std::move(event));
    }
  }
  for (const auto& [thread, _] : threads)
    events.push_back({{"ph", "M"},
                      {"pid", 1},
                      {"tid", thread},
                      {"name", "thread_name"},
                      {"args", {{"name", str("thread ", thread)}}}});
  const json trace{{"traceEvents", std::move(events)},
                   {"displayTimeUnit", "ns"},
                   {"otherData", {{"spans left out", left_out}}}};
  const std::string text = trace.dump(-1, ' ', false, json::error_handler_t::replace);
  const std::string_view whole(text);
  replace_file(path, {&whole, 1}, "write_chrome_trace");
}

}  // namespace reel
