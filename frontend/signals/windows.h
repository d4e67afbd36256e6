// frontend/signals/windows.h — windows by which frames of a signal are weighted.
#pragma once

#include "reel/core/base/visibility.h"
#include "reel/core/types/tensor.h"

REEL_API_BEGIN
namespace reel {

/// Options of windows: hann_window(window, {.is_periodic = false}).
struct WindowOptions {
  /// True: one period of the cosines, for spectra, as in torch and scipy.signal.get_window. False:
  /// both ends are equal, for the design of filters.
  bool is_periodic = true;
  DType dtype = f32;  ///< f32 or f64
};

// Return a window over a dim, plain or named, for t from 0 to one turn along it:
//
//   hann       0.5 - 0.5 cos t
//   hamming    0.54 - 0.46 cos t
//   blackman   0.42 - 0.5 cos t + 0.08 cos 2t
//
// Throw ArgumentError for a dim without a known size, DTypeError unless the dtype is floating.

/// Returns a Hann window, {dim}.
Tensor hann_window(const Dim& dim, const WindowOptions& options = {});
/// Returns a Hamming window, {dim}.
Tensor hamming_window(const Dim& dim, const WindowOptions& options = {});
/// Returns a Blackman window, {dim}.
Tensor blackman_window(const Dim& dim, const WindowOptions& options = {});

}  // namespace reel
REEL_API_END
