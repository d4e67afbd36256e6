// The programs beam_search and greedy: texts from the model that char_rnn has trained, the same in
// eager mode and traced, and one line for every error.
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <sstream>
#include <thread>

#include "program_test.h"

namespace {

/// A program, and a small model that char_rnn has trained for it.
class WriterTest : public ProgramTest {
 protected:
  using ProgramTest::ProgramTest;
  void SetUp() override {
    ProgramTest::SetUp();
    std::ofstream text(folder_ / "text");
    for (int i = 0; i < 200; ++i) text << "line " << i << " of a text, " << i * i << ".\n";
  }
  /// Runs another program in the same folder, and returns its output. Fails the test if the run
  /// fails.
  std::string output_of(const std::string& name, const std::string& path,
                        const Arguments& arguments) {
    const std::string own_name = std::exchange(name_, name), own = std::exchange(path_, path);
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.code, 0) << outcome.error;
    name_ = own_name;
    path_ = own;
    return outcome.out;
  }
  void train_model(const Arguments& more) {
    Arguments arguments{"--length", "16",  "--batch",      "8",      "--hidden",     "16",
                        "--steps",  "300", "--mode",       "traced", "--characters", "0",
                        "--losses", "csv", "--checkpoint", "model"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    output_of("char_rnn", REEL_CHAR_RNN, arguments);
  }
  /// Returns the output of a run. Fails the test if the run fails.
  std::string output(Arguments arguments) const {
    arguments.insert(arguments.end(), {"--checkpoint", "model"});
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.code, 0) << outcome.error;
    return outcome.out;
  }
};

const Arguments kText{"--data", "text"};

/// Returns the lines of prompts and continuations, without the speeds behind them.
std::vector<std::string> continuations(const std::string& output) {
  std::istringstream in(output);
  std::vector<std::string> result;
  for (std::string line; std::getline(in, line);)
    if (const std::size_t at = line.find('|'); at != std::string::npos && line[0] == ' ')
      if (line.find("prompt|continuation") == std::string::npos) result.push_back(line);
  return result;
}
std::string text_of(const std::string& line) { return line.substr(line.find('|') + 1); }

class BeamSearchTest : public WriterTest {
 protected:
  BeamSearchTest() : WriterTest("beam_search", REEL_BEAM_SEARCH) {}
};

TEST_F(BeamSearchTest, EagerAndTracedFindTheSameForEveryCell) {
  for (const char* cell : {"lstm", "gru", "rnn"}) {
    train_model({"--data", "text", "--cell", cell, "--layers", "2"});
    const Arguments flags{"--prompt", "line 1", "",       "of a", "--limit", "12",
                          "30",       "0",      "--beam", "5",    "--best",  "5"};
    Arguments eager = flags, traced = flags;
    eager.insert(eager.end(), {"--mode", "eager"});
    traced.insert(traced.end(), {"--mode", "traced"});
    const auto lines = continuations(output(traced));
    EXPECT_EQ(lines.size(), 11u);  // there is one way to continue by nothing
    EXPECT_EQ(lines, continuations(output(eager))) << cell;
    EXPECT_EQ(text_of(lines.back()), "");
    const std::string both = output(flags);
    EXPECT_EQ(lines, continuations(both));
    EXPECT_NE(both.find("eager: "), std::string::npos);
    EXPECT_NE(both.find("traced: "), std::string::npos);
    EXPECT_EQ(both.find("another text"), std::string::npos);
  }
}

TEST_F(BeamSearchTest, EndsWithTheLineOrAtTheLimit) {
  train_model(kText);
  const auto lines = continuations(
      output({"--prompt", "line 10 of a", "line", "--limit", "60", "5", "--mode", "traced"}));
  ASSERT_EQ(lines.size(), 2u);
  const std::string finished = text_of(lines[0]);
  ASSERT_GT(finished.size(), 2u);
  EXPECT_EQ(finished.find("\\n"), finished.size() - 2) << finished;
  EXPECT_EQ(text_of(lines[1]).size(), 5u) << lines[1];
  const auto to_comma =
      continuations(output({"--prompt", "line 10 of a", "--end", ",", "--mode", "traced"}));
  ASSERT_EQ(to_comma.size(), 1u);
  EXPECT_EQ(text_of(to_comma[0]).find(','), text_of(to_comma[0]).size() - 1) << to_comma[0];
}

