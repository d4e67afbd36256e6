// Saving: the path has the complete new file, or the old one.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <thread>

#include "reel/core/ops.h"
#include "reel/frontend/files/safetensors.h"
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

TEST_F(SavingTest, ALinkToAFileThatIsNotThereStaysALink) {
  fs::create_directory(folder_ / "runs");
  fs::create_symlink("runs/latest", folder_ / "latest");
  fs::create_symlink("7.safetensors", folder_ / "runs/latest");
  const std::string link = (folder_ / "latest").string();
  save_safetensors(link, ones({2}));
  EXPECT_TRUE(fs::is_symlink(link) && fs::is_symlink(folder_ / "runs/latest"));
  EXPECT_TRUE(fs::is_regular_file(fs::symlink_status(folder_ / "runs/7.safetensors")));
  Tensor loaded = zeros({2});
  load_safetensors(link, loaded);
  expect_values(loaded, {1, 1});
}

TEST_F(SavingTest, LinksThatLeadNowhereNameTheReason) {
  const auto error = [](const std::string& to) {
    return message_of<IoError>([&] {
      save_safetensors(to, ones({2}));
      return 0;
    });
  };
  const std::string circle = (folder_ / "circle").string(), lost = (folder_ / "lost").string();
  fs::create_symlink("circle", circle);
  fs::create_symlink("missing/model", lost);
  EXPECT_EQ(error(circle),
            "save_safetensors: cannot write " + circle + ": Too many levels of symbolic links");
  EXPECT_EQ(error(lost), "save_safetensors: cannot write " + lost + ": No such file or directory");
  EXPECT_EQ(files().size(), 2u);
}

TEST_F(SavingTest, NoFileOfTheUsersIsTouched) {
  const std::vector<std::string> names{".reel-part",
                                       ".reel-part-1",
                                       ".reel-part-",
                                       ".reel-partial",
                                       ".reel-part-0123456789abcdeg",
                                       ".reel-part-0123456789abcdef0"};
  for (const std::string& name : names) write(path + name, "notes");
  save_safetensors(path, ones({2}));
  save_safetensors(path, zeros({2}));
  for (const std::string& name : names) EXPECT_EQ(bytes_of(path + name), "notes") << name;
  EXPECT_EQ(files().size(), names.size() + 1);
}

TEST_F(SavingTest, NextSaveRemovesTheFileOfAKilledSave) {
  save_safetensors(path, ones({2}));
  const pid_t child = ::fork();
  if (child == 0) {
    // This signal ends the program as SIGKILL does, but always in the middle of a file.
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
  const std::string others = path + ".reel-part-0123456789abcdef";
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

/// Returns the bytes that `save` writes to a descriptor.
template <class Save>
std::string written_to_pipe(const Save& save) {
  int ends[2];
  EXPECT_EQ(::pipe(ends), 0);
  save(ends[1]);
  ::close(ends[1]);
  std::string bytes;
  char block[4096];
  for (ssize_t got; (got = ::read(ends[0], block, sizeof block)) > 0;)
    bytes.append(block, static_cast<std::size_t>(got));
  ::close(ends[0]);
  return bytes;
}

TEST_F(SavingTest, ADescriptorIsWrittenTo) {
  save_safetensors(path, ones({2}));
  const std::string whole = bytes_of(path);
  for (const std::string folder : {"/dev/fd/", "/proc/self/fd/"})
    EXPECT_EQ(written_to_pipe(
                  [&](int end) { save_safetensors(folder + std::to_string(end), ones({2})); }),
              whole);
  EXPECT_EQ(written_to_pipe([&](int end) {
              const std::string link = (folder_ / "stdout").string();
              fs::create_symlink("/proc/self/fd/" + std::to_string(end), link);
              save_safetensors(link, ones({2}));
            }),
            whole);
  // A descriptor of a file works as well: saving appends at its position and leaves its name alone.
  const std::string log = (folder_ / "log").string();
  const int file = ::open(log.c_str(), O_WRONLY | O_CREAT, 0600);
  ASSERT_EQ(::write(file, "head", 4), 4);
  save_safetensors("/dev/fd/" + std::to_string(file), ones({2}));
  ASSERT_EQ(::write(file, "tail", 4), 4);
  ::close(file);
  EXPECT_EQ(bytes_of(log), "head" + whole + "tail");
  EXPECT_EQ(message_of<IoError>([] {
              save_safetensors("/dev/fd/999", ones({2}));
              return 0;
            }),
            "save_safetensors: cannot write /dev/fd/999: Bad file descriptor");
}

TEST_F(SavingTest, AClosedPipeIsAnErrorAndNoSignal) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  ::close(ends[0]);
  const std::string to = "/dev/fd/" + std::to_string(ends[1]);
  EXPECT_EQ(message_of<IoError>([&] {
              save_safetensors(to, ones({2}));
              return 0;
            }),
            "save_safetensors: cannot write " + to + ": Broken pipe");
  ::close(ends[1]);
  sigset_t pending;
  ::sigpending(&pending);
  EXPECT_EQ(::sigismember(&pending, SIGPIPE), 0);
}

TEST_F(SavingTest, ANamedPipeIsWrittenTo) {
  save_safetensors(path, ones({2}));
  const std::string whole = bytes_of(path), pipe = (folder_ / "pipe").string();
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  std::string got;
  std::thread reader([&] { got = bytes_of(pipe); });
  save_safetensors(pipe, ones({2}));
  reader.join();
  EXPECT_EQ(got, whole);
  EXPECT_TRUE(fs::is_fifo(pipe));
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
