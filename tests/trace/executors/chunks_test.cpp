// The number of iterations per chunk.
#include "reel/trace/executors/loop/chunks.h"

#include <gtest/gtest.h>

namespace reel {
namespace {

TEST(StepsOfChunkTest, FollowTheBytesOfAStepAndOfMatrices) {
  constexpr std::int64_t kMany = std::int64_t{1} << 40;
  EXPECT_EQ(steps_of_chunk(1, 0), 64);
  EXPECT_EQ(steps_of_chunk(kMany, 0), 16);
  EXPECT_EQ(steps_of_chunk(kMany, kMany), 16);
  EXPECT_EQ(steps_of_chunk(kMany, 4 * kMany), 48);
  EXPECT_EQ(steps_of_chunk(1, kMany), 128);
  EXPECT_EQ(steps_of_chunk(1 << 17, kMany), 128);
  EXPECT_EQ(steps_of_chunk(1 << 18, kMany), 64) << "more than 16 MiB";
  EXPECT_EQ(steps_of_chunk(kMany, 0, true), 1) << "many steps of a loop inside";
  EXPECT_EQ(steps_of_chunk(1, 0, true), 64);
}

}  // namespace
}  // namespace reel
