// Buffer assignment of plans: two values that are live at the same time never share memory.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <random>

#include "reel/core/runtime/memory.h"
#include "reel/eager/regions.h"
#include "reel/trace/executors/plan/base/buffer_assignment.h"
#include "reel/trace/executors/plan/base/held_memory.h"

namespace reel {
namespace {

bool overlap(const PlannedBuffer& a, const PlannedBuffer& b) {
  const bool in_time = a.first <= b.last && b.first <= a.last;
  return in_time && a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
}

TEST(PlanMemoryTest, AChainNeedsTwoBuffers) {
  std::vector<PlannedBuffer> chain;
  for (int i = 0; i < 100; ++i) chain.push_back({64, i, i + 1});
  EXPECT_EQ(place_buffers(chain), 128);
}

TEST(PlanMemoryTest, BuffersNeverOverlapWhileBothAreNeeded) {
  std::mt19937 random(1);
  for (int round = 0; round < 50; ++round) {
    std::vector<PlannedBuffer> buffers;
    for (int i = 0; i < 60; ++i)
      buffers.push_back(
          {static_cast<std::int64_t>(random() % 1000), i, i + static_cast<int>(random() % 20)});
    const std::int64_t bytes = place_buffers(buffers);
    for (std::size_t i = 0; i < buffers.size(); ++i) {
      EXPECT_EQ(buffers[i].offset % 64, 0);
      EXPECT_LE(buffers[i].offset + buffers[i].bytes, bytes);
      for (std::size_t k = 0; k < i; ++k) EXPECT_FALSE(overlap(buffers[i], buffers[k]));
    }
  }
}

TEST(PlanMemoryTest, TheSmallestGapThatFitsIsTaken) {
  // When the last buffer is placed, there are gaps of 128 and 64 bytes.
  std::vector<PlannedBuffer> buffers{{128, 0, 1}, {64, 0, 9}, {64, 0, 1}, {64, 0, 9}, {64, 2, 9}};
  EXPECT_EQ(place_buffers(buffers), 320);
  EXPECT_EQ(buffers[4].offset, 192);
}

TEST(PlanMemoryTest, ReturnedMemoryIsReusedIfItFits) {
  PlanMemory first = take_plan_memory(100'000'000);  // larger than any memory in the pool
  const char* const place = first.data.get();
  give_back(std::move(first));
  PlanMemory small = take_plan_memory(1'000);  // too small for it: would waste it
  EXPECT_NE(small.data.get(), place);
  PlanMemory again = take_plan_memory(90'000'000);
  EXPECT_EQ(again.data.get(), place);
  EXPECT_GE(again.bytes(), 90'000'000);
}

TEST(PlanMemoryTest, PlansThatTakeTurnsFindTheirsAgain) {
  PlanMemory large = take_plan_memory(200'000'000), small = take_plan_memory(10'000'000);
  const char *const large_place = large.data.get(), *const small_place = small.data.get();
  for (int turn = 0; turn < 3; ++turn) {
    give_back(std::move(large));
    give_back(std::move(small));
    small = take_plan_memory(10'000'000);
    EXPECT_EQ(small.data.get(), small_place);
    large = take_plan_memory(200'000'000);
    EXPECT_EQ(large.data.get(), large_place);
  }
}

TEST(PlanMemoryTest, PoolHoldsAtMostOneGiB) {
  // The memory is never written, so the system provides no pages.
  PlanMemory first = take_plan_memory(700'000'000), second = take_plan_memory(800'000'000);
  const char* const place = second.data.get();
  give_back(std::move(first));
  give_back(std::move(second));
  EXPECT_EQ(take_plan_memory(700'000'000).data.get(), place);
}

TEST(PlanMemoryTest, SizesUpToFourTimesTheFirstShareAnAllocation) {
  if (kAllocatesEachBlock) GTEST_SKIP() << "capacities are exact with a sanitizer";
  PlanMemory memory = take_plan_memory(2'200'000);
  const char* const place = memory.data.get();
  for (std::int64_t bytes = 2'200'000; bytes < 8'800'000; bytes += 550'000) {
    give_back(std::move(memory));
    memory = take_plan_memory(bytes);
    EXPECT_EQ(memory.data.get(), place) << bytes;
    EXPECT_GE(memory.capacity(), bytes);
  }
}

TEST(PlanMemoryTest, BytesThatNoPlanTookAreNotCounted) {
  if (kAllocatesEachBlock) GTEST_SKIP() << "capacities are exact with a sanitizer";
  free_held_plan_memory();
  const std::int64_t before = memory().buffers.current;
  PlanMemory first = take_plan_memory(2'200'000);
  EXPECT_EQ(memory().buffers.current - before, 2'200'000);
  give_back(std::move(first));
  PlanMemory second = take_plan_memory(2'300'032);
  EXPECT_EQ(memory().buffers.current - before, 2'300'032);
  give_back(std::move(second));
  EXPECT_EQ(take_plan_memory(2'200'000).bytes(), 2'300'032);
  EXPECT_EQ(memory().buffers.current - before, 0);
}

TEST(PlanMemoryTest, MemoryOfThePlanBeforeIsTheFirstChoice) {
  free_held_plan_memory();
  const std::int64_t before = memory().buffers.current;
  PlanMemory first = take_plan_memory(1'000'000), held = take_plan_memory(1'000'000);
  const char* const place = first.data.get();
  give_back(std::move(held));
  PlanMemory second = take_plan_memory(900'000, std::move(first));
  EXPECT_EQ(second.data.get(), place);
  PlanMemory third = take_plan_memory(9'000'000, std::move(second));
  EXPECT_EQ(memory().buffers.current - before, 1'000'000 + 9'000'000) << "it does not fit: freed";
  free_held_plan_memory();
}

TEST(PlanMemoryTest, UnneededMemoryLosesThePagesBehindANeed) {
  if (kAllocatesEachBlock) GTEST_SKIP() << "capacities are exact with a sanitizer";
  free_held_plan_memory();
  const std::int64_t before = memory().buffers.current;
  PlanMemoryNeed need;
  need.set(2'200'000);
  PlanMemory large = take_plan_memory(4'000'000);
  char* const data = large.data.get();
  std::fill_n(data, 4'000'000, 'x');
  give_back(std::move(large));
  free_unneeded_plan_memory();
  EXPECT_EQ(memory().buffers.current - before, 2'200'000);
  PlanMemory again = take_plan_memory(2'200'000);
  ASSERT_EQ(again.data.get(), data);
  EXPECT_EQ(data[0], 'x');
  EXPECT_EQ(data[2'199'999], 'x');
  EXPECT_EQ(data[3'500'000], 0) << "a page that was given back reads as zeros";
}

std::int64_t mapped_bytes() {
  std::int64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * sysconf(_SC_PAGESIZE);
}

/// Ends the process: with 0 if memory is given as it should be while address space is short.
[[noreturn]] void take_memory_in_little_address_space() {
  rlimit limit;
  bool holds = getrlimit(RLIMIT_AS, &limit) == 0;
  PlanMemory other = take_plan_memory(20'000'000);  // 128 MiB of address space
  give_back(std::move(other));
  limit.rlim_cur = static_cast<rlim_t>(mapped_bytes() + 250'000'000);
  holds = holds && setrlimit(RLIMIT_AS, &limit) == 0;
  // 150 MB fit, their class of 256 MiB does not; 300 MB fit after the held memory is freed.
  holds = holds && take_plan_memory(150'000'000).capacity() == 150'000'000;
  try {
    holds = holds && take_plan_memory(300'000'000).bytes() >= 300'000'000;
  } catch (const MemoryError&) {
    holds = false;
  }
  try {
    take_plan_memory(900'000'000);
    holds = false;
  } catch (const MemoryError&) {
  }
  ::_exit(holds ? 0 : 1);
}

// In a process of its own, which has not mapped other memory yet.
TEST(PlanMemoryTest, WithoutAddressSpaceACapacityIsExact) {
  if (kAllocatesEachBlock || !mapped_bytes() || mapped_bytes() > std::int64_t{1} << 40)
    GTEST_SKIP() << "a sanitizer needs address space of its own";
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(take_memory_in_little_address_space(), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace reel
