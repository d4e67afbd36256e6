// Buffer assignment of plans: two values that are live at the same time never share memory.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

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

}  // namespace
}  // namespace reel
