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

/// Fills the tables of a plan whose nodes and frames have their defaults.
class TokenTables {
 public:
  explicit TokenTables(TokenPlan& plan)
      : plan_(plan), graph_(*plan.graph), goes_to_(plan.nodes.size()) {
    for (const LoweredScope& scope : graph_.scopes)
      scope_places_.push_back(frame_at(scope.frame).scopes++);
  }

  void fill() {
    for (std::size_t i = 0; i < plan_.nodes.size(); ++i) add_node(static_cast<int>(i));
    for (std::size_t k = 0; k < graph_.outputs.size(); ++k)
      edges_from(graph_.outputs[k].node)
          .push_back({graph_.outputs[k].port, TokenPlan::kResult, static_cast<int>(k)});
    for (std::size_t i = 0; i < plan_.nodes.size(); ++i) list_edges(plan_.nodes[i], goes_to_[i]);
    for (std::size_t f = 1; f < plan_.frames.size(); ++f)
      plan_.frames[f].child = frame_at(graph_.frames[f].parent).children++;
  }

 private:
  using Node = TokenPlan::Node;
  using Edge = TokenPlan::Edge;
  using Frame = TokenPlan::Frame;
  const LoweredNode& source_at(int node) const {
    return graph_.nodes[static_cast<std::size_t>(node)];
  }
  Frame& frame_at(int frame) const { return plan_.frames[static_cast<std::size_t>(frame)]; }
  std::vector<Edge>& edges_from(int node) { return goes_to_[static_cast<std::size_t>(node)]; }

  void add_node(int at) {
    Node& node = plan_.nodes[static_cast<std::size_t>(at)];
    node.is = &source_at(at);
    Frame& frame = frame_at(node.is->frame);
    take_place(node, at, frame);
    describe(node, frame);
    for (std::size_t k = 0; k < node.is->inputs.size(); ++k)
      add_edge(node, at, frame, node.is->inputs[k].node, node.is->inputs[k].port,
               static_cast<int>(k));
    for (const int control : node.is->controls)
      add_edge(node, at, frame, control, TokenPlan::kControl, TokenPlan::kControl);
    if (frame.waits.back() && !frame.waits_but_held.back()) frame.held_ready.push_back(at);
    if (node.is->kind == LoweredKind::enter) add_enter(node, at);
    if (node.is->frame == 0 && frame.waits.back() == 0 && node.is->role != LoweredRole::input)
      plan_.first_ready.push_back(at);
  }

  /// Gives a node its place and slots in its frame, which waits for all of its inputs.
  void take_place(Node& node, int at, Frame& frame) const {
    node.place = static_cast<int>(frame.nodes.size());
    frame.nodes.push_back(at);
    frame.waits.push_back(
        static_cast<std::uint32_t>(node.is->inputs.size() + node.is->controls.size()));
    frame.waits_but_held.push_back(frame.waits.back());
    node.first_slot = frame.slots;
    frame.slots += static_cast<int>(node.is->inputs.size());
    frame.is_held.resize(static_cast<std::size_t>(frame.slots));
    const auto scope = static_cast<std::size_t>(node.is->scope);
    node.scope = graph_.scopes[scope].frame == node.is->frame ? scope_places_[scope] : -1;
  }

  /// Sets the properties of a node that do not depend on its edges.
  void describe(Node& node, Frame& frame) const {
    if (node.is->attrs) node.is->attrs->each_symbol([&](const Dim&) { node.resolves = true; });
    for (const LoweredOutput& output : node.is->outputs)
      node.tells_dims = node.tells_dims || output.binds || output.has_known_dims;
    frame.has_dims = frame.has_dims || node.resolves || node.tells_dims ||
                     (node.is->kind == LoweredKind::op && node.is->role == LoweredRole::open);
    node.is_forwarding = node.is->kind != LoweredKind::op || node.is->role == LoweredRole::input ||
                         (node.is->role == LoweredRole::identity && !node.tells_dims);
    node.is_loop_merge = node.is->kind == LoweredKind::merge &&
                         source_at(node.is->inputs[0].node).kind == LoweredKind::enter;
  }

  /// Adds an edge from port `port` of the node `from` to slot `slot` of `node`.
  void add_edge(Node& node, int at, Frame& frame, int from, int port, int slot) {
    const LoweredNode& source = source_at(from);
    const bool is_held = source.is_constant && can_hold(*node.is);
    edges_from(from).push_back({port, at, slot, is_held});
    if (source.is_constant && !is_held)
      plan_.nodes[static_cast<std::size_t>(from)].is_replayed = frame.has_replayed = true;
    if (!is_held) return;
    --frame.waits_but_held.back();
    if (slot == TokenPlan::kControl) return;
    node.has_held = true;
    frame.is_held[static_cast<std::size_t>(node.first_slot + slot)] = 1;
  }

  void add_enter(const Node& node, int at) const {
    Frame& entered = frame_at(node.is->enters);
    if (!entered.enters++) entered.first_node = node.place;
    const LoweredNode& from = source_at(node.is->inputs[0].node);
    if (node.is->is_constant && from.role == LoweredRole::begin && from.kind == LoweredKind::op &&
        node.is->inputs[0].port == 0)
      entered.begin = at;
  }

  /// Appends the edges of a node to the edges of the plan, sorted by port.
  void list_edges(Node& node, std::vector<Edge>& of_node) const {
    std::stable_sort(of_node.begin(), of_node.end(),
                     [](const Edge& a, const Edge& b) { return a.port < b.port; });
    node.first_edge = static_cast<int>(plan_.edges.size());
    plan_.edges.insert(plan_.edges.end(), of_node.begin(), of_node.end());
    const auto is_control = [](const Edge& edge) { return edge.port == TokenPlan::kControl; };
    node.end_controls = node.first_edge +
                        static_cast<int>(std::count_if(of_node.begin(), of_node.end(), is_control));
    node.end_edge = static_cast<int>(plan_.edges.size());
  }

  TokenPlan& plan_;
  const LoweredGraph& graph_;
  std::vector<int> scope_places_;           ///< by scope: its place in its frame
  std::vector<std::vector<Edge>> goes_to_;  ///< by node
};

}  // namespace

TokenPlan::TokenPlan(LoweredGraph lowered)
    : graph(std::make_shared<const LoweredGraph>(std::move(lowered))),
      nodes(graph->nodes.size()),
      frames(graph->frames.size()),
      costs(graph->nodes.size()) {
  TokenTables(*this).fill();
}

}  // namespace reel
