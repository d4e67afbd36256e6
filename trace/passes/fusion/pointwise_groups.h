// trace/passes/fusion/pointwise_groups.h — PointwiseGroups, the groups that fuse_pointwise fuses.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "reel/core/graph/graph.h"

namespace reel {

/// Groups of records that can run as one op: they walk over elements of one size, each reads a
/// result or an operand of another, and no other record stands between them. One record of a group,
/// its head, identifies it; an ungrouped record is its own head.
class PointwiseGroups {
 public:
  explicit PointwiseGroups(const Graph& graph);
  ~PointwiseGroups();

  std::size_t head(std::size_t record) const;
  /// Returns false if fusing the group saves nothing; its records then stay separate.
  bool is_fused(std::size_t head) const;
  /// Returns the records of a group in their order. Requires that `head` has a group.
  const std::vector<std::size_t>& records(std::size_t head) const;
  /// Returns true if some record of the first group must run behind all of the other.
  bool needs(std::size_t head, std::size_t other) const;

 private:
  class Grouping;
  std::unique_ptr<const Grouping> grouping_;
};

}  // namespace reel
