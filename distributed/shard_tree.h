// distributed/shard_tree.h — the fixed binary tree in which the values of shards are added.
#pragma once

#include <utility>
#include <vector>

#include "reel/core/base/visibility.h"

REEL_API_BEGIN
namespace reel {

/// Numbers begin, begin + 1, ... end - 1 of shards.
struct ShardRange {
  int begin = 0, end = 0;
  int size() const { return end - begin; }
  bool operator==(const ShardRange&) const = default;
};

/// Returns the shards of one rank: consecutive shards. Ranks have equal
/// numbers of shards, or numbers that differ by one.
ShardRange shards_of_rank(int shards, int rank, int ranks);

/// Returns the range's halves. The tree has its inner nodes where ranges are halved, beginning with
/// all shards, so it depends on the number of shards alone.
std::pair<ShardRange, ShardRange> halves(ShardRange range);

/// Returns the largest nodes of the tree inside of `own`, from left to right. A rank
/// sums each node alone. There is one node if ranks and shards are powers of two.
std::vector<ShardRange> nodes_within(int shards, ShardRange own);

}  // namespace reel
REEL_API_END
