// frontend/files/audio.h — load_audio and AudioFile, recordings in WAV and FLAC files.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "reel/core/base/visibility.h"
#include "reel/core/types/tensor.h"

REEL_API_BEGIN
namespace reel {

/// A recording.
struct Audio {
  Tensor samples;         ///< f32 [time], or [time, channel]; integers are scaled to [-1, 1)
  std::int64_t rate = 0;  ///< samples per second and channel
};

/// Options of load_audio and AudioFile.
struct AudioOptions {
  /// True: samples have an axis of channels behind time. False: one channel, the mean of all.
  bool keeps_channels = false;
  /// load_audio: the dim of the samples, or a name for a new one; default: a plain axis.
  Dim time = {};
  /// The dim of the channels, or a name for a new one, if `time` is named; default: "channel".
  Dim channel = {};
};

/// Returns the samples of a file. Reads the formats of libsndfile, WAV and FLAC among them.
///
/// Throws IoError with path and reason if the file cannot be read, or ends before its last sample;
/// ShapeError if a dim has another size; TraceError inside a trace; Error if Reel was built without
/// libsndfile.
Audio load_audio(const std::string& path, const AudioOptions& options = {});

namespace detail {
struct AudioReader;
}  // namespace detail

/// A recording that may be longer than memory, read in windows as a Sequence is. Not thread-safe.
///
///   AudioFile file("meeting.flac");
///   while (file.left() >= 16000) state = step(state, file.next(Dim("time", 16000)));
class AudioFile {
 public:
  /// Throws as load_audio does. options: `time` is not used.
  explicit AudioFile(const std::string& path, const AudioOptions& options = {});
  ~AudioFile();
  AudioFile(AudioFile&&) noexcept;
  AudioFile& operator=(AudioFile&&) noexcept;

  std::int64_t rate() const;      ///< samples per second and channel
  std::int64_t channels() const;  ///< of the file
  /// Returns the number of samples of a channel.
  std::int64_t steps() const;
  std::int64_t position() const;  ///< of the next sample
  /// Returns the number of samples behind the position.
  std::int64_t left() const { return steps() - position(); }
  /// Continues at this sample. Throws IndexError unless 0 <= position <= steps(), IoError if the
  /// file cannot be read there.
  void seek(std::int64_t position);
  /// Returns the next samples, as many as the dim has: f32 [time], or [time, channel]. Throws
  /// IndexError if fewer are left, ArgumentError for a dim without a size or with lengths, IoError.
  Tensor next(const Dim& time);

 private:
  std::unique_ptr<detail::AudioReader> reader_;
};

}  // namespace reel
REEL_API_END
