// trace/executors/revolve.h — Revolve, which steps are run again to go back over all of them.
#pragma once

#include <cstdint>
#include <vector>

namespace reel {

/// Goes back over the steps behind a checkpoint, a leaf (a run of steps that are run again, and
/// saved) at a time, the last one first. Few slots for more checkpoints mean that steps are run
/// several times; where those are taken, the least possible number of them is.
///
/// With s slots, that of the checkpoint itself included, and l leaves, r the least number for which
/// C(s + r, s) >= l, there are r·l - C(s + r, r - 1) leaves that are run to come to another one.
/// Source: Griewank & Walther (2000), "Algorithm 799: revolve".
class Revolve {
 public:
  /// begin: the step behind the checkpoint; leaf: how many steps one has; slots: for checkpoints,
  /// that one included.
  Revolve(std::int64_t begin, std::int64_t leaf, std::int64_t slots)
      : leaf_(leaf), slots_(slots), kept_{begin} {}

  /// A run of steps to come to others; keeps: a checkpoint is taken behind it.
  struct Advance {
    std::int64_t from, to;
    bool keeps;
  };
  /// What is to be run before the leaf that ends at `end`, which begins where the last of them
  /// ends, or at the last checkpoint. Ends fall, and lie behind `begin`. Checkpoints that are not
  /// before `end` are dropped: as many are left as checkpoints() says, before the first advance.
  std::vector<Advance> way_to(std::int64_t end);
  std::size_t checkpoints() const { return kept_.size(); }
  std::int64_t last_checkpoint() const { return kept_.back(); }

  /// How many leaves to go before the next checkpoint, of `leaves`, with so many slots: at least 2,
  /// that of the checkpoint that they lie behind included.
  static std::int64_t split(std::int64_t leaves, std::int64_t slots);

 private:
  std::int64_t leaf_, slots_;
  std::vector<std::int64_t> kept_;  ///< the step behind each checkpoint
};

}  // namespace reel
