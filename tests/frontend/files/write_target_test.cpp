// Links, files and pipes that another user put into a folder where all may write.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <string>

#include "reel/core/ops.h"
#include "reel/frontend/data/csv_writer.h"
#include "reel/frontend/events/event_writer.h"
#include "reel/frontend/files/safetensors.h"
#include "reel/tests/own_folder.h"

namespace reel {
namespace {

namespace fs = std::filesystem;

constexpr uid_t kOther = 54321, kThird = 54322;

/// A folder like /tmp: sticky, and writable by all. Files of other users take root.
class SharedFolderTest : public InOwnFolder {
 protected:
  SharedFolderTest() : InOwnFolder("model.safetensors") {}
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "only root makes files of other users";
    InOwnFolder::SetUp();
    ASSERT_EQ(::chmod(folder_.c_str(), 01777), 0);
    write(in_folder("victim"), "secret");
  }

  std::string in_folder(const std::string& name) const { return (folder_ / name).string(); }

  void file_of(uid_t owner, const std::string& name) const {
    write(in_folder(name), "planted");
    ASSERT_EQ(::chown(in_folder(name).c_str(), owner, owner), 0);
  }
  void link_of(uid_t owner, const std::string& name, const std::string& target) const {
    fs::create_symlink(target, in_folder(name));
    ASSERT_EQ(::lchown(in_folder(name).c_str(), owner, owner), 0);
  }
  std::string text(const std::string& name) const { return bytes_of(in_folder(name)); }

  /// Returns the message of an IoError of `f` without its place, or "".
  static std::string error_of(const std::function<void()>& f) {
    try {
      f();
    } catch (const IoError& error) {
      return error.message();
    }
    return "";
  }
  std::string saving_error(const std::string& name) const {
    return error_of([&] { save_safetensors(in_folder(name), ones({2})); });
  }

  /// Returns whether `f` succeeds in a process of another user.
  static bool works_as(uid_t user, const std::function<void()>& f) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(::setuid(user) == 0 && error_of(f).empty() ? 0 : 1);
    int status = 1;
    ::waitpid(child, &status, 0);
    return status == 0;
  }
};

TEST_F(SharedFolderTest, LinkOfAnotherUserIsRefused) {
  link_of(kOther, "model", "victim");
  EXPECT_EQ(saving_error("model"),
            "save_safetensors: cannot write " + in_folder("model") + ": " + in_folder("model") +
                " is a link of user 54321 in a folder where all may write; remove it, or write to a"
                " folder of your own");
  EXPECT_EQ(text("victim"), "secret");
}

TEST_F(SharedFolderTest, LaterLinksAreCheckedToo) {
  fs::create_directories(folder_ / "mine");
  fs::create_symlink("../planted", folder_ / "mine/model");
  link_of(kOther, "planted", "victim");
  EXPECT_NE(saving_error("mine/model").find("planted is a link of user 54321"), std::string::npos);
  EXPECT_EQ(text("victim"), "secret");
}

TEST_F(SharedFolderTest, LinkToNoFileIsRefusedToo) {
  link_of(kOther, "model", "missing");
  EXPECT_NE(saving_error("model"), "");
  EXPECT_FALSE(fs::exists(folder_ / "missing"));
}

TEST_F(SharedFolderTest, FileOfAnotherUserGivesNoMode) {
  file_of(kOther, "model");
  ASSERT_EQ(::chmod(in_folder("model").c_str(), 04777), 0);
  EXPECT_NE(saving_error("model").find("is a file of user 54321"), std::string::npos);
  EXPECT_EQ(text("model"), "planted");
}

TEST_F(SharedFolderTest, PipeOfAnotherUserIsRefused) {
  ASSERT_EQ(::mkfifo(in_folder("model").c_str(), 0666), 0);
  ASSERT_EQ(::chown(in_folder("model").c_str(), kOther, kOther), 0);
  EXPECT_NE(saving_error("model").find("is a pipe of user 54321"), std::string::npos);
}

TEST_F(SharedFolderTest, OwnLinksAndFilesAreWritten) {
  link_of(0, "latest", "own");
  EXPECT_EQ(saving_error("latest"), "");
  EXPECT_TRUE(fs::is_symlink(folder_ / "latest"));
  EXPECT_EQ(saving_error("latest"), "");
  EXPECT_EQ(saving_error("own"), "");
}

TEST_F(SharedFolderTest, LinkOfTheFoldersOwnerIsFollowed) {
  ASSERT_EQ(::chown(folder_.c_str(), kOther, kOther), 0);
  link_of(kOther, "latest", "own");
  EXPECT_EQ(saving_error("latest"), "");
}

TEST_F(SharedFolderTest, UserOfTheProcessCounts) {
  link_of(kOther, "of_other", "model");
  link_of(kThird, "of_third", "model");
  const auto save = [&](const char* name) {
    return [this, name] { save_safetensors(in_folder(name), ones({2})); };
  };
  EXPECT_TRUE(works_as(kOther, save("of_other")));
  EXPECT_FALSE(works_as(kOther, save("of_third")));
}

TEST_F(SharedFolderTest, FolderOfOneUserIsTrusted) {
  ASSERT_EQ(::chmod(folder_.c_str(), 0755), 0);
  link_of(kOther, "latest", "own");
  EXPECT_EQ(saving_error("latest"), "");
}

TEST_F(SharedFolderTest, CsvWriterAsksTheSame) {
  link_of(kOther, "losses.csv", "victim");
  const auto open = [&](std::int64_t rows) {
    return error_of([&] { CsvWriter losses(in_folder("losses.csv"), {"step"}, rows); });
  };
  EXPECT_NE(open(0).find("CsvWriter: cannot write"), std::string::npos);
  EXPECT_NE(open(1).find("is a link of user 54321"), std::string::npos);
  EXPECT_EQ(text("victim"), "secret");
  link_of(0, "mine.csv", "own.csv");
  CsvWriter(in_folder("mine.csv"), {"step"}).row({1});
  EXPECT_EQ(text("own.csv"), "step\n1\n");
}

TEST_F(SharedFolderTest, EventWriterAsksTheSameOfItsFolder) {
  fs::create_directories(folder_ / "victims");
  link_of(kOther, "run", "victims");
  link_of(0, "mine", "victims");
  for (const char* name : {"run", "run/"})
    EXPECT_NE(error_of([&] { EventWriter events(in_folder(name)); }).find("a link of user 54321"),
              std::string::npos);
  EXPECT_TRUE(fs::is_empty(folder_ / "victims"));
  EventWriter(in_folder("mine")).scalar("loss", 0, 1.);
  EXPECT_FALSE(fs::is_empty(folder_ / "victims"));
}

}  // namespace
}  // namespace reel
