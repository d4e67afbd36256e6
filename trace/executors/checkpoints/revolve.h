// trace/executors/checkpoints/revolve.h — Revolve: which iterations are run again in a reverse
// sweep.
#pragma once

#include <cstdint>
#include <vector>

namespace reel {

/// Plans the reverse sweep over the iterations behind a checkpoint. It visits one leaf (iterations
/// recomputed together) after the other, the last one first. Few slots for further checkpoints mean
/// that iterations are run several times. If all slots are used, the number of runs is minimal.
///
/// Let s be the number of slots, including the first checkpoint, and l the number of leaves. Let r
/// be the least number with C(s + r, s) >= l. Then r·l - C(s + r, r - 1) leaves are run only to
/// reach later ones.
/// Source: Griewank & Walther (2000), "Algorithm 799: revolve".
class Revolve {
 public:
  /// begin: the iteration behind the checkpoint. leaf: iterations of a leaf. slots: number of
  /// checkpoints in memory, including this one.
  Revolve(std::int64_t begin, std::int64_t leaf, std::int64_t slots)
      : leaf_(leaf), slots_(slots), kept_{begin} {}

  /// Iterations [from, to) that are run to reach later ones. keeps: a checkpoint is taken behind
  /// them.
  struct Advance {
    std::int64_t from, to;
    bool keeps;
  };
  /// Returns the runs that are needed before the leaf that ends at `end`. The leaf begins where the
  /// last run ends or, without runs, at the last checkpoint. Drops checkpoints that are not before
  /// `end`: checkpoints() tells how many are left before the first run.
  ///
  /// Requires: `end` is behind `begin`, and calls come with decreasing `end`.
  std::vector<Advance> way_to(std::int64_t end);
  std::size_t checkpoints() const { return kept_.size(); }
  std::int64_t last_checkpoint() const { return kept_.back(); }

  /// Returns how many of `leaves` leaves to run before the next checkpoint.
  ///
  /// slots: at least 2, including the checkpoint that the leaves lie behind.
  static std::int64_t split(std::int64_t leaves, std::int64_t slots);

 private:
  std::int64_t leaf_, slots_;
  std::vector<std::int64_t> kept_;  ///< the iteration behind each checkpoint
};

}  // namespace reel
