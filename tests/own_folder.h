// tests/own_folder.h — InOwnFolder, the fixture of tests that write files.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

namespace reel {

/// Gives each test an empty folder of its own below the working directory, and removes it in the
/// end. `path` is the test's main file there.
class InOwnFolder : public ::testing::Test {
 protected:
  explicit InOwnFolder(std::string file) : path(std::move(file)) {}
  void SetUp() override {
    const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
    folder_ = std::filesystem::path(info->test_suite_name()) / info->name();
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    path = (folder_ / path).string();
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder_))
      names.push_back(entry.path().filename());
    return names;
  }
  static std::string bytes_of(const std::string& file) {
    std::ifstream in(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  static void write(const std::string& file, const std::string& bytes) {
    std::ofstream(file, std::ios::binary) << bytes;
  }

  std::filesystem::path folder_;
  std::string path;
};

}  // namespace reel
