#include "reel/trace/executors/dataflow/token_plan.h"

#include <algorithm>

namespace reel {

void NodeCost::add(std::int64_t nanoseconds) {
  const auto now = static_cast<std::uint32_t>(std::min<std::int64_t>(nanoseconds, 1'000'000'000));
  nanoseconds_.store(std::min(now, last_.exchange(now, std::memory_order_relaxed)),
                     std::memory_order_relaxed);
  runs_.fetch_add(1, std::memory_order_relaxed);
}

namespace {

/// Returns true if a value from a constant Enter can stay in the node's slot for all iterations.
/// Not for a Merge, which fires on any one input, nor for nodes that move from their inputs.
bool can_hold(const LoweredNode& node) {
  return node.kind != LoweredKind::merge && node.role != LoweredRole::put &&
         node.role != LoweredRole::add_term;
}

}  // namespace

TokenPlan::TokenPlan(LoweredGraph lowered)
    : graph(std::make_shared<const LoweredGraph>(std::move(lowered))),
      nodes(graph->nodes.size()),
      frames(graph->frames.size()),
      costs(graph->nodes.size()) {
  std::vector<int> scope_places;
  for (const LoweredScope& scope : graph->scopes)
    scope_places.push_back(frames[static_cast<std::size_t>(scope.frame)].scopes++);
  std::vector<std::vector<Edge>> goes_to(nodes.size());
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    Node& node = nodes[i];
    const int at = static_cast<int>(i);
    node.is = &graph->nodes[i];
    Frame& frame = frames[static_cast<std::size_t>(node.is->frame)];
    const bool is_merge = node.is->kind == LoweredKind::merge;
    node.place = static_cast<int>(frame.nodes.size());
    frame.nodes.push_back(at);
    frame.waits.push_back(
        static_cast<std::uint32_t>(node.is->inputs.size() + node.is->controls.size()));
    node.first_slot = frame.slots;
    frame.slots += static_cast<int>(node.is->inputs.size());
    const LoweredScope& scope = graph->scopes[static_cast<std::size_t>(node.is->scope)];
    node.scope =
        scope.frame == node.is->frame ? scope_places[static_cast<std::size_t>(node.is->scope)] : -1;
    if (node.is->attrs) node.is->attrs->each_symbol([&](const Dim&) { node.resolves = true; });
    for (const LoweredOutput& output : node.is->outputs)
      node.tells_dims = node.tells_dims || output.binds || output.has_known_dims;
    frame.has_dims = frame.has_dims || node.resolves || node.tells_dims ||
                     (node.is->kind == LoweredKind::op && node.is->role == LoweredRole::open);
    node.is_forwarding = node.is->kind != LoweredKind::op || node.is->role == LoweredRole::input ||
                         (node.is->role == LoweredRole::identity && !node.tells_dims);
    node.is_loop_merge =
        is_merge &&
        graph->nodes[static_cast<std::size_t>(node.is->inputs[0].node)].kind == LoweredKind::enter;
    frame.waits_but_held.push_back(frame.waits.back());
    frame.is_held.resize(static_cast<std::size_t>(frame.slots));
    const auto add_edge = [&](int from, int port, int slot) {
      const LoweredNode& source = graph->nodes[static_cast<std::size_t>(from)];
      const bool is_held = source.is_constant && can_hold(*node.is);
      goes_to[static_cast<std::size_t>(from)].push_back({port, at, slot, is_held});
      if (source.is_constant && !is_held)
        nodes[static_cast<std::size_t>(from)].is_replayed = frame.has_replayed = true;
      if (!is_held) return;
      --frame.waits_but_held.back();
      if (slot == kControl) return;
      node.has_held = true;
      frame.is_held[static_cast<std::size_t>(node.first_slot + slot)] = 1;
    };
    for (std::size_t k = 0; k < node.is->inputs.size(); ++k)
      add_edge(node.is->inputs[k].node, node.is->inputs[k].port, static_cast<int>(k));
    for (const int control : node.is->controls) add_edge(control, kControl, kControl);
    if (frame.waits.back() && !frame.waits_but_held.back()) frame.held_ready.push_back(at);
    if (node.is->kind == LoweredKind::enter) {
      Frame& entered = frames[static_cast<std::size_t>(node.is->enters)];
      if (!entered.enters++) entered.first_node = node.place;
      const LoweredNode& from = graph->nodes[static_cast<std::size_t>(node.is->inputs[0].node)];
      if (node.is->is_constant && from.role == LoweredRole::begin && from.kind == LoweredKind::op &&
          node.is->inputs[0].port == 0)
        entered.begin = at;
    }
    if (node.is->frame == 0 && frame.waits.back() == 0 && node.is->role != LoweredRole::input)
      first_ready.push_back(at);
  }
  for (std::size_t k = 0; k < graph->outputs.size(); ++k)
    goes_to[static_cast<std::size_t>(graph->outputs[k].node)].push_back(
        {graph->outputs[k].port, kResult, static_cast<int>(k)});
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    std::stable_sort(goes_to[i].begin(), goes_to[i].end(),
                     [](const Edge& a, const Edge& b) { return a.port < b.port; });
    nodes[i].first_edge = static_cast<int>(edges.size());
    edges.insert(edges.end(), goes_to[i].begin(), goes_to[i].end());
    const auto is_control = [](const Edge& edge) { return edge.port == kControl; };
    nodes[i].end_controls =
        nodes[i].first_edge +
        static_cast<int>(std::count_if(goes_to[i].begin(), goes_to[i].end(), is_control));
    nodes[i].end_edge = static_cast<int>(edges.size());
  }
  for (std::size_t f = 1; f < frames.size(); ++f)
    frames[f].child = frames[static_cast<std::size_t>(graph->frames[f].parent)].children++;
}

}  // namespace reel
