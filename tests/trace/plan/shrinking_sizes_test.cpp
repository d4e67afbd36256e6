// The numbers of rows with which a batch runs while its rows finish: a size is planned again where
// that pays.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "reel/trace/executors/plan/row_blocks/shrinking_block.h"

namespace reel {
namespace {

using Sizes = std::vector<std::int64_t>;

/// A block of these sizes. plan() counts planned sizes, and fails for `refused` rows.
class ShrinkingSizesTest : public ::testing::Test {
 protected:
  void plan(const Sizes& sizes) {
    planned.clear();
    ASSERT_TRUE(block.try_plan(sizes, planner));
    EXPECT_EQ(planned, (Sizes{sizes.back()})) << "a run chooses the others";
    planned.clear();
  }
  bool choose(const Sizes& lengths, double price) {
    BlockOfRows batch;
    for (std::size_t r = 0; r < lengths.size(); ++r)
      batch.rows.push_back(static_cast<std::int64_t>(r));
    batch.lengths = lengths;
    return block.choose_sizes(batch, planner, [&](const PlannedLoop* loop, std::int64_t) {
      without_plan += !loop;
      return price;
    });
  }
  /// Returns the price of a run with these sizes, the largest first.
  static double price_of(const Sizes& sizes, const Sizes& lengths, double price) {
    double sum = 0;
    for (std::size_t k = 0; k < sizes.size(); ++k) {
      const std::int64_t begin = k ? lengths[static_cast<std::size_t>(sizes[k])] : 0;
      const std::int64_t end =
          lengths[k + 1 < sizes.size() ? static_cast<std::size_t>(sizes[k + 1]) : 0];
      sum += static_cast<double>(sizes[k] * (end - begin)) + price;
    }
    return sum;
  }

  ShrinkingBlock block;
  Sizes planned;
  int without_plan = 0;  ///< prices of loops that were never planned
  std::int64_t refused = -1;
  const ShrinkingBlock::PlanRows planner = [this](std::unique_ptr<PlannedLoop>& loop,
                                                  std::int64_t rows) {
    if (!loop) loop = std::make_unique<PlannedLoop>(PlanContext{});
    planned.push_back(rows);
    return rows != refused;
  };
};

TEST_F(ShrinkingSizesTest, PlansThatCostNothingServeEachSizeThatIterates) {
  plan({1, 2, 3, 4});
  EXPECT_TRUE(choose({9, 6, 6, 2}, 0));
  EXPECT_EQ(planned, (Sizes{4, 3, 1})) << "the two rows of 6 iterations end together";
}

TEST_F(ShrinkingSizesTest, EqualSizesKeepAPlanEach) {
  int made = 0;
  const auto counting = [&](std::unique_ptr<PlannedLoop>& loop, std::int64_t) {
    made += !loop;
    if (!loop) loop = std::make_unique<PlannedLoop>(PlanContext{});
    return true;
  };
  for (int turn = 0; turn < 4; ++turn) ASSERT_TRUE(block.try_plan({4, 4}, counting));
  EXPECT_EQ(made, 2);
}

TEST_F(ShrinkingSizesTest, SizesOfFewIterationsRunWithMoreRows) {
  plan({1, 2, 3, 4});
  EXPECT_TRUE(choose({20, 10, 10, 9}, 8));
  // One row alone saves 3 · 10 row iterations; three rows would save one.
  EXPECT_EQ(planned, (Sizes{4, 1}));
  planned.clear();
  EXPECT_TRUE(choose({20, 10, 10, 9}, 31.5));
  EXPECT_EQ(planned, (Sizes{4}));
}

TEST_F(ShrinkingSizesTest, NoOtherSizesAreCheaper) {
  std::mt19937 draw(3);
  for (int turn = 0; turn < 200; ++turn) {
    const int rows = 1 + static_cast<int>(draw() % 9);
    Sizes sizes, lengths;
    for (int r = 1; r <= rows; ++r) {
      if (r == rows || draw() % 3) sizes.push_back(r);
      lengths.push_back(draw() % 12);
    }
    std::ranges::sort(lengths, std::greater());
    const double price = static_cast<double>(draw() % 20);
    plan(sizes);
    EXPECT_TRUE(choose(lengths, price));
    ASSERT_FALSE(planned.empty());
    EXPECT_EQ(planned[0], rows);
    const std::size_t smaller = sizes.size() - 1;
    for (std::size_t subset = 0; subset < std::size_t{1} << smaller; ++subset) {
      Sizes other{rows};
      for (std::size_t k = smaller; k-- > 0;)
        if (subset >> k & 1) other.push_back(sizes[k]);
      EXPECT_LE(price_of(planned, lengths, price), price_of(other, lengths, price));
    }
  }
}

TEST_F(ShrinkingSizesTest, ASizeWithoutAPlanIsLeftOut) {
  plan({1, 2, 3, 4});
  refused = 1;
  EXPECT_TRUE(choose({9, 6, 5, 2}, 0));
  refused = 4;
  EXPECT_FALSE(choose({9, 6, 5, 2}, 0)) << "all rows have to run";
}

// Longer entries make more batches, of fewer rows each.
TEST_F(ShrinkingSizesTest, PlansServeTheSameNumbersOfRowsInAnotherBatch) {
  plan({1, 2, 3, 4});
  EXPECT_TRUE(choose({9, 6, 5, 2}, 0));
  EXPECT_EQ(planned, (Sizes{4, 3, 2, 1}));
  EXPECT_EQ(without_plan, 3);
  planned.clear();
  without_plan = 0;
  plan({1, 3});
  EXPECT_TRUE(block.is_planned({1, 3}));
  EXPECT_FALSE(block.is_planned({1, 2, 3, 4}));
  EXPECT_TRUE(choose({9, 6, 5}, 0));
  EXPECT_EQ(planned, (Sizes{3, 1}));
  EXPECT_EQ(without_plan, 0);
}

TEST_F(ShrinkingSizesTest, LoopsLeftOverServeOtherNumbersOfRows) {
  std::vector<const PlannedLoop*> given;
  const ShrinkingBlock::PlanRows noted = [&](std::unique_ptr<PlannedLoop>& loop, std::int64_t) {
    given.push_back(loop.get());
    if (!loop) loop = std::make_unique<PlannedLoop>(PlanContext{});
    return true;
  };
  ASSERT_TRUE(block.try_plan({2}, noted));
  const PlannedLoop* const first = &block.largest();
  ASSERT_TRUE(block.try_plan({3}, noted));
  EXPECT_EQ(given, (std::vector<const PlannedLoop*>{nullptr, first}));
  EXPECT_EQ(&block.largest(), first);
}

TEST_F(ShrinkingSizesTest, RowsThatFinishTogetherRunTogether) {
  plan({1, 2});
  EXPECT_TRUE(choose({0, 0}, 0));
  EXPECT_EQ(planned, (Sizes{2}));
}

}  // namespace
}  // namespace reel
