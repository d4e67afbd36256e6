// trace/executors/plan/tiles/chain_cache.h — ChainCache: the chains of tile programs, by structure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "reel/trace/executors/plan/tiles/tile_steps.h"

namespace reel {

/// Steps of tile programs after chains were formed, with the machine code of the chains.
///
/// A key has all that chains depend on: ops, types, which cells steps read and write, and which of
/// them repeat. It has no sizes, so that a fused op finds its chains again for a longer batch.
///
/// The least recently used entries are dropped if all together hold more than `max_bytes`; their
/// code lives on in programs that use it. Thread-safe.
class ChainCache {
 public:
  explicit ChainCache(std::int64_t max_bytes) : max_bytes_(max_bytes) {}

  /// Returns the steps of a key, if they are held.
  std::optional<std::vector<TileStep>> find(std::string_view key);
  /// Holds steps, unless they alone exceed the bound.
  void insert(std::string key, const std::vector<TileStep>& steps);
  /// Returns about how many bytes the entries hold. Code of two entries counts twice.
  std::int64_t bytes() const;

 private:
  struct Entry {
    std::string key;
    std::vector<TileStep> steps;
    std::int64_t bytes;
  };
  using Entries = std::list<Entry>;

  const std::int64_t max_bytes_;
  mutable std::mutex mutex_;
  Entries entries_;  ///< the one used last in front
  std::unordered_map<std::string_view, Entries::iterator> by_key_;
  std::int64_t bytes_ = 0;
};

/// Returns the cache of this process.
ChainCache& chain_cache();

}  // namespace reel
