// trace/executors/dataflow/token_plan.h — TokenPlan, a lowered graph as a run needs it: who gets a
// node's outputs, and where its inputs lie.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "reel/trace/executors/dataflow/lowered.h"

namespace reel {

/// What one run of an op took: those that take long are left to other threads. Of the last two runs
/// the shorter one: the other may have met cold caches, or lost its processor.
class NodeCost {
 public:
  /// Measured are the first runs, and all that take long.
  bool is_measured() const { return runs_.load(std::memory_order_relaxed) < 8 || takes_long(); }
  bool is_known() const { return runs_.load(std::memory_order_relaxed) > 1; }
  bool takes_long() const { return nanoseconds_.load(std::memory_order_relaxed) > kLong; }
  void add(std::int64_t nanoseconds);

 private:
  static constexpr std::uint32_t kLong = 10'000;  ///< a thread is called within some microseconds
  std::atomic<std::uint32_t> nanoseconds_{0}, last_{0}, runs_{0};
};

/// Made once per lowered graph, shared by its runs.
struct TokenPlan {
  static constexpr int kControl = -1, kResult = -1;

  /// Whom an output goes to: a slot of a node; kControl: only that it is there. Node kResult: the
  /// graph's output `slot`. Those of a node are sorted by port, kControl first.
  struct Edge {
    int port, node, slot;
    /// From a constant Enter: what came by it stays where it is, in every iteration of the frame.
    bool is_held = false;
  };
  struct Node {
    const LoweredNode* is;
    int first_edge = 0, end_controls = 0, end_edge = 0;
    int first_slot = 0;          ///< of its inputs, among those of its frame
    int place = 0;               ///< among the nodes of its frame
    int scope = 0;               ///< among the scopes of its frame; of the frame around: -1
    bool resolves = false;       ///< its attributes mention symbols
    bool tells_dims = false;     ///< an output binds symbols, or has known dims
    bool is_forwarding = false;  ///< hands on tokens, and computes nothing
    bool is_loop_merge = false;  ///< its first input is an Enter
    bool has_held = false;       ///< inputs that stay
    bool is_replayed = false;    ///< of a constant Enter: some of its edges are not held
  };
  struct Frame {
    int slots = 0, enters = 0, scopes = 0;
    bool has_dims = false;                      ///< some of its scopes know dims by their symbols
    std::vector<int> nodes;                     ///< by place
    std::vector<std::uint32_t> waits;           ///< by place, how many inputs and controls come
    std::vector<std::uint32_t> waits_but_held;  ///< the same, where what is held has come
    std::vector<int> held_ready;                ///< nodes that wait for nothing else
    std::vector<std::uint8_t> is_held;          ///< by slot
    bool has_replayed = false;                  ///< some of its constants are sent anew each time
    int child = -1;                             ///< among those of the frame around
    int children = 0;
    int first_node = 0;  ///< where it stands among the nodes of the frame around, in their order
    int begin = -1;      ///< the Enter of what its loop began with
  };

  explicit TokenPlan(LoweredGraph lowered);

  /// Where the edges of an output begin.
  int first_edge_of(const Node& node, int port) const {
    if (port == 0) return node.end_controls;
    const auto first = edges.begin() + node.end_controls, end = edges.begin() + node.end_edge;
    const auto at =
        std::lower_bound(first, end, port, [](const Edge& e, int of) { return e.port < of; });
    return static_cast<int>(at - edges.begin());
  }

  std::shared_ptr<const LoweredGraph> graph;
  std::vector<Node> nodes;
  std::vector<Edge> edges;
  std::vector<Frame> frames;
  std::vector<int> first_ready;  ///< nodes of frame 0 that wait for nothing
  mutable std::vector<NodeCost> costs;
};

}  // namespace reel
