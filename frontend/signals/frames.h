// frontend/signals/frames.h — frame and overlap_add: a signal as overlapping windows, and back.
#pragma once

#include <cstdint>

#include "reel/core/base/visibility.h"
#include "reel/core/dims/axis.h"
#include "reel/core/functions/convolutions.h"
#include "reel/core/types/tensor.h"

REEL_API_BEGIN
namespace reel {

/// Returns windows of a signal that begin every `hop` elements. x: [..., time, ...] -> [...,
/// frames, window, ...].
///
/// window: the dim of a window, named if x's dims are, of one known size. Frames are counted as
/// the windows of conv are: their dim is ceildiv(time + (before + after) - (window - 1), hop),
/// and equal calls give equal dims. Elements in front of an entry and behind it are zeros; padding
/// never shows. Gradients of any order.
///
/// Throws ArgumentError for a hop that is not positive, or a window without elements; ShapeError if
/// x lacks the axis, or plain and named dims meet; in a trace also for a plain axis of unknown
/// size.
Tensor frame(const Tensor& x, const Axis& time, const Dim& window, std::int64_t hop,
             const WindowPadding& padding = WindowPadding::valid);

/// Returns the sum of frames, each `hop` elements behind the one before: the transpose of frame.
/// x: [..., frames, window, ...] -> [..., time, ...].
///
/// time: the dim of the result, plain or named. Its elements are those from position `before` on;
/// elements behind the last frame are zeros. Padding of frames never counts. Throws as frame does,
/// and ShapeError unless the window follows the frames.
Tensor overlap_add(const Tensor& x, const Axis& frames, std::int64_t hop, const Dim& time,
                   std::int64_t before = 0);

namespace detail {

/// Returns the dim of frames.
Dim frames_of(const Dim& time, std::int64_t window, std::int64_t hop, const WindowPadding& padding);

}  // namespace detail
}  // namespace reel
REEL_API_END
