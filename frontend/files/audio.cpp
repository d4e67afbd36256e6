// The only file that includes libsndfile. It scales integers itself, and decodes block by block: a
// damaged header that promises too many samples then allocates no memory for them.
#include "reel/frontend/files/audio.h"

#ifdef REEL_HAS_SNDFILE
#include <sndfile.h>
#endif

#include <algorithm>
#include <utility>
#include <vector>

#include "reel/core/base/errors.h"
#include "reel/core/base/held.h"
#include "reel/core/base/str.h"
#include "reel/core/ops.h"
#include "reel/core/types/mode.h"
#include "reel/frontend/files/audio_chunks.h"
#include "reel/frontend/files/stored_file.h"

namespace reel {

#ifndef REEL_HAS_SNDFILE

namespace {
[[noreturn]] void refuse_audio(const char* name) {
  throw Error(str(name,
                  ": this build of Reel reads no audio files: libsndfile was missing when it was "
                  "configured; install it (Debian: libsndfile1-dev) and configure again"));
}
}  // namespace

struct detail::AudioReader {};
AudioFile::AudioFile(const std::string&, const AudioOptions&) { refuse_audio("AudioFile"); }
std::int64_t AudioFile::rate() const { return 0; }
std::int64_t AudioFile::channels() const { return 0; }
std::int64_t AudioFile::steps() const { return 0; }
std::int64_t AudioFile::position() const { return 0; }
void AudioFile::seek(std::int64_t) {}
Tensor AudioFile::next(const Dim&) { return {}; }
Audio load_audio(const std::string&, const AudioOptions&) { refuse_audio("load_audio"); }

#else

namespace {
constexpr const char* kAudioFileName = "AudioFile";
}  // namespace

struct detail::AudioReader {
  static constexpr std::int64_t kBlock = 1 << 14;  // samples of a channel that are decoded at once

  struct Close {
    void operator()(SNDFILE* file) const { sf_close(file); }
  };

  std::string name;
  AudioOptions options;
  SF_INFO info{};
  std::unique_ptr<SNDFILE, Close> file = nullptr;
  std::int64_t position = 0;
  std::vector<float> block = {};

  AudioReader(const char* function, const std::string& path, const AudioOptions& given)
      : name(str(function, ": ", path)), options(given) {
    if (thread_mode.builder)
      throw TraceError(str(name,
                           ": files are read outside of a trace; pass the samples as an "
                           "argument"));
    // A missing file is a system error. libsndfile takes its text from the program's locale.
    const StoredFile checked(path, function);
    file.reset(sf_open(path.c_str(), SFM_READ, &info));
    if (!file) throw IoError(str(name, ": ", reason()));
    if (const std::uint64_t missing = missing_audio_bytes(checked))
      throw IoError(str(name, ": the file ends ", missing,
                        " bytes before its last sample; it was "
                        "cut off, or is still being written"));
    if (info.frames < 0 || info.channels < 1 || info.samplerate < 1)
      throw IoError(str(name, ": the header tells no samples, channels or rate"));
  }

  /// Returns libsndfile's words for its last error.
  const char* reason() const { return sf_error_number(sf_error(file.get())); }

  /// Appends the next samples.
  void read(std::int64_t count, std::vector<float>& to) {
    const auto channels = static_cast<std::size_t>(info.channels);
    while (count > 0) {
      const std::int64_t asked = std::min(count, kBlock);
      block.resize(static_cast<std::size_t>(asked) * channels);
      const std::int64_t got = sf_readf_float(file.get(), block.data(), asked);
      if (got <= 0)
        throw IoError(str(name, ": ends at sample ", position, " of ", info.frames,
                          sf_error(file.get()) ? str(": ", reason()) : std::string()));
      block.resize(static_cast<std::size_t>(got) * channels);
      if (options.keeps_channels) {
        to.insert(to.end(), block.begin(), block.end());
      } else {
        for (std::size_t i = 0; i < block.size(); i += channels) {
          float sum = 0;
          for (std::size_t c = 0; c < channels; ++c) sum += block[i + c];
          to.push_back(sum / static_cast<float>(channels));
        }
      }
      position += got;
      count -= got;
    }
  }

  /// Returns the dims of samples.
  Dims dims_of(const Dim& time) const {
    Dims dims{time};
    if (!options.keeps_channels) return dims;
    if (!time.is_named())
      dims.emplace_back(info.channels);
    else if (options.channel.is_named() && !options.channel.is_undefined())
      dims.push_back(options.channel);
    else
      dims.emplace_back(options.channel.is_named() ? options.channel.name() : "channel",
                        info.channels);
    return dims;
  }
  Tensor as_tensor(const std::vector<float>& values, const Dim& time) const {
    const Dims dims = dims_of(time);
    if (dims.size() == 2 && dims[1].size() != info.channels)
      throw ShapeError(
          str(name, ": the file has ", info.channels, " channels, but the dim is ", dims[1]));
    const ModeScope plain({});  // file contents belong to no trace
    return tensor(values, dims, f32);
  }
};

AudioFile::AudioFile(const std::string& path, const AudioOptions& options)
    : reader_(std::make_unique<detail::AudioReader>("AudioFile", path, options)) {}

std::int64_t AudioFile::rate() const { return held(reader_, kAudioFileName).info.samplerate; }
std::int64_t AudioFile::channels() const { return held(reader_, kAudioFileName).info.channels; }
std::int64_t AudioFile::steps() const { return held(reader_, kAudioFileName).info.frames; }
std::int64_t AudioFile::position() const { return held(reader_, kAudioFileName).position; }

void AudioFile::seek(std::int64_t position) {
  detail::AudioReader& reader = held(reader_, kAudioFileName);
  if (position < 0 || position > steps())
    throw IndexError(str(reader.name, ": there is no sample ", position, " of ", steps()));
  if (sf_seek(reader.file.get(), position, SEEK_SET) != position)
    throw IoError(
        str(reader.name, ": cannot continue at sample ", position, ": ", reader.reason()));
  reader.position = position;
}

Tensor AudioFile::next(const Dim& time) {
  detail::AudioReader& reader = held(reader_, kAudioFileName);
  if (!time.has_size() || time.is_ragged())
    throw ArgumentError(str(reader.name, ": next needs a dim with one size, got ", time));
  if (time.size() > left())
    throw IndexError(str(reader.name, ": ", time.size(), " samples are asked for, and ", left(),
                         " are left of ", steps()));
  std::vector<float> values;
  reader.read(time.size(), values);
  return reader.as_tensor(values, time);
}

Audio load_audio(const std::string& path, const AudioOptions& options) {
  detail::AudioReader reader("load_audio", path, options);
  const std::int64_t steps = reader.info.frames;
  std::vector<float> values;
  reader.read(steps, values);
  const Dim& asked = options.time;
  if (asked.has_size() && asked.is_named() && asked.size() != steps)
    throw ShapeError(
        str(reader.name, ": the file has ", steps, " samples, but the dim is ", asked));
  const Dim time = !asked.is_named()      ? Dim(steps)
                   : asked.is_undefined() ? Dim(asked.name(), steps)
                                          : asked;
  return {reader.as_tensor(values, time), reader.info.samplerate};
}

#endif

AudioFile::~AudioFile() = default;
AudioFile::AudioFile(AudioFile&&) noexcept = default;
AudioFile& AudioFile::operator=(AudioFile&&) noexcept = default;

}  // namespace reel
