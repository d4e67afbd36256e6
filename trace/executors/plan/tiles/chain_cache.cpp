#include "reel/trace/executors/plan/tiles/chain_cache.h"

#include <iterator>
#include <utility>

namespace reel {
namespace {

std::int64_t bytes_of(const std::string& key, const std::vector<TileStep>& steps) {
  std::size_t bytes = key.size();
  for (const TileStep& step : steps) {
    bytes += sizeof(TileStep) + (step.in.size() + step.out.size()) * sizeof(int);
    if (step.code) bytes += step.code->bytes();
  }
  return static_cast<std::int64_t>(bytes);
}

}  // namespace

std::optional<std::vector<TileStep>> ChainCache::find(std::string_view key) {
  const std::lock_guard lock(mutex_);
  const auto found = by_key_.find(key);
  if (found == by_key_.end()) return std::nullopt;
  entries_.splice(entries_.begin(), entries_, found->second);
  return found->second->steps;
}

void ChainCache::insert(std::string key, const std::vector<TileStep>& steps) {
  const auto bytes = bytes_of(key, steps) + static_cast<std::int64_t>(sizeof(Entry));
  if (bytes > max_bytes_) return;
  Entries made;  // allocated, and freed, outside of the lock
  made.push_back({std::move(key), steps, bytes});
  Entries dropped;
  const std::lock_guard lock(mutex_);
  if (by_key_.count(made.front().key)) return;  // another thread was faster
  by_key_.emplace(made.front().key, made.begin());
  entries_.splice(entries_.begin(), made);
  bytes_ += bytes;
  while (bytes_ > max_bytes_) {
    bytes_ -= entries_.back().bytes;
    by_key_.erase(entries_.back().key);
    dropped.splice(dropped.begin(), entries_, std::prev(entries_.end()));
  }
}

std::int64_t ChainCache::bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

ChainCache& chain_cache() {
  // A fused op of a model takes some 10 KiB, most of it code. Destructors of global objects may
  // still run plans.
  static ChainCache& cache = *new ChainCache(std::int64_t{16} << 20);
  return cache;
}

}  // namespace reel
