// The program long_text: losses compared with memory, a picture of all lengths, and the same
// results from a file that is read piece by piece.
#include <regex>

#include "program_test.h"

namespace {

class LongTextTest : public ProgramTest {
 protected:
  LongTextTest() : ProgramTest("long_text", REEL_LONG_TEXT) {}
  void SetUp() override {
    ProgramTest::SetUp();
    std::ofstream text(folder_ / "text");
    for (int i = 0; i < 300; ++i) text << "line " << i << " of a text, " << i * i << ".\n";
  }
  std::string output_of(Arguments more, const char* characters = "2400") const {
    more.insert(more.begin(), {"--data", "text", "--batch", "2", "--hidden", "8", "--characters",
                               characters, "--budget", "1"});
    const Outcome outcome = run(more);
    EXPECT_EQ(outcome.code, 0) << outcome.error;
    return outcome.out;
  }
};

TEST_F(LongTextTest, TellsMemoryBesideLossAndDrawsEachLength) {
  const std::string out = output_of({"--length", "40", "300"});
  for (const char* name : {"T = 40: update 30 of 30", "T = 300: update 4 of 4"}) {
    const std::regex line(std::string(name) +
                          ", 0\\.00 million characters, [0-9]+\\.[0-9]{3} bits per character, "
                          "[1-9][0-9]* MiB resident, [1-9][0-9]* at most, [0-9]+ s\n");
    EXPECT_TRUE(std::regex_search(out, line)) << out;
  }
  const std::string picture = file("long_text.svg"), losses = file("long_text.csv");
  for (const char* name : {"T = 40", "T = 300"}) {
    EXPECT_NE(picture.find(name), std::string::npos);
    EXPECT_NE(losses.find('"' + std::string(name) + "\",2400.0"), std::string::npos) << losses;
  }
}

TEST_F(LongTextTest, ATextThatIsReadFromAFileGivesTheSameLosses) {
  // A row has half of some 8,000 bytes. Training reaches a row's end three times, in the middle of
  // a piece; nearly all of the longest pieces contain an end.
  const Arguments arguments{"--length", "50", "3000", "--truncate", "20"};
  const auto with = [&](Arguments more) {
    more.insert(more.begin(), arguments.begin(), arguments.end());
    return output_of(more, "30000");
  };
  with({"--losses", "memory.csv"});
  with({"--losses", "file.csv", "--stream", "text.npy"});
  EXPECT_EQ(file("file.csv"), file("memory.csv"));
  EXPECT_GT(fs::file_size(folder_ / "text.npy"), 4 * 7000u);
}

TEST_F(LongTextTest, FlagsThatMeanNothingAreRefused) {
  const std::pair<Arguments, const char*> cases[] = {
      {{"--seed", "-1"}, "--seed: a seed is not negative, got -1"},
      {{"--characters", "9999999999999999999"},
       "--characters: Value 9999999999999999999 not in range"},
      {{"--length", "50,1"}, "--length: Value 1 not in range"}};
  for (const auto& [arguments, why] : cases) {
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.code, 2);
    EXPECT_EQ(outcome.error.rfind(std::string("long_text: ") + why, 0), 0u) << outcome.error;
  }
  const std::string out = output_of({"--length", "40,300"});
  EXPECT_NE(out.find("T = 300: update 4 of 4"), std::string::npos) << out;
}

// The error comes before any training, although length 40 would come first.
TEST_F(LongTextTest, TextShorterThanTheLengthIsAnErrorOfOneLine) {
  const std::string error = "long_text: text has " +
                            std::to_string(fs::file_size(folder_ / "text") / 2) +
                            " symbols for each reader, but --length 100000 needs at least 100001\n";
  for (const Arguments& where : {Arguments{}, Arguments{"--stream", "text.npy"}}) {
    Arguments arguments{"--data", "text", "--batch", "2", "--length", "40", "100000"};
    arguments.insert(arguments.end(), where.begin(), where.end());
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.code, 1);
    EXPECT_EQ(outcome.error, error);
    EXPECT_EQ(outcome.out, "");
  }
}

}  // namespace
