// Saving: a file is there as a whole, or as it was.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "reel/core/ops.h"
#include "reel/frontend/safetensors.h"
#include "reel/tests/check.h"
#include "reel/tests/own_folder.h"

namespace reel {
namespace {

namespace fs = std::filesystem;

class SavingTest : public InOwnFolder {
 protected:
  SavingTest() : InOwnFolder("model.safetensors") {}
};

TEST_F(SavingTest, ReplacesAFileAndLeavesNoOther) {
  save_safetensors(path, ones({2}));
  fs::permissions(path, fs::perms::owner_read | fs::perms::owner_write);
  save_safetensors(path, zeros({2}));
  Tensor loaded = ones({2});
  load_safetensors(path, loaded);
  expect_values(loaded, {0, 0});
  EXPECT_EQ(files(), std::vector<std::string>{"model.safetensors"});
  EXPECT_EQ(fs::status(path).permissions(), fs::perms::owner_read | fs::perms::owner_write);
}

TEST_F(SavingTest, ALinkStaysALink) {
  save_safetensors(path, ones({2}));
  const std::string link = (folder_ / "latest").string();
  fs::create_symlink("model.safetensors", link);
  save_safetensors(link, zeros({2}));
  EXPECT_TRUE(fs::is_symlink(link));
  Tensor loaded = ones({2});
  load_safetensors(path, loaded);
  expect_values(loaded, {0, 0});
}

TEST_F(SavingTest, WhatAKilledSaveLeftGoesWithTheNext) {
  save_safetensors(path, ones({2}));
  const pid_t child = ::fork();
  if (child == 0) {
    // This signal ends a program as SIGKILL does, but always in the middle of a file.
    std::signal(SIGXFSZ, SIG_DFL);
    const rlimit none{0, 0}, few{64, 64};
    ::setrlimit(RLIMIT_CORE, &none);
    ::setrlimit(RLIMIT_FSIZE, &few);
    save_safetensors(path, zeros({1000}));
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGXFSZ);
  EXPECT_EQ(files().size(), 2u);
  Tensor loaded = zeros({2});
  load_safetensors(path, loaded);
  expect_values(loaded, {1, 1});
  save_safetensors(path, zeros({2}));
  load_safetensors(path, loaded);
  expect_values(loaded, {0, 0});
  EXPECT_EQ(files(), std::vector<std::string>{"model.safetensors"});
}

TEST_F(SavingTest, AFileThatAnotherProgramWritesIsLeftAlone) {
  const std::string others = path + ".reel-part";
  write(others, "half");
  const int file = ::open(others.c_str(), O_WRONLY);
  ASSERT_EQ(::flock(file, LOCK_EX), 0);
  save_safetensors(path, ones({2}));
  EXPECT_EQ(bytes_of(others), "half");
  EXPECT_EQ(files().size(), 2u);
  ::close(file);
  save_safetensors(path, zeros({2}));
  EXPECT_EQ(files(), std::vector<std::string>{"model.safetensors"});
}

TEST_F(SavingTest, AFileThatCannotBeWrittenNamesPathAndReason) {
  const auto error = [](const std::string& to) {
    return message_of<IoError>([&] {
      save_safetensors(to, ones({2}));
      return 0;
    });
  };
  const std::string missing = (folder_ / "missing" / "model").string(), folder = folder_.string();
  EXPECT_EQ(error(missing),
            "save_safetensors: cannot write " + missing + ": No such file or directory");
  EXPECT_EQ(error(folder), "save_safetensors: cannot write " + folder + ": Is a directory");
  EXPECT_EQ(error(folder + "/"), "save_safetensors: cannot write " + folder + "/: Is a directory");
  EXPECT_EQ(error(""), "save_safetensors: cannot write : No such file or directory");
  save_safetensors(path, ones({2}));
  EXPECT_EQ(error(path + "/model"),
            "save_safetensors: cannot write " + path + "/model: Not a directory");
  EXPECT_EQ(files(), std::vector<std::string>{"model.safetensors"});
}

TEST_F(SavingTest, AFullDeviceIsAnError) {
  EXPECT_EQ(message_of<IoError>([] {
              save_safetensors("/dev/full", ones({2}));
              return 0;
            }),
            "save_safetensors: cannot write /dev/full: No space left on device");
  EXPECT_TRUE(fs::is_character_file("/dev/full"));
}

TEST_F(SavingTest, AFileThatDoesNotFitLeavesTheOldOne) {
  save_safetensors(path, ones({2}));
  // A limit on the size of files fails as a full disk does.
  struct rlimit before {};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  struct rlimit small = before;
  small.rlim_cur = 4096;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const std::string message = message_of<IoError>([&] {
    save_safetensors(path, ones({100000}));
    return 0;
  });
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(message, "save_safetensors: cannot write " + path + ": File too large");
  EXPECT_EQ(files(), std::vector<std::string>{"model.safetensors"});
  Tensor loaded = zeros({2});
  load_safetensors(path, loaded);
  expect_values(loaded, {1, 1});
}

}  // namespace
}  // namespace reel
