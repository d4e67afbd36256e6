// trace/passes/pointwise_groups.h — PointwiseGroups, which records fuse_pointwise makes one.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "reel/core/graph.h"

namespace reel {

/// Records of a graph that go together: of one size, each reading what another gives, or elements
/// that another reads, too; nothing else between them. A group is known by one of its records, its
/// head; a record that is in no group is its own.
class PointwiseGroups {
 public:
  explicit PointwiseGroups(const Graph& graph);
  ~PointwiseGroups();

  std::size_t head(std::size_t record) const;
  /// The records of a group stay apart if nothing is saved by it.
  bool is_fused(std::size_t head) const;
  /// Of a group, in their order.
  const std::vector<std::size_t>& records(std::size_t head) const;
  /// Whether some record of the one group must be done behind all of the other.
  bool needs(std::size_t head, std::size_t other) const;

 private:
  class Grouping;
  std::unique_ptr<const Grouping> grouping_;
};

}  // namespace reel
