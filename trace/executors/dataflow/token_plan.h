// trace/executors/dataflow/token_plan.h — TokenPlan, a lowered graph with the tables for a run.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "reel/trace/executors/dataflow/lowered.h"

namespace reel {

/// Time that an op takes; long ops are left to other threads. It is the shorter of the last two
/// runs: the other run may have met cold caches, or lost its processor. Thread-safe.
class NodeCost {
 public:
  /// Returns true if the next run should be timed: the first eight, and all of ops that take long.
  bool is_measured() const { return runs_.load(std::memory_order_relaxed) < 8 || takes_long(); }
  bool is_known() const { return runs_.load(std::memory_order_relaxed) > 1; }
  bool takes_long() const { return nanoseconds_.load(std::memory_order_relaxed) > kLong; }
  void add(std::int64_t nanoseconds);

 private:
  static constexpr std::uint32_t kLong = 10'000;  ///< ns; waking a thread takes some microseconds
  std::atomic<std::uint32_t> nanoseconds_{0}, last_{0}, runs_{0};
};

/// Tables for runs of a lowered graph: the receivers of each node's outputs, and the slots of its
/// inputs. Built once per lowered graph; its runs share it, and only `costs` changes.
struct TokenPlan {
  static constexpr int kControl = -1, kResult = -1;

  /// A receiver of an output: slot `slot` of a node. Slot kControl: the node waits for the output
  /// but does not read it. Node kResult: the graph's output `slot`. The edges of a node are sorted
  /// by port, kControl first.
  struct Edge {
    int port, node, slot;
    /// From a constant Enter: the value stays in its slot in every iteration of the frame.
    bool is_held = false;
  };
  struct Node {
    const LoweredNode* is;
    int first_edge = 0, end_controls = 0, end_edge = 0;
    int first_slot = 0;          ///< of its inputs, among the slots of its frame
    int place = 0;               ///< among the nodes of its frame
    int scope = 0;               ///< among the scopes of its frame; -1: of the frame around
    bool resolves = false;       ///< its attributes mention symbols
    bool tells_dims = false;     ///< an output binds symbols, or has known dims
    bool is_forwarding = false;  ///< passes on tokens without computing
    bool is_loop_merge = false;  ///< its first input is an Enter
    bool has_held = false;       ///< some inputs stay in their slots
    bool is_replayed = false;    ///< of a constant Enter: some of its edges are not held
  };
  struct Frame {
    int slots = 0, enters = 0, scopes = 0;
    bool has_dims = false;                      ///< some scopes look up dims by their symbols
    std::vector<int> nodes;                     ///< by place
    std::vector<std::uint32_t> waits;           ///< by place, the number of inputs and controls
    std::vector<std::uint32_t> waits_but_held;  ///< the same, without held ones
    std::vector<int> held_ready;                ///< nodes that wait only for held inputs
    std::vector<std::uint8_t> is_held;          ///< by slot
    bool has_replayed = false;                  ///< some constants are sent anew in each iteration
    int child = -1;                             ///< among the inner frames of the frame around
    int children = 0;
    int first_node = 0;  ///< its place in the order of the frame around's nodes
    int begin = -1;      ///< the Enter of its loop's `begin` handle; -1: none
  };

  explicit TokenPlan(LoweredGraph lowered);

  /// Returns the index of an output's first edge.
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
