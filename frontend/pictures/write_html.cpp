#include "reel/frontend/pictures/write_html.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "reel/autodiff/reverse_call.h"
#include "reel/core/str.h"
#include "reel/frontend/pictures/lowered_picture.h"
#include "reel/frontend/pictures/page.h"
#include "reel/frontend/pictures/picture.h"
#include "reel/trace/executors/dataflow/run_dataflow.h"
#include "reel/trace/executors/dataflow/run_recorder.h"
#include "reel/trace/executors/plan/run_plan.h"

namespace reel {
namespace {

using nlohmann::json;

json json_of(const PictureNode& node) {
  json result{{"kind", name_of(node.kind)}, {"label", node.label}};
  if (node.parent >= 0) result["parent"] = node.parent;
  if (node.role != PictureNode::Role::plain) result["role"] = name_of(node.role);
  if (!node.note.empty()) result["note"] = node.note;
  if (!node.types.empty()) result["types"] = node.types;
  if (!node.attributes.empty()) {
    json& attributes = result["attributes"] = json::array();
    for (const auto& [name, value] : node.attributes) attributes.push_back({name, value});
  }
  if (!node.source.empty()) result["source"] = node.source;
  if (node.count)
    result["count"] = {{"calls", node.count->calls}, {"nanoseconds", node.count->nanoseconds}};
  return result;
}

json json_of(const PictureEdge& edge) {
  json result{{"from", edge.from}, {"output", edge.output}, {"to", edge.to}, {"input", edge.input}};
  if (edge.box >= 0) result["box"] = edge.box;
  if (edge.kind != PictureEdge::Kind::data) result["kind"] = name_of(edge.kind);
  return result;
}

json json_of(const std::string& title, const Picture& picture) {
  json nodes = json::array(), edges = json::array();
  for (const PictureNode& node : picture.nodes) nodes.push_back(json_of(node));
  for (const PictureEdge& edge : picture.edges) edges.push_back(json_of(edge));
  return {{"title", title},
          {"nodes", std::move(nodes)},
          {"edges", std::move(edges)},
          {"nanoseconds", picture.nanoseconds}};
}

/// Returns a run in the format of tokens.js. A long run is shortened to its first and last
/// activations, with a null between them.
json json_of(const RecordedRun& whole, const LoweredPicture& lowered) {
  constexpr std::size_t kEach = 10'000;
  const RecordedRun run = shortened(whole, {.first = kEach, .last = kEach});
  json instances = json::array(), activations = json::array(), iterations = json::array();
  for (const FrameInstance& instance : run.instances)
    instances.push_back({instance.frame, instance.parent, instance.parent_iteration});
  const auto activation = [&](const Activation& at) {
    return json{lowered.nodes[static_cast<std::size_t>(at.node)],
                at.instance,
                at.iteration,
                at.is_dead ? 1 : 0,
                at.taken,
                at.has_failed ? 1 : 0};
  };
  std::vector<ActivationCount> between = activation_counts(run);
  for (std::size_t i = 0; i < run.activations.size(); ++i) {
    if (run.gap.left_out && i == run.gap.activations) activations.push_back(nullptr);
    const Activation& at = run.activations[i];
    activations.push_back(activation(at));
    ActivationCount& count = between[static_cast<std::size_t>(at.node)];
    if (!at.has_failed) --(at.is_dead ? count.dead : count.live);
  }
  json counts = json::array();
  if (run.gap.left_out)
    for (std::size_t i = 0; i < between.size(); ++i)
      if (const auto& [live, dead] = between[i]; live || dead)
        counts.push_back({lowered.nodes[i], live, dead});
  for (std::size_t i = 0; i < run.iterations.size(); ++i) {
    const IterationEvent& event = run.iterations[i];
    const bool is_behind_gap = run.gap.left_out && i >= run.gap.iterations;
    iterations.push_back({event.instance, event.iteration, event.begins ? 1 : 0,
                          event.after + (is_behind_gap ? 1 : 0)});
  }
  json failure;
  if (run.failure) {
    failure["message"] = run.failure->message;
    failure["after"] = run.failure->after;
    if (run.failure->at) failure["at"] = activation(*run.failure->at);
  }
  json kinds = json::object(), enters = json::object();
  for (std::size_t i = 0; i < run.graph->nodes.size(); ++i) {
    const LoweredNode& node = run.graph->nodes[i];
    kinds[name_of(node.kind)].push_back(lowered.nodes[i]);
    if (node.kind == LoweredKind::enter) enters[str(lowered.nodes[i])] = node.enters;
  }
  return {{"instances", std::move(instances)},
          {"activations", std::move(activations)},
          {"leftOut", run.gap.left_out},
          {"leftOutCounts", std::move(counts)},
          {"iterations", std::move(iterations)},
          {"failure", std::move(failure)},
          {"kinds", std::move(kinds)},
          {"enters", std::move(enters)},
          {"frames", lowered.frames}};
}

/// Adds a view for the graph's plan and for its recorded run, if they exist. of: the title's
/// suffix.
void add_views(json& views, const Graph& graph, const RecordedRun* run, const std::string& of) {
  const Planned planned = planned_graph(graph);
  if (planned.graph)
    views.push_back(json_of("Plan" + of, picture_of(*planned.graph, planned.profile)));
  if (!run) return;
  const LoweredPicture lowered = picture_of(*run);
  views.push_back(json_of("Dataflow" + of, lowered.picture));
  views.back()["run"] = json_of(*run, lowered);
}

/// Replaces bytes that are not UTF-8 by U+FFFD, as pages do: names may have any bytes.
std::string as_utf8(const std::string& text) {
  return json::parse(json(text).dump(-1, ' ', false, json::error_handler_t::replace))
      .get<std::string>();
}

}  // namespace

std::string Graph::to_dot() const { return as_utf8(dot_of(picture_of(*this))); }

void write_html(const Graph& graph, const RecordedRun* run, const std::string& path) {
  json views{json_of("Graph", picture_of(graph))};
  add_views(views, graph, run, "");
  bool has_run = run;
  for (const auto& [of, part] : graphs_under_tapes(graph)) {
    const auto last = last_recorded_run(*part);
    has_run = has_run || last;
    add_views(views, *part, last.get(), of);
  }
  if (!has_run && has_control_flow(graph)) {
    const GraphRef copy(new Graph(graph));  // lowered graphs hold the graphs they are made of
    views.push_back(json_of("Dataflow", picture_of(lower(copy)).picture));
  }
  write_page(path,
             json{{"name", graph.name}, {"views", std::move(views)}}.dump(
                 -1, ' ', false, json::error_handler_t::replace),
             "write_html");
}

void Graph::write_html(const std::string& path) const {
  reel::write_html(*this, last_recorded_run(*this).get(), path);
}

}  // namespace reel
