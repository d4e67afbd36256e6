#include "reel/frontend/pictures/write_html.h"

#include <algorithm>
#include <map>

#include "reel/autodiff/reverse_call.h"
#include "reel/core/base/str.h"
#include "reel/frontend/files/json_writer.h"
#include "reel/frontend/files/utf8.h"
#include "reel/frontend/pictures/lowered_picture.h"
#include "reel/frontend/pictures/page.h"
#include "reel/frontend/pictures/picture.h"
#include "reel/trace/inspection.h"

namespace reel {
namespace {

void write(JsonWriter& json, const PictureNode& node) {
  json.begin_object();
  json.member("kind", name_of(node.kind));
  json.member("label", node.label);
  if (node.parent >= 0) json.member("parent", node.parent);
  if (node.role != PictureNode::Role::plain) json.member("role", name_of(node.role));
  if (!node.note.empty()) json.member("note", node.note);
  if (!node.types.empty()) {
    json.key("types");
    json.begin_array();
    for (const std::string& type : node.types) json.value(type);
    json.end_array();
  }
  if (!node.attributes.empty()) {
    json.key("attributes");
    json.begin_array();
    for (const auto& [name, value] : node.attributes) json.array(name, value);
    json.end_array();
  }
  if (!node.source.empty()) json.member("source", node.source);
  if (node.count) {
    json.key("count");
    json.begin_object();
    json.member("calls", node.count->calls);
    json.member("nanoseconds", node.count->nanoseconds);
    json.end_object();
  }
  json.end_object();
}

void write(JsonWriter& json, const PictureEdge& edge) {
  json.begin_object();
  json.member("from", edge.from);
  json.member("output", edge.output);
  json.member("to", edge.to);
  json.member("input", edge.input);
  if (edge.box >= 0) json.member("box", edge.box);
  if (edge.kind != PictureEdge::Kind::data) json.member("kind", name_of(edge.kind));
  json.end_object();
}

void write(JsonWriter& json, const Activation& at, const LoweredPicture& lowered) {
  json.array(lowered.nodes[static_cast<std::size_t>(at.node)], at.instance, at.iteration,
             at.is_dead ? 1 : 0, at.taken, at.has_failed ? 1 : 0);
}

/// Writes how often nodes ran in the part of a run that is left out.
void write_counts(JsonWriter& json, const RecordedRun& run, const LoweredPicture& lowered) {
  if (!run.gap.left_out) return;
  std::vector<ActivationCount> between = activation_counts(run);
  for (const Activation& at : run.activations) {
    ActivationCount& count = between[static_cast<std::size_t>(at.node)];
    if (!at.has_failed) --(at.is_dead ? count.dead : count.live);
  }
  for (std::size_t i = 0; i < between.size(); ++i)
    if (const auto& [live, dead] = between[i]; live || dead)
      json.array(lowered.nodes[i], live, dead);
}

void write_failure(JsonWriter& json, const RecordedRun& run, const LoweredPicture& lowered) {
  if (!run.failure) return json.null();
  json.begin_object();
  json.member("message", run.failure->message);
  json.member("after", run.failure->after);
  if (run.failure->at) {
    json.key("at");
    write(json, *run.failure->at, lowered);
  }
  json.end_object();
}

void write_nodes(JsonWriter& json, const RecordedRun& run, const LoweredPicture& lowered) {
  std::map<std::string, std::vector<std::size_t>> kinds;
  for (std::size_t i = 0; i < run.graph->nodes.size(); ++i)
    kinds[name_of(run.graph->nodes[i].kind)].push_back(i);
  json.key("kinds");
  json.begin_object();
  for (const auto& [kind, nodes] : kinds) {
    json.key(kind);
    json.begin_array();
    for (const std::size_t i : nodes) json.value(lowered.nodes[i]);
    json.end_array();
  }
  json.end_object();
  json.key("enters");
  json.begin_object();
  for (std::size_t i = 0; i < run.graph->nodes.size(); ++i)
    if (run.graph->nodes[i].kind == LoweredKind::enter)
      json.member(str(lowered.nodes[i]), run.graph->nodes[i].enters);
  json.end_object();
}

/// Writes a run in the format of tokens.js. A long run is shortened to its first and last
/// activations, with a null between them.
void write(JsonWriter& json, const RecordedRun& whole, const LoweredPicture& lowered) {
  constexpr std::size_t kEach = 10'000;
  const RecordedRun run = shortened(whole, {.first = kEach, .last = kEach});
  const auto list = [&](const char* name, const auto& write_items) {
    json.key(name);
    json.begin_array();
    write_items();
    json.end_array();
  };
  json.begin_object();
  list("instances", [&] {
    for (const FrameInstance& instance : run.instances)
      json.array(instance.frame, instance.parent, instance.parent_iteration);
  });
  list("activations", [&] {
    for (std::size_t i = 0; i < run.activations.size(); ++i) {
      if (run.gap.left_out && i == run.gap.activations) json.null();
      write(json, run.activations[i], lowered);
    }
  });
  json.member("leftOut", run.gap.left_out);
  list("leftOutCounts", [&] { write_counts(json, run, lowered); });
  list("iterations", [&] {
    for (std::size_t i = 0; i < run.iterations.size(); ++i) {
      const IterationEvent& event = run.iterations[i];
      const bool is_behind_gap = run.gap.left_out && i >= run.gap.iterations;
      json.array(event.instance, event.iteration, event.begins ? 1 : 0,
                 event.after + (is_behind_gap ? 1 : 0));
    }
  });
  json.key("failure");
  write_failure(json, run, lowered);
  write_nodes(json, run, lowered);
  list("frames", [&] {
    for (const auto& frame : lowered.frames) json.value(frame);
  });
  json.end_object();
}

/// run: of the picture, with its lowered graph; may be null.
void write_view(JsonWriter& json, const std::string& title, const Picture& picture,
                const RecordedRun* run = nullptr, const LoweredPicture* lowered = nullptr) {
  json.begin_object();
  json.member("title", title);
  json.key("nodes");
  json.begin_array();
  for (const PictureNode& node : picture.nodes) write(json, node);
  json.end_array();
  json.key("edges");
  json.begin_array();
  for (const PictureEdge& edge : picture.edges) write(json, edge);
  json.end_array();
  json.member("nanoseconds", picture.nanoseconds);
  if (run) {
    json.key("run");
    write(json, *run, *lowered);
  }
  json.end_object();
}

/// Writes a view of the graph's plan, and a view of its recorded run, if they exist. of: the
/// title's suffix.
void write_views(JsonWriter& json, const Graph& graph, const RecordedRun* run,
                 const std::string& of) {
  const Planned planned = planned_graph(graph);
  if (planned.graph) write_view(json, "Plan" + of, picture_of(*planned.graph, planned.profile));
  if (!run) return;
  const LoweredPicture lowered = picture_of(*run);
  write_view(json, "Dataflow" + of, lowered.picture, run, &lowered);
}

/// Replaces bytes that are not UTF-8 by U+FFFD, as pages do: names may have any bytes.
std::string as_utf8(const std::string& text) {
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Char next = utf8_at(text, at);
    result += next.is_valid ? std::string_view(text).substr(at, next.bytes) : "\xef\xbf\xbd";
    at += next.bytes;
  }
  return result;
}

}  // namespace

std::string Graph::to_dot() const { return as_utf8(dot_of(picture_of(*this))); }

void write_html(const Graph& graph, const RecordedRun* run, const std::string& path) {
  JsonWriter json;
  json.begin_object();
  json.member("name", graph.name);
  json.key("views");
  json.begin_array();
  write_view(json, "Graph", picture_of(graph));
  write_views(json, graph, run, "");
  bool has_run = run;
  for (const auto& [of, part] : graphs_under_tapes(graph)) {
    const auto last = last_recorded_run(*part);
    has_run = has_run || last;
    write_views(json, *part, last.get(), of);
  }
  if (!has_run && has_control_flow(graph)) {
    const GraphRef copy(new Graph(graph));  // lowered graphs hold the graphs they are made of
    write_view(json, "Dataflow", picture_of(lower(copy)).picture);
  }
  json.end_array();
  json.end_object();
  write_page(path, json.take(), "write_html");
}

void Graph::write_html(const std::string& path) const {
  reel::write_html(*this, last_recorded_run(*this).get(), path);
}

}  // namespace reel
