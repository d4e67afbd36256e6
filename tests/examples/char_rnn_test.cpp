// The program char_rnn: resumed training equals uninterrupted training after any kind of stop; one
// seed gives one text; every error is one line.
#include <sys/resource.h>
#include <sys/stat.h>

#include <chrono>
#include <csignal>
#include <thread>

#include "program_test.h"

namespace {

class CharRnnTest : public ProgramTest {
 protected:
  CharRnnTest() : ProgramTest("char_rnn", REEL_CHAR_RNN) {}
  void SetUp() override {
    ProgramTest::SetUp();
    std::ofstream text(folder_ / "text");
    for (int i = 0; i < 200; ++i) text << "line " << i << " of a text, " << i * i << ".\n";
  }
  std::string train(const std::string& name, const Arguments& more) const {
    return ProgramTest::train(name, silent(more));
  }
  Arguments with_files(const std::string& name, const Arguments& more) const {
    return ProgramTest::with_files(name, silent(more));
  }
  static Arguments silent(Arguments arguments) {
    arguments.insert(arguments.end(), {"--characters", "0"});
    return arguments;
  }
  /// Waits until the program has written a checkpoint after this one. Returns false if the program
  /// ended first.
  bool wait_for_another(const fs::path& checkpoint, ino_t before, pid_t child) const {
    struct stat status {};
    while (::stat(checkpoint.c_str(), &status) != 0 || status.st_ino == before) {
      siginfo_t finished{};
      if (::waitid(P_PID, static_cast<id_t>(child), &finished, WEXITED | WNOHANG | WNOWAIT) != 0 ||
          finished.si_pid == child)
        return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));  // there is no event to wait on
    }
    return true;
  }
};

const Arguments kSmall{"--data",   "text", "--length",           "8", "--batch", "3",
                       "--hidden", "6",    "--checkpoint-every", "5"};

