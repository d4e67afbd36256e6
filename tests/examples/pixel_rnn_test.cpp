// The program pixel_rnn on small generated pictures: it learns from a few, resumed training equals
// uninterrupted training, and damaged data give one line of error.
#include <zlib.h>

#include "program_test.h"

namespace {

/// Classes 0 to 9 of four by four pixels: class k is bright at the bits of k.
constexpr int kSide = 4;

std::string number(int value) {
  return {static_cast<char>(value >> 24), static_cast<char>(value >> 16 & 255),
          static_cast<char>(value >> 8 & 255), static_cast<char>(value & 255)};
}
std::string pictures_of(int count) {
  std::string file = number(0x0803) + number(count) + number(kSide) + number(kSide);
  for (int picture = 0; picture < count; ++picture)
    for (int pixel = 0; pixel < kSide * kSide; ++pixel)
      file +=
          static_cast<char>(picture % 10 >> pixel / kSide & 1 ? 200 + picture % 50 : picture % 7);
  return file;
}
std::string labels_of(int count) {
  std::string file = number(0x0801) + number(count);
  for (int picture = 0; picture < count; ++picture) file += static_cast<char>(picture % 10);
  return file;
}

class PixelRnnTest : public ProgramTest {
 protected:
  PixelRnnTest() : ProgramTest("pixel_rnn", REEL_PIXEL_RNN) {}
  void SetUp() override {
    ProgramTest::SetUp();
    pack("train-images-idx3-ubyte", pictures_of(80));
    write("train-labels-idx1-ubyte", labels_of(80));
    pack("t10k-images-idx3-ubyte", pictures_of(30));
    write("t10k-labels-idx1-ubyte", labels_of(30));
  }
  void write(const std::string& name, const std::string& content) const {
    std::ofstream(folder_ / name, std::ios::binary) << content;
  }
  void pack(const std::string& name, const std::string& content) const {
    const std::string path = (folder_ / (name + ".gz")).string();
    gzFile file = ::gzopen(path.c_str(), "wb");
    ::gzwrite(file, content.data(), static_cast<unsigned>(content.size()));
    ::gzclose(file);
  }
  std::string in_folder(const std::string& name) const { return (folder_ / name).string(); }
  /// Returns arguments that also draw the plots beside the other files.
  Arguments small(const std::string& name, const Arguments& more) const {
    Arguments all{"--data",           ".",
                  "--batch",          "20",
                  "--hidden",         "16",
                  "--plot",           name + "/loss.svg",
                  "--accuracy-plot",  name + "/accuracy.svg",
                  "--confusion-plot", name + "/confusion.svg"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
};

TEST_F(PixelRnnTest, TrainingLearnsAndIsDrawn) {
  const std::string out = train("a", small("a", {"--steps", "300", "--cell", "gru"}));
  EXPECT_NE(out.find("100.00 % of 30 test pictures right"), std::string::npos) << out;
  const std::string rows = file("a/losses.csv");
  EXPECT_EQ(rows.substr(0, rows.find('\n')), "step,mode,nats per picture,accuracy");
  for (const char* picture : {"loss", "accuracy", "confusion"}) {
    const std::string svg = file("a/" + std::string(picture) + ".svg");
    EXPECT_EQ(svg.substr(0, 4), "<svg") << picture;
    EXPECT_NE(svg.find("</svg>"), std::string::npos) << picture;
  }
  const std::string confusion = file("a/confusion.svg");
  EXPECT_NE(confusion.find("100.0 % right"), std::string::npos);
  EXPECT_NE(confusion.find("ankle boot"), std::string::npos);
}

TEST_F(PixelRnnTest, GoesOnAsIfItHadNotStopped) {
  for (const Arguments& what :
       {Arguments{"--mode", "traced"}, Arguments{"--mode", "eager", "--pixels", "--cell", "gru"}}) {
    Arguments whole = what;
    whole.insert(whole.end(), {"--steps", "10"});
    Arguments half = whole;
    half.insert(half.end(), {"--stop-after", "5"});
    train("whole", small("whole", whole));
    train("parts", small("parts", half));
    train("parts", {"--resume"});
    expect_same_training("whole", "parts");
    EXPECT_EQ(file("whole/accuracy.svg"), file("parts/accuracy.svg"));
    EXPECT_EQ(file("whole/confusion.svg"), file("parts/confusion.svg"));
  }
}

TEST_F(PixelRnnTest, LossesAreTheSameOnAnyNumberOfThreads) {
  expect_same_on_any_threads({"--data", ".", "--mode", "traced"});
}

TEST_F(PixelRnnTest, ACheckpointHoldsOneKindOfSequences) {
  train("a", small("a", {"--steps", "2"}));
  expect_error(run(with_files("a", {"--resume", "--pixels"})),
               "a/model holds another model: it was made with --pixels 0, not 1");
}

TEST_F(PixelRnnTest, GoesOnWithTheSamePicturesOnly) {
  train("a", small("a", {"--steps", "2"}));
  std::string labels = labels_of(80);
  labels.back() = 0;
  write("train-labels-idx1-ubyte", labels);
  expect_error(run(with_files("a", {"--resume", "--steps", "4"})),
               "a/model can continue only with the pictures of its training, but those in " +
                   in_folder(".") + " differ");
}

TEST_F(PixelRnnTest, DamagedDataAreRefused) {
  const auto expect = [&](const std::string& message) {
    expect_error(run(with_files("a", small("a", {"--steps", "2"}))), message);
  };
  const std::string path = in_folder("./train-labels-idx1-ubyte"), labels = labels_of(80);
  write("train-labels-idx1-ubyte", labels.substr(0, 50));
  expect("cannot read " + path + ": it is cut off");
  write("train-labels-idx1-ubyte", labels + "x");
  expect(path + " is longer than its header says");
  write("train-labels-idx1-ubyte", pictures_of(80));
  expect(path + " is no idx file of bytes with 1 sizes");
  write("train-labels-idx1-ubyte", labels_of(70));
  expect(path + " has 70 labels for 80 pictures");
  write("train-labels-idx1-ubyte", labels.substr(0, labels.size() - 1) + "\x0b");
  expect("a label of 11, but there are 10 classes");
  fs::remove(path);
  expect("no " + path +
         ".gz; Fashion-MNIST is Debian's dataset-fashion-mnist (scripts/install --pictures), other "
         "folders are named with --data");
  write("train-labels-idx1-ubyte.gz", "\x1f\x8b\x08 and no more");
  const Outcome outcome = run(with_files("a", small("a", {})));
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.error.find("pixel_rnn: cannot read " + path + ".gz: "), 0u) << outcome.error;
}

TEST_F(PixelRnnTest, MorePicturesInAStepThanThereAre) {
  expect_error(run(with_files("a", {"--data", ".", "--batch", "81"})),
               "--batch 81 is more than the 80 pictures there are");
}

}  // namespace
