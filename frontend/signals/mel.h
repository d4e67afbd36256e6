// frontend/signals/mel.h — mel filters, log-mel features and cepstral coefficients.
#pragma once

#include <cstdint>

#include "reel/core/base/visibility.h"
#include "reel/core/dims/axis.h"
#include "reel/core/types/tensor.h"
#include "reel/frontend/signals/stft.h"

REEL_API_BEGIN
namespace reel {

/// The relation of mel to hertz.
enum class MelScale : std::uint8_t {
  slaney,  ///< Slaney's Auditory Toolbox (1998): linear below 1000 Hz, then logarithmic
  htk,     ///< 2595 log10(1 + hertz / 700), of the HTK book
};

/// Options of mel_filters. The defaults follow librosa.filters.mel; torchaudio has
/// {.scale = MelScale::htk, .has_unit_area = false}.
struct MelOptions {
  double rate = 16000;                ///< samples per second
  double low = 0;                     ///< the lower end of the first filter, in hertz
  double high = 0;                    ///< the upper end of the last filter; default: rate / 2
  MelScale scale = MelScale::slaney;  ///< of the filters' frequencies
  /// True: each filter has the same area over the frequencies, 2 / (its width in hertz) at its
  /// top. False: its top is 1.
  bool has_unit_area = true;
  DType dtype = f32;  ///< f32 or f64
};

/// Returns triangular filters that overlap by half, evenly spaced on the mel scale: [frequency,
/// mel]. Both dims are plain or named. Frequency k of n lies at k / (n - 1) · rate / 2, as in a
/// transform of an even size.
///
/// Throws ArgumentError unless 0 <= low < high <= rate / 2 and both dims have a known size above 0,
/// DTypeError unless the dtype is floating.
Tensor mel_filters(const Dim& frequency, const Dim& mel, const MelOptions& options = {});

/// Options of log_mel and mfcc.
struct LogMelOptions {
  StftOptions stft = {};  ///< of the frames
  MelOptions mel = {};    ///< the dtype comes from x
  double floor = 1e-10;   ///< energies below count as this number
};

/// Returns log(max(|stft|² · mel_filters, floor)), by the natural logarithm. x: [..., time, ...] ->
/// [..., frames, ..., mel]: named dims of x stay in their order, mel comes last; for plain dims mel
/// follows the frames. The frames are stft_frames(time, options.stft).
///
/// 10 / ln(10) times the result is librosa's power_to_db(melspectrogram, top_db=None). Throws as
/// stft and mel_filters do.
Tensor log_mel(const Tensor& x, const Axis& time, const Dim& mel,
               const LogMelOptions& options = {});

/// Returns the first cepstral coefficients of log-mel features: their orthonormal discrete cosine
/// transform (DCT-II), of 10 · log10 of the energies. x: of log_mel, [..., mel, ...] ->
/// [..., coefficient].
///
/// Follows librosa.feature.mfcc and torchaudio.transforms.MFCC for the same
/// features without top_db. Throws ShapeError if the axis is ragged, ArgumentError for more
/// coefficients than features.
Tensor mfcc(const Tensor& x, const Axis& mel, const Dim& coefficient);

}  // namespace reel
REEL_API_END
