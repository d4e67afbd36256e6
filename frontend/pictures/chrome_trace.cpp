#include "reel/frontend/pictures/chrome_trace.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "reel/core/base/source_lines.h"
#include "reel/core/base/str.h"
#include "reel/frontend/files/json_writer.h"

namespace reel {
namespace {

/// Rounds to multiples of 2^-20: their sums and differences are exact, so begin plus length is
/// exactly the end. With rounding errors a viewer could find that one span ends inside the next,
/// and nest them.
double microseconds(std::int64_t nanoseconds) {
  constexpr double kSteps = 1 << 20;
  return std::round(static_cast<double>(nanoseconds) * 1e-3 * kSteps) / kSteps;
}

/// Adds the fields that a viewer shows of a span, its name first.
void describe(JsonWriter& event, const Picture& picture, const PictureSpan& span) {
  const auto name = [&](std::string_view text, std::string_view category) {
    event.member("name", text);
    event.member("cat", category);
  };
  if (span.node < 0) return name(picture.name, "run");
  const PictureNode& node = picture.nodes[static_cast<std::size_t>(span.node)];
  if (span.iteration)
    return name(
        str("iteration ", span.in_iteration.empty() ? str(*span.iteration) : span.in_iteration),
        "iteration");
  name(list_name_of(node), name_of(node.role));
  event.key("args");
  event.begin_object();
  if (!node.types.empty()) event.member("gives", join(node.types));
  if (!node.source.empty()) event.member("source", first_line(node.source));
  if (!node.note.empty()) event.member("runs", node.note);
  if (!span.in_iteration.empty()) {
    event.member("iteration", span.in_iteration);
    event.member("of", list_name_of(picture.nodes[static_cast<std::size_t>(node.parent)]));
  }
  if (node.role == PictureNode::Role::group && !node.attributes.empty())
    event.member("does", node.attributes[0].second);
  event.end_object();
}

void add_place(JsonWriter& event, const char* phase, int process, unsigned row) {
  event.member("ph", phase);
  event.member("pid", process);
  event.member("tid", row);
}

void name_row(JsonWriter& events, const char* what, int process, unsigned row,
              const std::string& name) {
  events.begin_object();
  add_place(events, "M", process, row);
  events.member("name", what);
  events.key("args");
  events.begin_object();
  events.member("name", name);
  events.end_object();
  events.end_object();
}

}  // namespace

std::string chrome_trace_of(const std::vector<Picture>& parts) {
  constexpr int kThreads = 1;  // the process of threads; each part's loops have another one
  std::int64_t start = std::numeric_limits<std::int64_t>::max();
  for (const Picture& part : parts)
    for (const PictureSpan& span : part.spans) start = std::min(start, span.begin);
  JsonWriter json;
  json.begin_object();
  json.key("traceEvents");
  json.begin_array();
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
      json.begin_object();
      add_place(json, "X", is_thread ? kThreads : process, span->row);
      json.member("ts", begin);
      json.member("dur", microseconds(span->end - start) - begin);
      describe(json, part, *span);
      json.end_object();
    }
    if (!part.rows.empty()) name_row(json, "process_name", process, 0, "loops of " + part.name);
    for (const auto& [row, name] : part.rows) name_row(json, "thread_name", process, row, name);
  }
  name_row(json, "process_name", kThreads, 0, "threads");
  for (const unsigned thread : threads)
    name_row(json, "thread_name", kThreads, thread, str("thread ", thread));
  json.end_array();
  json.member("displayTimeUnit", "ns");
  json.key("otherData");
  json.begin_object();
  json.member("spans left out", left_out);
  json.end_object();
  json.end_object();
  return json.take();
}

}  // namespace reel
