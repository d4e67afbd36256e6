// core/ops/kernels/depthwise_table.h — DepthwiseTable, the loops of convolutions with a filter for
// each channel, per instruction set.
//
// Included by depthwise_isa.cpp, which is compiled for several processors. Must not include headers
// with shared inline functions: the linker might keep one compiled for the newest processor.
#pragma once

#include <cstdint>

#include "reel/core/runtime/isa_list.h"

namespace reel {

/// Rows of `width` channels, and the rows of the source that their taps read. Steps and offsets are
/// in elements.
struct DepthwiseRows {
  std::int64_t rows, width, taps;
  const void* source;
  const std::int64_t* offsets;  ///< of each tap for the first row
  std::int64_t source_step;     ///< from one row to the next
  const std::int64_t* places;   ///< of each tap's row of channels in the filter
};

/// Columns: f32, f64. The loops use one thread.
struct DepthwiseTable {
  /// Writes Σ_t source[offsets[t] + row · source_step + c] · filter[places[t] + c].
  void (*multiply[2])(const DepthwiseRows&, const void* filter, void* out, std::int64_t out_step);
  /// Adds Σ_row source[offsets[t] + row · source_step + c] · y[row · y_step + c] to
  /// filter[places[t] + c].
  void (*sum[2])(const DepthwiseRows&, const void* y, std::int64_t y_step, void* filter);
};

REEL_DECLARE_TABLES(DepthwiseTable, depthwise)

}  // namespace reel
