// Schedules of checkpoints: compared with formulas, and with a search of all schedules.
#include "reel/trace/executors/checkpoints/revolve.h"

#include <gtest/gtest.h>

#include <map>

#include "reel/tests/recomputation.h"
#include "reel/trace/executors/checkpoints/checkpoint_schedule.h"

namespace reel {
namespace {

struct Count {
  std::int64_t advanced = 0;
  std::size_t most_kept = 0;
};
/// Reverses `steps` iterations in windows of `window` with `slots` checkpoints, and counts the
/// work.
Count sweep(std::int64_t steps, std::int64_t window, std::int64_t slots) {
  Revolve revolve(0, window, slots);
  Count count;
  std::int64_t end = steps;
  while (end > 0) {
    std::int64_t at = -1;
    for (const Revolve::Advance& advance : revolve.advances_to(end)) {
      if (at >= 0) {
        EXPECT_EQ(advance.from, at);
      }
      at = advance.to;
      count.advanced += advance.to - advance.from;
    }
    if (at < 0) at = revolve.last_checkpoint();
    EXPECT_LT(at, end);
    EXPECT_LE(end - at, window);
    count.most_kept = std::max(count.most_kept, revolve.checkpoints());
    end = at;
  }
  return count;
}

TEST(RevolveTest, RunsAsManyStepsAgainAsTheFormulaHasIt) {
  for (std::int64_t slots = 1; slots <= 6; ++slots)
    for (std::int64_t steps = 1; steps <= 150; ++steps) {
      const Count count = sweep(steps, 1, slots);
      EXPECT_EQ(count.advanced, least_advances(steps, slots))
          << steps << " steps, " << slots << " slots";
      EXPECT_LE(count.most_kept, static_cast<std::size_t>(slots));
    }
}

/// Returns the least number of recomputed iterations over all first checkpoints.
std::int64_t least(std::int64_t steps, std::int64_t slots) {
  static std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> known;
  if (steps == 1) return 0;
  if (slots == 1) return steps * (steps - 1) / 2;
  auto [it, fresh] = known.try_emplace({steps, slots}, INT64_MAX);
  if (!fresh) return it->second;
  std::int64_t result = INT64_MAX;
  for (std::int64_t first = 1; first < steps; ++first)
    result = std::min(result, first + least(steps - first, slots - 1) + least(first, slots));
  return known[{steps, slots}] = result;
}

TEST(RevolveTest, NoOtherWayRunsFewer) {
  for (std::int64_t slots = 1; slots <= 5; ++slots)
    for (std::int64_t steps = 1; steps <= 60; ++steps)
      EXPECT_EQ(sweep(steps, 1, slots).advanced, least(steps, slots));
}

TEST(RevolveTest, WindowsOfManyStepsAreRunWhole) {
  EXPECT_EQ(sweep(64, 64, 3).advanced, 0);
  EXPECT_EQ(sweep(100, 64, 3).advanced, 64);
  EXPECT_EQ(sweep(128 + 64 + 1, 64, 1).advanced, 3 * 64 + 2 * 64 + 64);
}

void thin(std::vector<std::int64_t>& taken) {
  std::vector<std::int64_t> left;
  for (std::size_t i = 0; i < taken.size(); i += 2) left.push_back(taken[i]);
  taken = left;
}

TEST(CheckpointScheduleTest, AStateThatGrowsLeavesFewerSlots) {
  for (const std::int64_t growth : {1, 7, 100}) {
    CheckpointSchedule kept(0, 40);
    std::vector<std::int64_t> taken;
    std::int64_t slots = 40;
    for (std::int64_t k = 0; k < 1000; ++k) {
      slots = std::max<std::int64_t>(std::min(slots, 4000 / (100 + growth * k)), 1);
      if (kept.is_due(k)) kept.allow(slots);
      const auto now = kept.before(k);
      for (int i = 0; i < now.drops; ++i) thin(taken);
      if (now.takes) {
        taken.push_back(k);
        ASSERT_LE(std::ssize(taken), CheckpointSchedule::most(slots)) << k;
      }
      ASSERT_EQ(taken[0], 0);
      for (std::size_t i = 2; i < taken.size(); ++i)
        ASSERT_EQ(taken[i] - taken[i - 1], taken[1]) << k;
    }
    EXPECT_LE(std::ssize(taken), 3) << growth;
  }
}

TEST(CheckpointScheduleTest, CheckpointsAreTakenAtIntervals) {
  CheckpointSchedule kept(5, 0);
  std::vector<std::int64_t> taken;
  for (std::int64_t k = 0; k < 17; ++k)
    if (const auto now = kept.before(k); now.takes) taken.push_back(k);
  EXPECT_EQ(taken, (std::vector<std::int64_t>{0, 5, 10, 15}));
}

TEST(CheckpointScheduleTest, StridesDoubleHoweverLongTheLoopIs) {
  for (std::int64_t slots = 1; slots <= 40; ++slots) {
    CheckpointSchedule kept(0, slots);
    std::vector<std::int64_t> taken;
    for (std::int64_t k = 0; k < 5000; ++k) {
      const auto now = kept.before(k);
      ASSERT_LE(now.drops, 1);
      if (now.drops) thin(taken);
      if (now.takes) taken.push_back(k);
      ASSERT_LE(std::ssize(taken), CheckpointSchedule::most(slots));
      ASSERT_EQ(taken[0], 0);
      // All gaps are one power of two, and at most about twice the gap that as many slots need.
      const std::int64_t gap = taken.size() > 1 ? taken[1] : k + 1;
      if (taken.size() > 1) {
        EXPECT_EQ(gap & (gap - 1), 0);
      }
      for (std::size_t i = 1; i < taken.size(); ++i) ASSERT_EQ(taken[i] - taken[i - 1], gap);
      if (slots > 2) {
        EXPECT_LE(gap, std::max<std::int64_t>(2 * (k + 1) / CheckpointSchedule::most(slots) + 2, 1))
            << k;
      }
    }
  }
}

}  // namespace
}  // namespace reel
