// tests/examples/program_test.h — ProgramTest, the fixture of tests that run whole programs.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace fs = std::filesystem;
using Arguments = std::vector<std::string>;

inline std::string content_of(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  EXPECT_TRUE(in) << path;
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

struct Outcome {
  int code;  ///< the exit code, or minus the signal
  std::string out, error;
};

/// A training program, and a folder of its own for each test, in which it runs.
class ProgramTest : public ::testing::Test {
 protected:
  ProgramTest(std::string name, std::string path)
      : name_(std::move(name)), path_(std::move(path)) {}

  void SetUp() override {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    std::string name = std::string(test->test_suite_name()) + '.' + test->name();
    for (char& c : name)
      if (c == '/') c = '_';
    folder_ = fs::current_path() / name_ / name;
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }

  pid_t start(const Arguments& arguments, const std::function<void()>& prepare = {}) const {
    const pid_t child = ::fork();
    if (child != 0) return child;
    if (::chdir(folder_.c_str()) != 0) ::_exit(99);
    ::dup2(::open("out", O_WRONLY | O_CREAT | O_TRUNC, 0666), STDOUT_FILENO);
    ::dup2(::open("error", O_WRONLY | O_CREAT | O_TRUNC, 0666), STDERR_FILENO);
    if (prepare) prepare();
    std::vector<char*> words{const_cast<char*>(name_.c_str())};
    for (const std::string& word : arguments) words.push_back(const_cast<char*>(word.c_str()));
    words.push_back(nullptr);
    ::execv(path_.c_str(), words.data());
    ::_exit(98);
  }
  Outcome wait_for(pid_t child) const {
    int status = 0;
    ::waitpid(child, &status, 0);
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status),
            content_of(folder_ / "out"), content_of(folder_ / "error")};
  }
  Outcome run(const Arguments& arguments, const std::function<void()>& prepare = {}) const {
    return wait_for(start(arguments, prepare));
  }
  /// Runs the program on a small model with its files in the folder `name`. Fails the test if it
  /// fails. Returns its output.
  std::string train(const std::string& name, Arguments more) const {
    const Outcome outcome = run(with_files(name, std::move(more)));
    EXPECT_EQ(outcome.code, 0) << outcome.error;
    return outcome.out;
  }
  Arguments with_files(const std::string& name, Arguments more) const {
    fs::create_directories(folder_ / name);
    more.insert(more.end(), {"--checkpoint", name + "/model"});
    if (std::find(more.begin(), more.end(), "--resume") == more.end())
      more.insert(more.end(), {"--losses", name + "/losses.csv"});
    return more;
  }
  void expect_error(const Outcome& outcome, const std::string& message, int code = 1) const {
    EXPECT_EQ(outcome.code, code);
    EXPECT_EQ(outcome.error, name_ + ": " + message + '\n');
  }
  std::string file(const std::string& name) const { return content_of(folder_ / name); }
  void expect_same_training(const std::string& a, const std::string& b) const {
    EXPECT_EQ(file(a + "/losses.csv"), file(b + "/losses.csv"));
    EXPECT_TRUE(file(a + "/model") == file(b + "/model")) << "checkpoints differ";
  }
  /// Expects that training stopped after `steps` steps and resumed gives the files of an
  /// uninterrupted run.
  void expect_same_in_parts(Arguments arguments, const std::string& steps) const {
    train("whole", arguments);
    arguments.insert(arguments.end(), {"--stop-after", steps});
    train("parts", arguments);
    train("parts", {"--resume"});
    expect_same_training("whole", "parts");
  }
  /// Expects the same training on one and two threads, and if the number of threads changes on
  /// resuming. The model is large enough for loops to split the batch over threads, in row blocks
  /// of at least eight sequences.
  void expect_same_on_any_threads(Arguments arguments) const {
    arguments.insert(arguments.end(),
                     {"--batch", "32", "--hidden", "96", "--steps", "10", "--threads"});
    const auto with = [&](Arguments more) {
      more.insert(more.begin(), arguments.begin(), arguments.end());
      return more;
    };
    train("one", with({"1"}));
    train("two", with({"2"}));
    expect_same_training("one", "two");
    train("other", with({"2", "--stop-after", "5"}));
    train("other", {"--resume", "--threads", "1"});
    expect_same_training("one", "other");
  }

  std::string name_, path_;
  fs::path folder_;
};
