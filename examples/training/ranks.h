// examples/training/ranks.h — Ranks: the processes of a training that mpirun started.
#pragma once

#include <memory>
#include <streambuf>

#include "options.h"

#ifdef REEL_HAS_DISTRIBUTED
#include <reel/distributed.h>
#endif

/// The ranks of this program. Only the first one prints and writes files. In a build without
/// reel::distributed there is one.
class Ranks {
 public:
  /// shards: of a batch. Adapts the options to this rank.
  Ranks(int shards, TrainingOptions& options);
  ~Ranks();
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

#ifdef REEL_HAS_DISTRIBUTED
  const reel::World& world() const { return world_; }
#endif

 private:
  class Nowhere : public std::streambuf {
    int overflow(int c) override { return c; }
  };

#ifdef REEL_HAS_DISTRIBUTED
  reel::World world_;
#endif
  Nowhere nowhere_;
  std::streambuf* output_ = nullptr;  ///< of std::cout, if it prints nowhere now
};
