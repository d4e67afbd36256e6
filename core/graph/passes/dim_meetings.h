// core/graph/passes/dim_meetings.h — DimMeetings: which dims are together in the type of a value.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "reel/core/graph/graph.h"

namespace reel {

/// The dims of a graph by the types that have them, for questions about pairs of dims. Requires
/// that the graph does not change. Dims are compared as objects.
class DimMeetings {
 public:
  explicit DimMeetings(const Graph& graph) : graph_(&graph) {}

  /// Returns true if a value of the graph, or of a body, branch or function in it, has both dims.
  bool meet(const Dim& a, const Dim& b);

 private:
  /// A dim without its reference count: the node, or the size of a plain dim.
  using Key = std::pair<const DimNode*, std::int64_t>;
  struct HashOfKey {
    std::size_t operator()(const Key& key) const {
      return std::hash<const void*>{}(key.first) ^ std::hash<std::int64_t>{}(key.second);
    }
  };
  /// By dim of a body, branch or function: the dim of the outermost graph that it stands for; a key
  /// without node and size if none does.
  using Names = std::unordered_map<Key, Key, HashOfKey>;

  static Key key_of(const Dim& dim);
  static Names names_inside(const SubGraph& sub, const Names& around);
  void read(const Graph& graph, const Names& names);

  const Graph* graph_;
  bool is_read_ = false;
  std::uint32_t count_ = 0;  ///< of types that were read
  std::unordered_map<Key, std::vector<std::uint32_t>, HashOfKey> types_;  ///< ascending, by dim
};

}  // namespace reel
