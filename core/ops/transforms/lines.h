// core/ops/transforms/lines.h — Fourier transforms of all lines along an axis, by pocketfft.
#pragma once

#include "reel/core/ops/shape/strided.h"

namespace reel {

/// The factors of a transform: `scale` for all frequencies of rfft and irfft, times `middle` for
/// those between 0 and n/2.
struct TransformFactors {
  double scale = 1, middle = 1;
};

// Return nothing, and write all results. `view` is the axis with n > 0 elements; its other side has
// n / 2 + 1 frequencies. T: float or double. A line has the same bits whichever lines are beside
// it.

template <class T>
void rfft_lines(const AxisView& view, TransformFactors factors, const T* x, T* re, T* im);
template <class T>
void irfft_lines(const AxisView& view, TransformFactors factors, const T* re, const T* im, T* x);
/// re and im may be results too.
template <class T>
void fft_lines(const AxisView& view, bool is_inverse, double scale, const T* re, const T* im,
               T* to_re, T* to_im);

}  // namespace reel