TEST_F(BeamSearchTest, ErrorsNameFilePromptOrFlag) {
  expect_error(run({}),
               "there is no char_rnn.safetensors; train a model with char_rnn, or name its file "
               "with --checkpoint");
  const Outcome damaged = run({"--checkpoint", "text"});
  EXPECT_EQ(damaged.code, 1);
  EXPECT_EQ(damaged.error.find("beam_search: SafetensorsFile: text is not a safetensors file"), 0u)
      << damaged.error;
  train_model(kText);
  const auto fails = [&](Arguments more, const std::string& message, int code = 1) {
    more.insert(more.end(), {"--checkpoint", "model"});
    expect_error(run(more), message, code);
  };
  fails({"--prompt", "line", "li#e"},
        "the model has never seen character 3 of the prompt \"li#e\"");
  fails({"--prompt", "line", "text", "--limit", "3", "4", "5"},
        "there are 2 prompts, and --limit has 3 numbers; give one, or one for each");
  fails({"--prompt", "line", "--end", "ab"}, "--end must be one character that the model has seen");
  fails({"--beam", "0"}, "--beam: Value 0 not in range 1 to 10000; --help lists the options", 2);
  fails({"--length-exponent", "nan"},
        "--length-exponent: nan is no exponent; --help lists the options", 2);
  train_model({"--task", "adding"});
  fails({}, "model holds a model that writes no text: it has no alphabet");
}

class GreedyTest : public WriterTest {
 protected:
  GreedyTest() : WriterTest("greedy", REEL_GREEDY) {}
};

TEST_F(GreedyTest, TextIsTheSameForEachModeAndWindowSize) {
  train_model({"--data", "text", "--cell", "gru"});
  const Arguments flags{"--prompt", "line 1", "--characters", "50"};
  const auto with = [&](Arguments more) {
    more.insert(more.end(), flags.begin(), flags.end());
    return output(more);
  };
  const std::string text = with({});
  EXPECT_EQ(text.size(), 6u + 50 + 1);
  EXPECT_EQ(text.substr(0, 6), "line 1");
  for (const char* mode : {"eager", "traced"})
    for (const char* chunk : {"1", "7", "64"})
      EXPECT_EQ(with({"--mode", mode, "--piece", chunk}), text);
  EXPECT_EQ(output({"--characters", "0", "--prompt", "line"}), "line\n");
}

TEST_F(GreedyTest, WritesTheTextOfABeamOfOne) {
  train_model(kText);
  const std::string text = output({"--prompt", "line 10", "--characters", "40"});
  const auto lines = continuations(
      output_of("beam_search", REEL_BEAM_SEARCH,
                {"--checkpoint", "model", "--prompt", "line 10", "--beam", "1", "--limit", "40"}));
  ASSERT_EQ(lines.size(), 1u);
  std::string found = text_of(lines[0]);
  if (const std::size_t end = found.find("\\n"); end != std::string::npos)
    found.replace(end, 2, "\n");
  EXPECT_EQ(text.substr(7, found.size()), found);
}

TEST_F(GreedyTest, WritesWhileItGoesOn) {
  train_model(kText);
  const pid_t child = start({"--checkpoint", "model", "--characters", "1000000000"});
  const auto size = [&] {
    std::error_code none;
    const auto bytes = fs::file_size(folder_ / "out", none);
    return none ? 0 : bytes;
  };
  siginfo_t finished{};
  while (size() < 100 && finished.si_pid != child) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));  // there is no event to wait on
    if (::waitid(P_PID, static_cast<id_t>(child), &finished, WEXITED | WNOHANG | WNOWAIT) != 0)
      break;
  }
  ::kill(child, SIGKILL);
  const Outcome outcome = wait_for(child);
  EXPECT_EQ(outcome.code, -SIGKILL) << outcome.error;
  EXPECT_GE(outcome.out.size(), 100u);
}

TEST_F(GreedyTest, UnseenCharactersAndFullDevicesAreErrors) {
  train_model(kText);
  expect_error(run({"--checkpoint", "model", "--prompt", "#"}),
               "the model has never seen character 1 of the prompt \"#\"");
  const Outcome full =
      run({"--checkpoint", "model"}, [] { ::dup2(::open("/dev/full", O_WRONLY), STDOUT_FILENO); });
  expect_error(full, "cannot write to standard output");
}

}  // namespace
