// The program speech on generated recordings: each digit is a pair of tones. It learns them,
// resumed training equals uninterrupted training, files of other rates are recognised, and damaged
// data give one line of error. With espeak-ng, scripts/speech makes recordings of voices.
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <random>

#include "program_test.h"

namespace {

constexpr double kPi = 3.14159265358979323846;

void append(std::string& file, std::uint32_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) file += static_cast<char>(value >> 8 * i & 255);
}

/// Returns a WAV file of 16-bit integers. Each digit sounds for 0.15 s, before 0.05 s of noise.
std::string recording_of(const std::string& digits, std::uint32_t rate = 8000, int channels = 1) {
  std::string samples;
  std::mt19937 noise(1);
  const auto add = [&](double value) {
    const auto level = static_cast<std::int16_t>(8000 * value + noise() % 1000);
    for (int i = 0; i < channels; ++i) append(samples, static_cast<std::uint16_t>(level), 2);
  };
  for (const char digit : digits) {
    const int k = digit - '0';
    const double low = 400 + 150 * (k % 4), high = 1400 + 500 * (k / 4);
    for (std::uint32_t i = 0; i < rate / 5; ++i) {
      const double t = static_cast<double>(i) / rate;
      add(t < 0.15 ? std::sin(2 * kPi * low * t) + std::sin(2 * kPi * high * t) : 0);
    }
  }
  const auto bytes = static_cast<std::uint32_t>(samples.size());
  const auto frame = static_cast<std::uint32_t>(2 * channels);
  std::string file = "RIFF";
  append(file, 36 + bytes, 4);
  file += "WAVEfmt ";
  append(file, 16, 4);
  append(file, 1, 2);  // integers
  append(file, static_cast<std::uint32_t>(channels), 2);
  append(file, rate, 4);
  append(file, rate * frame, 4);
  append(file, frame, 2);
  append(file, 16, 2);
  file += "data";
  append(file, bytes, 4);
  return file + samples;
}

