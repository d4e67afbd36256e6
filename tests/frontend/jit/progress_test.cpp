#include "reel/frontend/progress.h"

#include <gtest/gtest.h>

#include <cmath>
#include <sstream>

namespace reel {
namespace {

/// Gives tests a stream that may pass for a terminal, and a clock that they move.
class ProgressTest : public ::testing::Test {
 protected:
  ProgressOptions options(bool is_terminal, int width = 100) {
    return {.unit = "steps",
            .units_per_step = 1,
            .out = &out_,
            .is_terminal = is_terminal,
            .width = width,
            .clock = [this] { return now_; }};
  }
  /// Returns the text since the last call.
  std::string shown() {
    const std::string text = out_.str();
    out_.str("");
    return text;
  }

  std::ostringstream out_;
  double now_ = 1000;
};

TEST_F(ProgressTest, WritesOneLineOverOnATerminal) {
  {
    Progress progress(2000, "training", options(true));
    progress.update(1000, {{"loss", 2.34567}});
    EXPECT_EQ(shown(), "");  // too soon after the start
    now_ += 0.5;
    progress.update(1010, {{"loss", 2.34567}});
    EXPECT_EQ(shown(), "\rtraining: 1,010 of 2,000, loss 2.346, 20 steps/s, 0:50 left\033[K");
    now_ += 0.05;
    progress.update(1011, {{"loss", 2.3}});
    EXPECT_EQ(shown(), "");
    now_ += 0.45;
    progress.update(1030, {{"loss", 2.3}, {"norm", 1e-7}});
    EXPECT_EQ(shown(),
              "\rtraining: 1,030 of 2,000, loss 2.3, norm 1e-07, 30 steps/s, 0:32 left\033[K");
  }
  EXPECT_EQ(shown(), "\n");
}

TEST_F(ProgressTest, ShowsTheLastStepAlwaysAndEndsItsLine) {
  Progress progress(20, "", options(true));
  now_ += 1;
  progress.update(0);
  EXPECT_EQ(shown(), "\r0 of 20\033[K");
  now_ += 65;
  progress.update(10);
  shown();
  now_ += 0.01;
  progress.update(20);
  EXPECT_EQ(shown(), "\r20 of 20, 0.308 steps/s, 1:05\033[K\n");
}

TEST_F(ProgressTest, ElsewhereIsQuietButForLinesThatStay) {
  {
    Progress progress(100, "training", options(false));
    for (int step = 0; step <= 100; ++step, now_ += 10) progress.update(step);
    EXPECT_EQ(shown(), "");
    progress.print("saved");
  }
  EXPECT_EQ(shown(), "saved\n");
}

TEST_F(ProgressTest, TheRateFollowsTheLastSeconds) {
  Progress progress(100'000, "", options(true));
  int step = 0;
  const auto run = [&](double seconds, int steps_per_second) {
    for (double end = now_ + seconds; now_ < end; now_ += 0.25)
      progress.update(step += steps_per_second / 4);
  };
  run(20, 40);
  shown();
  run(12, 4000);
  const std::string text = shown();
  EXPECT_EQ(text.substr(text.rfind('\r')), "\r48,800 of 100,000, 4,000 steps/s, 0:13 left\033[K");
}

TEST_F(ProgressTest, CountsUnitsAndLongTimes) {
  ProgressOptions with_units = options(true);
  with_units.unit = "characters";
  with_units.units_per_step = 2048;
  Progress progress(1'000'000, "", with_units);
  progress.update(0);
  now_ += 10;
  progress.update(100);
  EXPECT_EQ(shown(), "\r100 of 1,000,000, 20,480 characters/s, 27:46:30 left\033[K");
  now_ += 1000;
  progress.update(101);
  EXPECT_NE(shown().find(" days left"), std::string::npos);
}

TEST_F(ProgressTest, WithoutATotalThereIsNoTimeLeft) {
  Progress progress(0, "reading", options(true));
  progress.update(0);
  now_ += 1;
  progress.update(500);
  EXPECT_EQ(shown(), "\rreading: 500, 500 steps/s\033[K");
}

TEST_F(ProgressTest, EndsWithTheLastStepOfAnUnknownNumber) {
  {
    Progress progress(0, "reading", options(true));
    progress.update(0);
    now_ += 64;
    progress.update(500, {{"loss", 2}});
    shown();
    now_ += 0.01;
    progress.update(512, {{"loss", 1.5}, {"norm", 3}});
    EXPECT_EQ(shown(), "");
  }
  EXPECT_EQ(shown(), "\rreading: 512, loss 1.5, norm 3, 8 steps/s, 1:04\033[K\n");
}

TEST_F(ProgressTest, EndsWithTheLastStepOfALoopThatWasLeft) {
  {
    Progress progress(1000, "", options(true));
    progress.update(0);
    now_ += 10;
    progress.update(100);
    shown();
    progress.update(110);
  }
  EXPECT_EQ(shown(), "\r110 of 1,000, 11 steps/s, 1:21 left\033[K\n");
}

TEST_F(ProgressTest, LinesThatStayTakeThePlaceOfTheOneThatDoesNot) {
  Progress progress(10, "", options(true));
  progress.print("to begin with");
  EXPECT_EQ(shown(), "to begin with\n");
  now_ += 1;
  progress.update(1);
  shown();
  progress.print("traced");
  EXPECT_EQ(shown(), "\rtraced\033[K\n");
}

TEST_F(ProgressTest, NeverTakesTheLastColumn) {
  Progress progress(10, "größer", options(true, 12));
  now_ += 1;
  progress.update(1);
  EXPECT_EQ(shown(), "\rgrößer: 1 o\033[K");
}

TEST_F(ProgressTest, NumbersThatAreNoneAreShownAsSuch) {
  Progress progress(10, "", options(true));
  now_ += 1;
  progress.update(1, {{"loss", std::nan("")}});
  EXPECT_EQ(shown(), "\r1 of 10, loss nan\033[K");
}

TEST_F(ProgressTest, StepsThatGoBackHaveNoRate) {
  Progress progress(10, "", options(true));
  progress.update(5);
  now_ += 1;
  progress.update(4);
  EXPECT_EQ(shown(), "\r4 of 10\033[K");
}

}  // namespace
}  // namespace reel
