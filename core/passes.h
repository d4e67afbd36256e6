// core/passes.h — Passes, which of the plan's passes over a graph are made.
#pragma once

namespace reel {

/// The passes that a plan adds to those that every graph goes through. Each can be left out, to see
/// what it buys, or to find out which one is to blame.
struct Passes {
  bool batch_over_time = true;  ///< what need not wait for a loop's steps is done for all at once
  bool chunk_loops = true;     ///< and that for some steps at a time, so that it stays in the cache
  bool pack_weights = true;    ///< matrices that a loop captures are put in order for products
  bool fuse_pointwise = true;  ///< element-wise ops that read each other are done tile by tile
  /// Of a chunk of steps; 0: as many as the second cache holds. Sums are taken in another order.
  int chunk_steps = 0;

  bool operator==(const Passes&) const = default;
};

}  // namespace reel
