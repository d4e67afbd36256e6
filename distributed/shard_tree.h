// distributed/shard_tree.h — the fixed binary tree in which the values of shards are added.
#pragma once

#include <utility>
#include <vector>

namespace reel {

/// Numbers begin, begin + 1, ... end - 1 of shards.
struct ShardRange {
  int begin = 0, end = 0;
  int size() const { return end - begin; }
  bool operator==(const ShardRange&) const = default;
};

/// Returns the shards of one rank: consecutive ones, whose numbers differ by at most one between
/// ranks.
ShardRange shards_of_rank(int shards, int rank, int ranks);

/// Returns the range's halves. The tree has its inner nodes where ranges are halved, from that of
/// all shards on, so it depends on the number of shards alone.
std::pair<ShardRange, ShardRange> halves(ShardRange range);

/// Returns the largest nodes of the tree whose shards are all in `own`, from left to right. A rank
/// can sum each of these alone. If ranks divide the shards and both are powers of two, it is one.
std::vector<ShardRange> nodes_within(int shards, ShardRange own);

}  // namespace reel
