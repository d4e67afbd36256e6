// Blocks: alignment, identities, and reuse of blocks with one reference.
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <string>
#include <thread>

#include "reel/core/ops.h"
#include "reel/eager/regions.h"
#include "reel/tests/check.h"

namespace reel {
namespace {

TEST(StorageTest, DataIsAlignedToACacheLine) {
  for (const std::int64_t n : {0, 1, 15, 16, 17, 1000, 100'000, 10'000'000}) {
    const Tensor x = zeros({n});
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(x.data<float>()) % 64, 0u) << n;
  }
}

/// Returns true if huge pages were requested at an address: "hg" among the flags of its mapping.
bool is_on_huge_pages(const void* address) {
  std::ifstream maps("/proc/self/smaps");
  bool is_here = false;
  for (std::string line; std::getline(maps, line);) {
    std::uintptr_t begin = 0, end = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx ", &begin, &end) == 2) {
      const auto at = reinterpret_cast<std::uintptr_t>(address);
      is_here = begin <= at && at < end;
    } else if (is_here && line.starts_with("VmFlags:")) {
      return line.find(" hg") != std::string::npos;
    }
  }
  return false;
}

TEST(StorageTest, BlocksLieOnHugePages) {
  if (kAllocatesEachBlock) GTEST_SKIP() << "blocks are the sanitizer's";
  if (!std::ifstream("/sys/kernel/mm/transparent_hugepage/enabled"))
    GTEST_SKIP() << "this system has no huge pages";
  for (const std::int64_t n : {1, 10'000, 500'000, 5'000'000}) {
    const Tensor x = zeros({n});
    EXPECT_TRUE(is_on_huge_pages(x.data<float>() + n / 2)) << n;
  }
}

TEST(StorageTest, IdentitiesDifferBetweenThreads) {
  std::uint64_t there = 0;
  std::thread([&] { there = zeros({1}).block()->id; }).join();
  EXPECT_NE(there, zeros({1}).block()->id);
}

TEST(StorageTest, UnsharedTemporaryGivesItsBuffer) {
  Tensor x = ones({16});
  const void* buffer = x.data<float>();
  const Tensor y = std::move(x) * 2.0;
  EXPECT_EQ(y.data<float>(), buffer);
}

TEST(StorageTest, SharedStorageIsNeverWritten) {
  Tensor x = ones({16});
  const Tensor held = x;
  const Tensor y = std::move(x) * 2.0;
  EXPECT_NE(y.data<float>(), held.data<float>());
  expect_values(held, std::vector<double>(16, 1));
}

TEST(StorageTest, BlocksMadeOnOneThreadMayBeFreedOnAnother) {
  for (int round = 0; round < 100; ++round) {
    std::vector<Tensor> made;
    std::thread([&] {
      for (int i = 0; i < 50; ++i) made.push_back(ones({64}));
    }).join();
    for (const Tensor& x : made) expect_values(x, std::vector<double>(64, 1));
  }
}

TEST(StorageTest, DefaultMadeTensorIsRefused) {
  EXPECT_EQ(message_of<ArgumentError>([] { Tensor() + Tensor(); }),
            "add: was given an empty Tensor; assign a tensor to it first, and do not use one that "
            "was moved");
}

TEST(StorageErrorTest, AnAxisOfUnknownSizeHasNoStorage) {
  EXPECT_EQ(message_of<ShapeError>([] {
              return random_normal({2, unknown});
            }),
            "f32[2,?] has an axis of unknown size; give every dim a size\nin random_normal");
}

}  // namespace
}  // namespace reel
