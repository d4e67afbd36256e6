// frontend/signals/resample.h — resample, a signal at another rate.
#pragma once

#include <cstdint>

#include "reel/core/base/visibility.h"
#include "reel/core/dims/axis.h"
#include "reel/core/types/tensor.h"

REEL_API_BEGIN
namespace reel {

/// Options of resample.
struct ResampleOptions {
  std::int64_t zeros = 6;  ///< zeros of the sinc on each side: more are sharper and slower
  double rolloff = 0.99;   ///< the cut-off frequency, as a part of the lower Nyquist frequency
};

/// Returns a signal of `from` samples per second at `to` samples per second, by a sinc filter under
/// a Hann window: the numbers of torchaudio.functional.resample with its defaults.
///
/// x: [..., time, ...] -> the same dims with ceildiv(time * to', from') samples, where from' and
/// to' are the rates without common factors. Elements around an entry are zeros; padding never
/// counts. Equal rates return x. Gradients of any order. Throws ArgumentError for numbers that are
/// not positive, or a rolloff above 1; ShapeError as frame does; DTypeError unless x is
/// floating.
Tensor resample(const Tensor& x, const Axis& time, std::int64_t from, std::int64_t to,
                const ResampleOptions& options = {});

}  // namespace reel
REEL_API_END
