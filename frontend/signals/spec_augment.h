// frontend/signals/spec_augment.h — SpecAugment, random masks over time and frequency.
#pragma once

#include <cstdint>

#include "reel/core/base/visibility.h"
#include "reel/core/dims/axis.h"
#include "reel/core/types/tensor.h"

REEL_API_BEGIN
namespace reel {

/// Options of spec_augment. The defaults are policy LD of Park et al. (2019), without time warping.
struct SpecAugmentOptions {
  std::int64_t time_masks = 2, frequency_masks = 2;     ///< numbers of masks
  std::int64_t time_width = 100, frequency_width = 27;  ///< the largest width of a mask
  double time_part = 1;  ///< the largest part of an entry's frames that one mask covers
  double value = 0;      ///< of masked elements; 0 is the mean of normalised features
};

/// Returns features with `value` in random masks: spans of frames over all frequencies, and spans
/// of frequencies over all frames. x: any -> the same.
///
/// Each entry of the other dims has its own masks. A width is drawn from 0 to the largest one, an
/// entry's length or part included, then a begin such that the mask fits: padding never counts.
/// Masked elements have no gradient. Draws from the active stream, as dropout does; masks of
/// number 0 draw nothing. Always masks: evaluation code must not call it.
///
/// Throws ArgumentError for negative numbers or a part outside [0, 1], DTypeError unless x is
/// floating. Source: Park et al. (2019), "SpecAugment", section 2.
Tensor spec_augment(const Tensor& x, const Axis& time, const Axis& frequency,
                    const SpecAugmentOptions& options = {});

}  // namespace reel
REEL_API_END
