// core/options/passes.h — Passes, switches for a plan's passes over a graph.
#pragma once

#include "reel/core/base/visibility.h"

REEL_API_BEGIN
namespace reel {

/// The passes that a plan runs in addition to those that every graph goes through. Each can be
/// switched off, to measure its gain or to find the cause of a defect.
struct Passes {
  bool simplify = true;  ///< simplify again behind the passes on loops; share and drop masks
  bool hoist_invariants = true;  ///< hoist loop-invariant ops
  bool multiply_tables = true;   ///< multiply whole tables, not the rows that a loop takes
  bool batch_over_time = true;   ///< hoist or sink ops, to run once for all iterations
  // The next three require batch_over_time; adjoin_loops also requires chunk_loops.
  bool split_loops = true;  ///< split layers that one loop runs into a loop each
  bool chunk_loops = true;  ///< run loops in chunks of iterations, so that values stay in the cache
  bool adjoin_loops = true;    ///< pipeline such loops: the next layer runs one chunk behind
  bool pack_weights = true;    ///< pack matrices that loops capture, for products
  bool fuse_pointwise = true;  ///< fuse element-wise ops and sums over rows, to run tile by tile
  bool cut_rows = true;        ///< run loops in row blocks of the batch, several at once
  bool shrink_batch = true;    ///< also if entries finish one by one; skip finished entries
  bool reuse_memory = true;    ///< place values in the memory of dead ones, equal states in one
  /// Flush numbers below the smallest normal one (1.2e-38 of f32) to zero. A processor takes some
  /// 150 cycles for each, and cotangents of long sequences become that small.
  bool flush_denormals = true;
  /// Iterations of a chunk; 0: as many as fit into the L2 cache. Changes the order of sums.
  int chunk_steps = 0;
  // For tests, because their tensors are small: apply passes even if they do not pay.
  int block_rows = 0;         ///< rows of a row block, however little work; 0: as many as pay
  bool multiply_any = false;  ///< also multiply tables from which few rows are taken
  bool pack_small = false;    ///< also pack matrices that are read as fast unpacked

  bool operator==(const Passes&) const = default;
};

}  // namespace reel
REEL_API_END
