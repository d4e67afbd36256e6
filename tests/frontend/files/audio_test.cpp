// load_audio and AudioFile: WAV files written byte by byte, a FLAC file, damaged files.
#include "reel/frontend/files/audio.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <string>
#include <vector>

#include "reel/core/ops.h"
#include "reel/frontend/jit.h"
#include "reel/tests/check.h"
#include "reel/tests/own_folder.h"

namespace {

thread_local bool reads_fail = false;

/// While one exists, pread fails on this thread, as from a damaged disk.
struct FailingReads {
  FailingReads() { reads_fail = true; }
  ~FailingReads() { reads_fail = false; }
};

}  // namespace

/// Hides the system's function in this program.
extern "C" ssize_t pread(int file, void* to, std::size_t count, off_t offset) {
  if (!reads_fail) return ::pread64(file, to, count, offset);
  errno = EIO;
  return -1;
}

namespace reel {
namespace {

class AudioTest : public InOwnFolder {
 protected:
  AudioTest() : InOwnFolder("x.wav") {}
  void write(const std::string& bytes) const {
    std::ofstream(path, std::ios::binary)
        .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }
};

#ifdef REEL_HAS_SNDFILE

std::string little_endian(std::uint32_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> 8 * i & 0xff);
  return text;
}
/// Returns a WAV file of 16 bits (RIFF, format 1).
std::string wav(const std::vector<std::int16_t>& samples, std::uint32_t channels,
                std::uint32_t rate) {
  const auto size = static_cast<std::uint32_t>(samples.size() * 2);
  std::string bytes = "RIFF" + little_endian(36 + size, 4) + "WAVEfmt " + little_endian(16, 4) +
                      little_endian(1, 2) + little_endian(channels, 2) + little_endian(rate, 4) +
                      little_endian(rate * channels * 2, 4) + little_endian(channels * 2, 2) +
                      little_endian(16, 2) + "data" + little_endian(size, 4);
  for (const std::int16_t sample : samples)
    bytes += little_endian(static_cast<std::uint16_t>(sample), 2);
  return bytes;
}

/// Samples 0, 8192, -16384, 32767, -32768, 100 at 8000 Hz, encoded by libsndfile 1.2.
const std::string kFlac(
    "\x66\x4c\x61\x43\x80\x00\x00\x22\x10\x00\x10\x00\x00\x00\x16\x00\x00\x16\x01\xf4"
    "\x00\xf0\x00\x00\x00\x06\xe5\xdd\x1e\x72\x9e\xcb\xb3\x58\x99\xf4\x84\xb2\x67\x97"
    "\x1a\x52\xff\xf8\x64\x08\x00\x05\xf8\x02\x00\x00\x20\x00\xc0\x00\x7f\xff\x80\x00"
    "\x00\x64\xad\x00",
    64);

TEST_F(AudioTest, IntegersOfAWavFileAreScaledToOne) {
  write(wav({0, 16384, -32768, 8192}, 1, 16000));
  const Audio audio = load_audio(path);
  EXPECT_EQ(audio.rate, 16000);
  EXPECT_EQ(audio.samples.dtype(), f32);
  expect_values(audio.samples, {0, 0.5, -1, 0.25}, 0);
}

TEST_F(AudioTest, ChannelsBecomeTheirMeanOrAnAxis) {
  write(wav({8192, 16384, 0, -16384, -8192, 8192}, 2, 8000));
  expect_values(load_audio(path).samples, {0.375, -0.25, 0}, 0);
  const Tensor both = load_audio(path, {.keeps_channels = true, .time = Dim("time")}).samples;
  expect_values(both, {0.25, 0.5, 0, -0.5, -0.25, 0.25}, 0);
  EXPECT_EQ(str(both.type()), "f32[time=3,channel=2]");
}

TEST_F(AudioTest, FlacFilesAreRead) {
  write(kFlac);
  const Audio audio = load_audio(path);
  EXPECT_EQ(audio.rate, 8000);
  expect_values(audio.samples, {0, 0.25, -0.5, 32767. / 32768, -1, 100. / 32768}, 0);
}

TEST_F(AudioTest, WindowsOfALongFileAreItsSlices) {
  std::vector<std::int16_t> samples;
  for (int i = 0; i < 50'000; ++i) samples.push_back(static_cast<std::int16_t>(i * 7919 % 30'000));
  write(wav(samples, 1, 16000));
  const Tensor whole = load_audio(path).samples;
  AudioFile file(path);
  EXPECT_EQ(file.steps(), 50'000);
  EXPECT_EQ(file.channels(), 1);
  for (std::int64_t begin = 0; file.left() >= 20'000; begin += 20'000)
    expect_same_bits(file.next(Dim(20'000)), slice(whole, 0, begin, begin + 20'000));
  EXPECT_EQ(file.left(), 10'000);
  file.seek(123);
  expect_same_bits(file.next(Dim(10)), slice(whole, 0, 123, 133));
  EXPECT_EQ(file.position(), 133);
}

TEST_F(AudioTest, EmptyRecordingsHaveNoSamples) {
  write(wav({}, 1, 8000));
  EXPECT_EQ(load_audio(path).samples.dim(0).size(), 0);
}

TEST_F(AudioTest, DamagedFilesAreErrorsWithTheirPath) {
  write("no audio at all");
  EXPECT_TRUE(message_of<IoError>([&] { load_audio(path); }).starts_with("load_audio: " + path));
  EXPECT_EQ(message_of<IoError>([&] { load_audio(path + ".missing"); }),
            "load_audio: cannot open " + path + ".missing: No such file or directory");
  write(kFlac.substr(0, kFlac.size() - 6));
  message_of<IoError>([&] { load_audio(path); });
}

TEST_F(AudioTest, FilesThatWereCutOffAreErrors) {
  const std::string whole = wav({1, 2, 3, 4}, 1, 8000);
  write(whole.substr(0, whole.size() - 3));
  const std::string rest =
      ": the file ends 3 bytes before its last sample; it was cut off, or is "
      "still being written";
  EXPECT_EQ(message_of<IoError>([&] { load_audio(path); }), "load_audio: " + path + rest);
  EXPECT_EQ(message_of<IoError>([&] { AudioFile file(path); }), "AudioFile: " + path + rest);
  // AIFF: chunks in the other order of bytes.
  const auto big_endian = [](std::uint32_t value, int bytes) {
    const std::string text = little_endian(value, bytes);
    return std::string(text.rbegin(), text.rend());
  };
  const std::string aiff = "FORM" + big_endian(54, 4) + "AIFFCOMM" + big_endian(18, 4) +
                           big_endian(1, 2) + big_endian(4, 4) + big_endian(16, 2) +
                           std::string("\x40\x0b\xfa\0\0\0\0\0\0\0", 10) + "SSND" +
                           big_endian(16, 4) + big_endian(0, 4) + big_endian(0, 4) +
                           std::string("\x40\0\xc0\0\0\0\x20\0", 8);
  write(aiff);
  expect_values(load_audio(path).samples, {0.5, -0.5, 0, 0.25}, 0);
  write(aiff.substr(0, aiff.size() - 4));
  EXPECT_EQ(message_of<IoError>([&] { load_audio(path); }),
            "load_audio: " + path +
                ": the file ends 4 bytes before its last sample; it was cut "
                "off, or is still being written");
}

/// Returns the number of files that this program has open.
std::ptrdiff_t open_files() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
}

TEST_F(AudioTest, FilesThatCannotBeReadAreClosed) {
  const std::string whole = wav({1, 2, 3, 4}, 1, 8000);
  write(whole);
  const std::ptrdiff_t before = open_files();
  {
    const FailingReads failing;
    EXPECT_EQ(message_of<IoError>([&] { AudioFile file(path); }),
              "AudioFile: " + path + ": cannot be read: Input/output error");
  }
  EXPECT_EQ(open_files(), before);
  write(whole.substr(0, whole.size() - 3));
  message_of<IoError>([&] { AudioFile file(path); });
  EXPECT_EQ(open_files(), before);
}

TEST_F(AudioTest, RecordingsThatWentThroughAPipeAreRead) {
  for (const std::uint32_t size : {0xffffffffu, 0x7ffff000u}) {
    std::string bytes = wav({16384, -8192}, 1, 8000);
    bytes.replace(40, 4, little_endian(size, 4));
    write(bytes);
    expect_values(load_audio(path).samples, {0.5, -0.25}, 0);
  }
}

TEST_F(AudioTest, ErrorsNameTheNumbers) {
  write(wav({1, 2, 3}, 1, 8000));
  EXPECT_EQ(message_of<ShapeError>([&] { load_audio(path, {.time = Dim("time", 4)}); }),
            "load_audio: " + path + ": the file has 3 samples, but the dim is time=4");
  AudioFile file(path);
  EXPECT_EQ(message_of<IndexError>([&] { file.next(Dim(4)); }),
            "AudioFile: " + path + ": 4 samples are asked for, and 3 are left of 3");
  EXPECT_EQ(message_of<IndexError>([&] { file.seek(5); }),
            "AudioFile: " + path + ": there is no sample 5 of 3");
  const AudioFile other = std::move(file);
  EXPECT_EQ(message_of<ArgumentError>([&] { file.steps(); }),
            "AudioFile: this object was moved; use the one that it was moved to");
  const auto in_trace = jit([&](const Tensor& x) { return x + load_audio(path).samples; });
  message_of<TraceError>([&] { in_trace(zeros({3})); });
}

#else

TEST_F(AudioTest, BuildsWithoutLibsndfileSaySo) {
  EXPECT_TRUE(
      message_of<Error>([&] { load_audio(path); })
          .starts_with(
              "load_audio: this build of Reel reads no audio files: libsndfile was missing"));
}

#endif

}  // namespace
}  // namespace reel
