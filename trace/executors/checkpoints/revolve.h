// trace/executors/checkpoints/revolve.h — Revolve: which iterations are run again in a reverse
// sweep.
#pragma once

#include <cstdint>
#include <vector>

namespace reel {

/// Plans the reverse sweep over the iterations behind a checkpoint. A window is the iterations that
/// are recomputed together: the leaf of Algorithm 799. The sweep visits the last window first. Few
/// slots for further checkpoints mean that iterations are run several times. If all slots are used,
/// the number of runs is minimal.
///
/// Let s be the number of slots, including the first checkpoint, and w the number of windows. Let r
/// be the least number with C(s + r, s) >= w. Then r·w - C(s + r, r - 1) windows are run only to
/// reach later ones.
/// Source: Griewank & Walther (2000), "Algorithm 799: revolve".
class Revolve {
 public:
  /// begin: the iteration behind the checkpoint. window: the number of its iterations. slots:
  /// number of checkpoints in memory, including this one.
  Revolve(std::int64_t begin, std::int64_t window, std::int64_t slots)
      : window_(window), slots_(slots), checkpoints_{begin} {}

  /// Iterations [from, to) that are run to reach later ones, and whether a checkpoint is taken
  /// behind them.
  struct Advance {
    std::int64_t from, to;
    bool takes_checkpoint;
  };
  /// Returns the runs that are needed before the window that ends at `end`. The window begins where
  /// the last run ends or, without runs, at the last checkpoint. Drops checkpoints that are not
  /// before `end`. Afterwards checkpoints() counts those that are left, and the new ones.
  ///
  /// Requires: `end` is behind `begin`, and calls come with decreasing `end`.
  std::vector<Advance> advances_to(std::int64_t end);
  std::size_t checkpoints() const { return checkpoints_.size(); }
  std::int64_t last_checkpoint() const { return checkpoints_.back(); }

  /// Returns how many of these windows to run before the next checkpoint.
  ///
  /// slots: at least 2, including the checkpoint before the windows.
  static std::int64_t split(std::int64_t windows, std::int64_t slots);

 private:
  std::int64_t window_, slots_;
  std::vector<std::int64_t> checkpoints_;  ///< the iteration behind each checkpoint
};

}  // namespace reel
