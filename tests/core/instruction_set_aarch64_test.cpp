// The one instruction set of aarch64.
#include "reel/core/runtime/instruction_set.h"

#include <gtest/gtest.h>

#include "reel/core/ops/elementwise/pointwise_code.h"
#include "reel/core/ops/elementwise/pointwise_kernels.h"

namespace reel {
namespace {

TEST(InstructionSetTest, IsNeon) {
  EXPECT_EQ(instruction_set(), "neon");
  EXPECT_STREQ(pointwise_table().name, "neon");
  EXPECT_EQ(find_pointwise_table("avx2"), nullptr);
}

TEST(InstructionSetTest, GeneratesNoCode) {
  Chain sum{.repeats = {false, false}, .steps = {}, .results = {}};
  sum.results = {sum.append(Binary::add, 0, 1)};
  EXPECT_EQ(code_of(sum), nullptr);
}

}  // namespace
}  // namespace reel
