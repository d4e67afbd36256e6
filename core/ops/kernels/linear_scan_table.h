// core/ops/kernels/linear_scan_table.h — LinearScanTable, the loops of linear recurrences over rows
// of channels, per instruction set.
//
// Included by linear_scan_isa.cpp, which is compiled for several processors. Must not include
// headers with shared inline functions: the linker might keep one compiled for the newest
// processor.
#pragma once

#include <cstdint>

#include "reel/core/runtime/isa_list.h"

namespace reel {

/// The largest number of channels in a block of rows: its states stay in the first-level cache.
inline constexpr std::int64_t kScanColumns = 512;

/// Number of terms of a sum over time that are added in the operands' dtype; their sums are added
/// in doubles.
inline constexpr std::int64_t kScanTerms = 32;

/// One row per time step. `first` is the row at the first step of the walk; each next one is `step`
/// elements further, which is 0 for an operand without the time axis.
struct ScanRows {
  const void* first = nullptr;  ///< null: the operand is absent
  std::int64_t step = 0;
};
struct ScanRowsOut {
  void* first = nullptr;  ///< null: the result is not wanted
  std::int64_t step = 0;
};

/// h_k = a_k h_{k-1} + b_k x_k, with h_{-1} = initial; without x, b_k alone. Each product and sum
/// is rounded.
struct LinearScanBlock {
  std::int64_t steps, width;  ///< width: at most kScanColumns
  ScanRows a, b, x;
  const void* initial;  ///< a row, never null
  ScanRowsOut h;        ///< may be the memory of a, b or x
};

/// g_k = cotangent_k + a_{k+1} g_{k+1}, walked from the last step to step 0, and its products: of a
/// g_k h_{k-1}, of b g_k x_k, of x g_k b_k. A result of step 0 is their sum over the steps: a row
/// of doubles, to which is added.
///
/// All rows begin at the last step, and h at the step before it. `b_out` may be the memory of any
/// operand.
struct LinearScanGradBlock {
  std::int64_t steps, width;
  ScanRows a, cotangent, h, b, x;
  const void* initial;  ///< h_{-1}, a row, never null
  ScanRowsOut a_out, b_out, x_out;
  void* initial_out;  ///< a_0 g_0; null if it is not wanted
  /// a_n g_n of the step behind the last one, a row; null: there is none. May be `initial_out`.
  const void* state = nullptr;
};

/// Columns: f32, f64. The loops use one thread.
struct LinearScanTable {
  void (*forward[2])(const LinearScanBlock&);
  void (*gradient[2])(const LinearScanGradBlock&);
};

REEL_DECLARE_TABLES(LinearScanTable, linear_scans)

}  // namespace reel
