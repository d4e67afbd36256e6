// core/passes.h — Passes, which of the plan's passes over a graph are made.
#pragma once

namespace reel {

/// The passes that a plan adds to those that every graph goes through. Each can be left out, to see
/// what it buys, or to find out which one is to blame.
struct Passes {
  bool simplify = true;          ///< behind the others, again: unread ops go, equal ones are one
  bool hoist_invariants = true;  ///< what is the same in every step leaves the loop
  bool multiply_tables = true;   ///< a table is, instead of the rows that a loop takes from it
  bool batch_over_time = true;   ///< what need not wait for a loop's steps is done for all at once
  // The next three with batch_over_time only; the last of them with chunk_loops only.
  bool split_loops = true;  ///< layers that one loop runs together are taken apart
  bool chunk_loops = true;  ///< loops run some steps at a time, so that what they make stays cached
  bool adjoin_loops = true;    ///< such loops run beside each other, the next layer a chunk behind
  bool pack_weights = true;    ///< matrices that a loop captures are put in order for products
  bool fuse_pointwise = true;  ///< element-wise ops and sums over rows are done tile by tile
  bool cut_rows = true;        ///< loops run some rows of the batch at a time, several at once
  bool shrink_batch = true;    ///< so do those whose entries end one by one, without ended ones
  bool reuse_memory = true;    ///< values lie where others were that nobody needs any more
  /// Numbers below the least normal one (1.2e-38 of f32) count as zero: a processor takes some 150
  /// cycles for each, and cotangents of long sequences become so small.
  bool flush_denormals = true;
  /// Of a chunk of steps; 0: as many as the second cache holds. Sums are taken in another order.
  int chunk_steps = 0;
  // For tests, whose tensors are small: what is else done where there is enough to do.
  int block_rows = 0;  ///< rows of a block, however little they do; 0: as many as are worth it
  bool multiply_any = false;  ///< tables are multiplied from which few rows are taken, too
  bool pack_small = false;    ///< matrices are packed that are read as fast as they are, too

  bool operator==(const Passes&) const = default;
};

}  // namespace reel