class SpeechTest : public ProgramTest {
 protected:
  SpeechTest() : ProgramTest("speech", REEL_SPEECH) {}
  void SetUp() override {
    ProgramTest::SetUp();
    make("train", 96, 3);
    make("test", 12, 5);
  }
  void write(const std::string& name, const std::string& content) const {
    std::ofstream(folder_ / name, std::ios::binary) << content;
  }
  /// Writes a table, and recordings of one to four digits.
  void make(const std::string& name, int count, std::uint32_t seed) const {
    std::mt19937 random(seed);
    std::string table = "file,voice,digits\n";
    for (int i = 0; i < count; ++i) {
      std::string digits;
      for (int k = 0; k <= i % 4; ++k) digits += static_cast<char>('0' + random() % 10);
      const std::string file = name + std::to_string(i) + ".wav";
      write(file, recording_of(digits));
      table += file + ",tones" + std::to_string(i % 2) + ',' + digits + '\n';
    }
    write(name + ".csv", table);
  }
  std::string in_folder(const std::string& name) const { return (folder_ / name).string(); }
  /// Returns arguments of a small training that also draws pictures beside the other files.
  Arguments small(const std::string& name, const Arguments& more) const {
    Arguments all{"--data",    ".",
                  "--batch",   "16",
                  "--hidden",  "24",
                  "--layers",  "1",
                  "--plot",    name + "/loss.svg",
                  "--picture", name + "/alignment.svg"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
};

TEST_F(SpeechTest, LearnsTonesThenListensToFilesOfOtherRates) {
  const std::string out = train("a", small("a", {"--steps", "400", "--cell", "gru"}));
  const std::size_t rate = out.rfind('\n', out.find(" % label errors in 30 digits of voices"));
  ASSERT_NE(rate, std::string::npos) << out;
  EXPECT_LT(std::stod(out.substr(rate + 1)), 5) << out;
  EXPECT_NE(out.find("tones1"), std::string::npos) << out;
  const std::string rows = file("a/losses.csv");
  EXPECT_EQ(rows.substr(0, rows.find('\n')), "step,mode,nats per recording");
  EXPECT_NE(rows.find("30,eager,"), std::string::npos);
  EXPECT_NE(rows.find("31,traced,"), std::string::npos);
  for (const char* picture : {"loss", "alignment"})
    EXPECT_NE(file("a/" + std::string(picture) + ".svg").find("</svg>"), std::string::npos);

  write("mine.wav", recording_of("4096", 11025, 2));
  const std::string heard = train("a", {"--listen", "mine.wav", "--picture", "a/mine.svg"});
  std::string digits;
  for (std::size_t at = heard.find(": "); at != std::string::npos; at = heard.find(") ", at + 1))
    digits += heard[at + 2];
  EXPECT_EQ(digits, "4096") << heard;
  EXPECT_NE(file("a/mine.svg").find(">mine.wav</text>"), std::string::npos);
}

TEST_F(SpeechTest, ResumedTrainingEqualsUninterruptedTraining) {
  for (const Arguments& how :
       {Arguments{"--mode", "traced"}, Arguments{"--mode", "eager", "--cell", "gru"}}) {
    Arguments whole = how;
    whole.insert(whole.end(), {"--steps", "8"});
    Arguments half = whole;
    half.insert(half.end(), {"--stop-after", "4"});
    train("whole", small("whole", whole));
    train("parts", small("parts", half));
    train("parts", {"--resume"});
    expect_same_training("whole", "parts");
    EXPECT_EQ(file("whole/alignment.svg"), file("parts/alignment.svg"));
  }
}

TEST_F(SpeechTest, LossesAreTheSameOnAnyNumberOfThreads) {
  expect_same_on_any_threads({"--data", ".", "--mode", "traced", "--picture", "", "--plot", ""});
}

TEST_F(SpeechTest, CheckpointsContinueWithTheirRecordingsOnly) {
  train("a", small("a", {"--steps", "2"}));
  make("train", 96, 7);
  expect_error(run(with_files("a", {"--resume", "--steps", "4"})),
               "a/model can continue only with the recordings of its training, but those in " +
                   in_folder(".") + " differ");
}

TEST_F(SpeechTest, UnusableRecordingsAreRefused) {
  const auto expect = [&](const std::string& message) {
    expect_error(run(with_files("a", small("a", {"--steps", "2"}))), message);
  };
  write("train.csv", "file,voice,digits\ntrain0.wav,tones,1a\n");
  expect(in_folder(".") + "/train.csv has \"1a\" among its digits");
  write("train.csv", "file,voice,digits\n");
  expect(in_folder(".") + "/train.csv names no recordings");
  write("train.csv", "file,voice,digits\ntrain0.wav,tones,1\n");
  expect("--batch 16 is more than the 1 recordings there are");
  write("other.wav", recording_of("1", 16000));
  write("train.csv", "file,voice,digits\ntrain0.wav,tones,1\nother.wav,tones,1\n");
  expect(in_folder(".") + "/other.wav has another rate than the file before");
  fs::remove(folder_ / "train.csv");
  const Outcome outcome = run(with_files("a", small("a", {})));
  EXPECT_EQ(outcome.code, 1);
  EXPECT_NE(outcome.error.find("train.csv"), std::string::npos) << outcome.error;
}

TEST_F(SpeechTest, ListeningNeedsACheckpoint) {
  write("mine.wav", recording_of("1"));
  expect_error(run({"--listen", "mine.wav", "--checkpoint", "none"}),
               "there is no none; train a model with speech, or name its file with --checkpoint");
}

#ifdef REEL_SPEECH_EXPORT
TEST_F(SpeechTest, ModelsOfCheckpointsAreExported) {
  train("a", small("a", {"--steps", "2"}));
  const std::string command = std::string(REEL_SPEECH_EXPORT) + " --checkpoint " +
                              in_folder("a/model") + ' ' + in_folder("a/model.onnx");
  EXPECT_EQ(std::system(command.c_str()), 0);
  EXPECT_GT(file("a/model.onnx").size(), 1000u);
}
#endif

TEST_F(SpeechTest, VoicesDependOnTheSeedOnly) {
  if (std::system("command -v espeak-ng > espeak-ng.path") != 0)
    GTEST_SKIP() << "there is no espeak-ng; scripts/install --speech brings it";
  const auto make_voices = [&](const std::string& folder, const std::string& seed) {
    const std::string command = std::string(REEL_SPEECH_SCRIPT) +
                                " --only-data --recordings 6 --recordings-seed " + seed +
                                " --data " + in_folder(folder);
    EXPECT_EQ(std::system(command.c_str()), 0);
  };
  make_voices("one", "1");
  make_voices("again", "1");
  make_voices("other", "2");
  for (const char* name : {"train.csv", "test.csv", "train-5.wav", "test-0.wav"})
    EXPECT_TRUE(file("one/" + std::string(name)) == file("again/" + std::string(name))) << name;
  EXPECT_NE(file("one/train.csv"), file("other/train.csv"));
  const std::string out = train("a", {"--data", "one", "--steps", "2", "--batch", "3", "--hidden",
                                      "8", "--plot", "", "--picture", ""});
  EXPECT_NE(out.find("% label errors in"), std::string::npos) << out;
}

}  // namespace
