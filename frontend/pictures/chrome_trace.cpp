#include "reel/frontend/pictures/chrome_trace.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "reel/core/source_lines.h"
#include "reel/core/str.h"

namespace reel {
namespace {

using nlohmann::json;

/// Rounds to multiples of 2^-20: their sums and differences are exact, so begin plus length is
/// exactly the end. With rounding errors a viewer could find that one span ends inside the next,
/// and nest them.
double microseconds(std::int64_t nanoseconds) {
  constexpr double kSteps = 1 << 20;
  return std::round(static_cast<double>(nanoseconds) * 1e-3 * kSteps) / kSteps;
}

/// Adds the fields that a viewer shows of a span, its name first.
void describe(json& event, const Picture& picture, const PictureSpan& span) {
  if (span.node < 0) {
    event["name"] = picture.name;
    event["cat"] = "run";
    return;
  }
  const PictureNode& node = picture.nodes[static_cast<std::size_t>(span.node)];
  if (span.iteration) {
    event["name"] =
        str("iteration ", span.in_iteration.empty() ? str(*span.iteration) : span.in_iteration);
    event["cat"] = "iteration";
    return;
  }
  event["name"] = list_name_of(node);
  event["cat"] = name_of(node.role);
  json& args = event["args"] = json::object();
  if (!node.types.empty()) args["gives"] = join(node.types);
  if (!node.source.empty()) args["source"] = first_line(node.source);
  if (!node.note.empty()) args["runs"] = node.note;
  if (!span.in_iteration.empty()) {
    args["iteration"] = span.in_iteration;
    args["of"] = list_name_of(picture.nodes[static_cast<std::size_t>(node.parent)]);
  }
  if (node.role == PictureNode::Role::group && !node.attributes.empty())
    args["does"] = node.attributes[0].second;
}

json name_of_row(const char* what, int process, unsigned row, const std::string& name) {
  return {{"ph", "M"}, {"pid", process}, {"tid", row}, {"name", what}, {"args", {{"name", name}}}};
}

}  // namespace

std::string chrome_trace_of(const std::vector<Picture>& parts) {
  constexpr int kThreads = 1;  // the process of threads; each part's loops have another one
  std::int64_t start = std::numeric_limits<std::int64_t>::max();
  for (const Picture& part : parts)
    for (const PictureSpan& span : part.spans) start = std::min(start, span.begin);
  json events = json::array();
  std::int64_t left_out = 0;
  std::set<unsigned> threads;
  int process = kThreads;
  for (const Picture& part : parts) {
    left_out += part.spans_left_out;
    // Viewers nest spans that begin at the same time in the order of the file: longer ones come
    // first.
    std::vector<const PictureSpan*> spans;
    for (const PictureSpan& span : part.spans) spans.push_back(&span);
    std::stable_sort(spans.begin(), spans.end(), [](const PictureSpan* a, const PictureSpan* b) {
      return a->begin != b->begin ? a->begin < b->begin : a->end > b->end;
    });
    ++process;
    for (const PictureSpan* span : spans) {
      const bool is_thread = !part.rows.count(span->row);
      if (is_thread) threads.insert(span->row);
      const double begin = microseconds(span->begin - start);
      json event{{"ph", "X"},
                 {"pid", is_thread ? kThreads : process},
                 {"tid", span->row},
                 {"ts", begin},
                 {"dur", microseconds(span->end - start) - begin}};
      describe(event, part, *span);
      events.push_back(std::move(event));
    }
    if (!part.rows.empty())
      events.push_back(name_of_row("process_name", process, 0, "loops of " + part.name));
    for (const auto& [row, name] : part.rows)
      events.push_back(name_of_row("thread_name", process, row, name));
  }
  events.push_back(name_of_row("process_name", kThreads, 0, "threads"));
  for (const unsigned thread : threads)
    events.push_back(name_of_row("thread_name", kThreads, thread, str("thread ", thread)));
  const json trace{{"traceEvents", std::move(events)},
                   {"displayTimeUnit", "ns"},
                   {"otherData", {{"spans left out", left_out}}}};
  return trace.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace reel