Arguments small(const Arguments& more) {
  Arguments all = kSmall;
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

// ---- Going on -----------------------------------------------------------------------

class CharRnnResumeTest : public CharRnnTest, public ::testing::WithParamInterface<Arguments> {};
INSTANTIATE_TEST_SUITE_P(
    Every, CharRnnResumeTest,
    ::testing::Values(Arguments{"--mode", "eager"}, Arguments{"--mode", "traced"},
                      Arguments{"--mode", "both", "--steps", "50"},
                      Arguments{"--mode", "traced", "--cell", "gru", "--layers", "2"},
                      Arguments{"--mode", "eager", "--cell", "rnn", "--layers", "3"}));

TEST_P(CharRnnResumeTest, GoesOnAsIfItHadNotStopped) {
  Arguments arguments = small(GetParam());
  if (arguments.back() != "50") arguments.insert(arguments.end(), {"--steps", "24"});
  expect_same_in_parts(arguments, "12");
}

TEST_F(CharRnnTest, RandomDataGoOnToo) {
  const Arguments adding{"--task", "adding",   "--length", "10",      "--batch",
                         "3",      "--hidden", "6",        "--steps", "20"};
  expect_same_in_parts(adding, "10");
}

TEST_F(CharRnnTest, LossesAreTheSameOnAnyNumberOfThreads) {
  expect_same_on_any_threads(silent({"--data", "text", "--mode", "traced", "--length", "8"}));
}

TEST_F(CharRnnTest, AKillLosesNothingBeforeTheLastCheckpoint) {
  const Arguments long_run = small({"--steps", "1500", "--mode", "traced"});
  train("whole", long_run);
  Arguments arguments = with_files("killed", long_run);
  const fs::path checkpoint = folder_ / "killed" / "model";
  ino_t last = 0;
  for (int kills = 0; kills < 3; ++kills) {
    const pid_t child = start(arguments);
    const bool is_running = wait_for_another(checkpoint, last, child);
    ::kill(child, SIGKILL);
    wait_for(child);
    if (!is_running) break;
    struct stat status {};
    ASSERT_EQ(::stat(checkpoint.c_str(), &status), 0);
    last = status.st_ino;
    arguments = with_files("killed", {"--resume"});
  }
  train("killed", {"--resume"});
  expect_same_training("whole", "killed");
}

TEST_F(CharRnnTest, AnInterruptSavesAndSaysSo) {
  const Arguments arguments = small({"--steps", "1500"});
  train("whole", arguments);
  for (const int signal : {SIGINT, SIGTERM}) {
    const std::string name = "stopped" + std::to_string(signal);
    const pid_t child = start(with_files(name, arguments));
    const bool is_running = wait_for_another(folder_ / name / "model", 0, child);
    ::kill(child, signal);
    const Outcome outcome = wait_for(child);
    if (is_running) {
      EXPECT_EQ(outcome.code, 128 + signal);
    }
    EXPECT_NE(outcome.out.find("--resume continues"), std::string::npos) << outcome.out;
    train(name, {"--resume"});
    expect_same_training("whole", name);
  }
}

TEST_F(CharRnnTest, MoreStepsCanBeAskedForLater) {
  train("a", small({"--steps", "10"}));
  EXPECT_NE(train("a", {"--resume"}).find("no step to take: 10 are done of --steps 10"),
            std::string::npos);
  train("a", {"--resume", "--steps", "15"});
  const std::string rows = file("a/losses.csv");
  EXPECT_EQ(std::count(rows.begin(), rows.end(), '\n'), 16);
  EXPECT_NE(rows.find("\n15,"), std::string::npos);
}

TEST_F(CharRnnTest, RowsOfStepsThatAreTakenAgainAreCutOff) {
  train("a", small({"--steps", "20", "--stop-after", "10"}));
  train("whole", small({"--steps", "20"}));
  std::ofstream(folder_ / "a/losses.csv", std::ios::app) << "11,eager,9.9\n12,ea";
  train("a", {"--resume"});
  expect_same_training("whole", "a");
}

TEST_F(CharRnnTest, FilesThatAreNotNamedAreThoseOfBefore) {
  const Arguments arguments = small({"--steps", "20", "--plot", "whole.svg"});
  train("whole", arguments);
  train("a", small({"--steps", "20", "--stop-after", "10", "--plot", "a/curve.svg"}));
  fs::rename(folder_ / "a", folder_ / "b");  // files beside the checkpoint move with it
  train("b", {"--resume"});
  EXPECT_EQ(file("b/losses.csv"), file("whole/losses.csv"));
  EXPECT_EQ(file("b/curve.svg"), file("whole.svg"));
  train("b", {"--resume", "--steps", "25", "--plot", "c.svg"});
  EXPECT_EQ(file("b/curve.svg"), file("whole.svg"));
  fs::remove(folder_ / "c.svg");
  train("b", {"--resume", "--steps", "30"});
  EXPECT_TRUE(fs::exists(folder_ / "c.svg"));
}

TEST_F(CharRnnTest, AResumedRunWritesAsItWasToldBefore) {
  const auto written = [&](const Arguments& more) {
    Arguments arguments{"--resume", "--checkpoint", "model"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.code, 0) << outcome.error;
    return outcome.out.substr(outcome.out.find("\n\n") + 2);
  };
  const Outcome first = run(small(
      {"--steps", "10", "--checkpoint", "model", "--characters", "30", "--temperature", "0.3"}));
  EXPECT_EQ(first.code, 0) << first.error;
  const std::string text = written({});
  EXPECT_EQ(text.size(), 31u);
  EXPECT_EQ(written({"--temperature", "0.3", "--characters", "30"}), text);
  EXPECT_NE(written({"--temperature", "5"}), text);  // this is saved, too
  EXPECT_NE(written({}), text);
  EXPECT_EQ(written({"--characters", "5"}).size(), 6u);
  EXPECT_EQ(written({}).size(), 6u);
}

// ---- Writing ------------------------------------------------------------------------

TEST_F(CharRnnTest, WritesTheSameFromTheSameSeed) {
  train("a", small({"--steps", "10"}));
  const auto sample = [&](Arguments more) {
    more.insert(more.end(), {"--sample", "--checkpoint", "a/model"});
    const Outcome outcome = run(more);
    EXPECT_EQ(outcome.code, 0) << outcome.error;
    return outcome.out;
  };
  const std::string text = sample({"--characters", "50"});
  EXPECT_EQ(text.size(), 51u);
  EXPECT_EQ(sample({"--characters", "50"}), text);
  EXPECT_NE(sample({"--characters", "50", "--seed", "2"}), text);
  EXPECT_NE(sample({"--characters", "50", "--temperature", "5"}), text);
}

TEST_F(CharRnnTest, DrawsACurveWithBothPhases) {
  const std::string out = train("a", small({"--steps", "40", "--plot", "a.svg"}));
  const std::string svg = file("a.svg");
  EXPECT_EQ(svg.substr(0, 4), "<svg");
  for (const char* part : {"traced from step 31", "bits per character", ">step<", "</svg>"})
    EXPECT_NE(svg.find(part), std::string::npos) << part;
  EXPECT_NE(out.find("traced from step 31"), std::string::npos);
  EXPECT_NE(out.find("┤"), std::string::npos);
}

// ---- Errors -------------------------------------------------------------------------

class CharRnnErrorTest : public CharRnnTest {};

TEST_F(CharRnnErrorTest, WrongFlagsAreRefusedInOneLine) {
  const std::string hint = "; --help lists the options";
  expect_error(run({"--no-such-flag"}),
               "The following argument was not expected: --no-such-flag" + hint, 2);
  for (const Arguments& wrong :
       {Arguments{"--cell", "transformer"}, Arguments{"--steps", "0"}, Arguments{"--steps", "many"},
        Arguments{"--temperature", "0"}, Arguments{"--temperature", "nan"},
        Arguments{"--resume", "--sample"}, Arguments{"--threads", "0"},
        Arguments{"--threads", "1025"}, Arguments{"--seed", "-1"}}) {
    const Outcome outcome = run(wrong);
    EXPECT_EQ(outcome.code, 2);
    EXPECT_EQ(std::count(outcome.error.begin(), outcome.error.end(), '\n'), 1) << outcome.error;
    EXPECT_NE(outcome.error.find(wrong[0]), std::string::npos) << outcome.error;
  }
}

TEST_F(CharRnnErrorTest, TextsThatAreNone) {
  expect_error(run({"--data", "nowhere"}),
               "cannot read " + (folder_ / "nowhere").string() + ": No such file or directory");
  std::ofstream(folder_ / "empty");
  expect_error(run({"--data", "empty"}), (folder_ / "empty").string() + " is empty");
  std::ofstream(folder_ / "short") << "abc";
  expect_error(run({"--data", "short"}), "the text has 3 bytes, but --length 64 needs at least 65");
  expect_error(run({"--task", "adding", "--data", "text"}), "the adding problem needs no --data");
}

#ifndef REEL_HAS_DISTRIBUTED
TEST_F(CharRnnErrorTest, ShardsInABuildWithoutThem) {
  expect_error(run(small({"--shards", "3"})),
               "--shards needs reel::distributed, which this build lacks: there was no MPI for C "
               "(Debian: libopenmpi-dev openmpi-bin)");
}
#endif

TEST_F(CharRnnErrorTest, AnotherTextOfTheSameBytes) {
  train("a", small({"--steps", "5"}));
  std::string text = file("text");
  std::reverse(text.begin(), text.end());
  std::ofstream(folder_ / "text") << text;
  const Outcome outcome = run(with_files("a", {"--resume", "--steps", "9"}));
  expect_error(
      outcome,
      "a/model can continue only with the text of its training so far (d83e9bc21d361cef), but " +
          (folder_ / "text").string() + " is another one (976e29f400ec84e7)");
}

TEST_F(CharRnnErrorTest, CheckpointsOfAnotherModel) {
  train("a", small({"--steps", "5"}));
  expect_error(
      run(with_files("a", {"--resume", "--hidden", "7", "--cell", "gru", "--layers", "2"})),
      "a/model holds another model: it was made with --cell lstm, not gru, --layers "
      "1, not 2, --hidden 6, not 7");
  expect_error(run({"--sample", "--checkpoint", "b"}),
               "SafetensorsFile: cannot open b: No such file or directory");
  train("sums", {"--task", "adding", "--steps", "2", "--hidden", "3", "--length", "4"});
  expect_error(run({"--sample", "--checkpoint", "sums/model"}),
               "sums/model holds a model that writes no text: it has no alphabet");
}

TEST_F(CharRnnErrorTest, LossesOfAnotherTraining) {
  train("a", small({"--steps", "5"}));
  std::ofstream(folder_ / "a/losses.csv") << "something else\n";
  expect_error(run(with_files("a", {"--resume", "--steps", "9"})),
               "a/losses.csv holds no losses of this training: its first line is not "
               "step,mode,bits per character; name another file with --losses");
  train("b", small({"--steps", "10", "--seed", "2"}));
  const std::string before = file("b/losses.csv");
  const Outcome outcome =
      run(with_files("a", {"--resume", "--steps", "9", "--losses", "b/losses.csv"}));
  EXPECT_NE(outcome.error.find("b/losses.csv holds no losses of this training: at step 5 it has a "
                               "loss of "),
            std::string::npos)
      << outcome.error;
  EXPECT_EQ(file("b/losses.csv"), before);
  std::ofstream(folder_ / "a/losses.csv") << "step,mode,bits per character\n1,eager,5.5\n";
  expect_error(run(with_files("a", {"--resume", "--steps", "9"})),
               "a/losses.csv holds no losses of this training: it has no row for step 5, at which "
               "the checkpoint is; name another file with --losses");
}

TEST_F(CharRnnErrorTest, AFileThatCannotBeWrittenIsNamed) {
  expect_error(run(small({"--steps", "5", "--losses", "/dev/full"})),
               "cannot write /dev/full: No space left on device");
  expect_error(run(small({"--steps", "5", "--checkpoint", "/dev/full"})),
               "save_safetensors: cannot write /dev/full: No space left on device");
  expect_error(run(small({"--steps", "5", "--plot", "/dev/full"})),
               "cannot write /dev/full: No space left on device");
  expect_error(run(small({"--steps", "5", "--checkpoint", "nowhere/a"})),
               "cannot write nowhere/a: No such file or directory");
}

TEST_F(CharRnnErrorTest, ACheckpointThatDoesNotFitLeavesTheOldOne) {
  train("a", small({"--steps", "20", "--stop-after", "10"}));
  const std::string before = file("a/model");
  const Outcome outcome = run(with_files("a", {"--resume"}), [] {
    const rlimit limit{4096, 4096};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  });
  expect_error(outcome, "save_safetensors: cannot write a/model: File too large");
  EXPECT_TRUE(file("a/model") == before);
  int files = 0;
  for ([[maybe_unused]] const auto& entry : fs::directory_iterator(folder_ / "a")) ++files;
  EXPECT_EQ(files, 2);
  train("a", {"--resume"});
  train("whole", small({"--steps", "20"}));
  expect_same_training("whole", "a");
}

}  // namespace
