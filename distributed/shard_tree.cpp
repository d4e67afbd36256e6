#include "reel/distributed/shard_tree.h"

namespace reel {

ShardRange shards_of_rank(int shards, int rank, int ranks) {
  const auto begin = [&](int r) {
    return static_cast<int>(static_cast<long long>(r) * shards / ranks);
  };
  return {begin(rank), begin(rank + 1)};
}

std::pair<ShardRange, ShardRange> halves(ShardRange range) {
  const int middle = range.begin + range.size() / 2;
  return {{range.begin, middle}, {middle, range.end}};
}

namespace {
void add_nodes(ShardRange node, ShardRange own, std::vector<ShardRange>& nodes) {
  if (node.end <= own.begin || own.end <= node.begin) return;
  if (own.begin <= node.begin && node.end <= own.end) {
    nodes.push_back(node);
    return;
  }
  const auto [left, right] = halves(node);
  add_nodes(left, own, nodes);
  add_nodes(right, own, nodes);
}
}  // namespace

std::vector<ShardRange> nodes_within(int shards, ShardRange own) {
  std::vector<ShardRange> nodes;
  add_nodes({0, shards}, own, nodes);
  return nodes;
}

}  // namespace reel
