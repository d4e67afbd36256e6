// frontend/signals/stft.h — the short-time Fourier transform and its inverse.
#pragma once

#include <cstdint>

#include "reel/core/base/visibility.h"
#include "reel/core/dims/axis.h"
#include "reel/core/functions/complex.h"
#include "reel/core/types/tensor.h"

REEL_API_BEGIN
namespace reel {

/// Options of stft and istft: stft(x, time, {.size = 400, .hop = 160}).
struct StftOptions {
  std::int64_t size = 512;  ///< samples of a transform; gives size / 2 + 1 frequencies
  std::int64_t hop = 0;     ///< samples between two frames; default: size / 4
  /// The weights of a frame's samples, one axis of at most `size` elements; fewer stand in its
  /// middle. Default: a periodic Hann window of `size` elements.
  Tensor window = {};
  /// True: frame f has its middle at sample f · hop, with size / 2 zeros in front of the signal and
  /// behind it. False: frames lie within the signal.
  bool is_centred = true;
  /// The dim of the frequencies of a named result; default: a new one.
  Dim frequency = {};
};

/// Returns the dim of the frames of stft: time / hop + 1 if frames are centred and `size` is even.
/// It is the same for equal calls, plain if `time` is plain.
Dim stft_frames(const Dim& time, const StftOptions& options);

/// Returns the spectra of overlapping frames. x: [..., time, ...] -> Complex [..., frames,
/// frequency, ...], with frames as stft_frames tells.
///
/// Follows librosa.stft with pad_mode="constant", its default since 0.10, and torch.stft with
/// pad_mode="constant", which is not PyTorch's default. Neither scales. Each
/// entry of a ragged signal has the frames that it has alone. Gradients of any order. Throws as
/// frame does; ArgumentError for a size or hop that is not positive, and for a window with more
/// elements; DTypeError unless x is floating and the window has its dtype.
Complex stft(const Tensor& x, const Axis& time, const StftOptions& options = {});

/// Returns the signal with these frames, as librosa.istft and torch.istft do: each frame is
/// weighted by the window again, frames are added, and the sum is divided by the sum of the
/// squared windows, where the latter is above 1e-11.
///
/// x: [..., frames, frequency, ...] -> [..., time, ...]. time: the dim of the signal; samples
/// that no frame reaches are 0. Throws as stft does, and ShapeError unless size / 2 + 1 frequencies
/// follow the frames.
Tensor istft(const Complex& x, const Axis& frames, const Dim& time,
             const StftOptions& options = {});

}  // namespace reel
REEL_API_END
