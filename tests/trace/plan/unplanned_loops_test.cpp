// Loops whose entries finish one by one: only what a run uses has a plan.
#include <gtest/gtest.h>

#include "reel/reel.h"
#include "reel/tests/check.h"
#include "reel/tests/threads.h"
#include "reel/tests/trace/plan/ragged_loops.h"
#include "reel/tests/trace/plan/resized_plan.h"

namespace reel {
namespace {

class UnplannedLoopsTest : public RaggedLoopsTest {
 protected:
  UnplannedLoopsTest() : RaggedLoopsTest(96, 0.1) {}

  Tensor states(const Tensor& x) const { return mask_padding(attended(x, x)); }

  /// Expects that the batches of a loop have plans, and nothing else.
  static void expect_batches_only(const LoopPlan& loop) {
    EXPECT_GT(PlanView::batches(loop), 0u);
    EXPECT_TRUE(PlanView::is_planned(loop));
    EXPECT_FALSE(PlanView::whole(loop).body);
    for (const auto& block : PlanView::blocks(loop)) EXPECT_FALSE(block);
  }
};

TEST_F(UnplannedLoopsTest, BatchesThatShrinkNeedNeitherTheWholeNorRowBlocks) {
  const auto f = [this](const Tensor& x) { return states(x); };
  ResizedPlan run(f);
  for (const int longest : {30, 41, 20}) {
    std::vector<int> lengths;
    for (int row = 0; row < 16; ++row) lengths.push_back(1 + (row * 5) % longest);
    const Tensor x = batch(lengths);
    expect_same_bits(run(x), jit(f)(x));
    ASSERT_FALSE(run.loops().empty());
    for (const LoopPlan* const loop : run.loops()) expect_batches_only(*loop);
  }
}

TEST_F(UnplannedLoopsTest, ReverseLoopsNeedNoWholeEither) {
  const auto loss = [this](const Tensor& x) -> Tensor { return mean(square(recurrent(x))); };
  const auto f = [&](const Tensor& x) -> Tensor { return mask_padding(grad(loss)(x)); };
  ResizedPlan run(f);
  for (const int longest : {30, 41, 20}) {
    std::vector<int> lengths;
    for (int row = 0; row < 16; ++row) lengths.push_back(1 + (row * 5) % longest);
    const Tensor x = batch(lengths);
    expect_same_bits(run(x), jit(f)(x));
    int count = 0;
    for (const LoopPlan* const loop : run.loops()) {
      if (!get<LoopAttrs>(PlanView::attrs(*loop).get()).is_gradient_loop) continue;
      ++count;
      expect_batches_only(*loop);
    }
    EXPECT_EQ(count, 1);
  }
}

TEST_F(UnplannedLoopsTest, OneRowBlockNeedsNoWhole) {
  const auto f = [this](const Tensor& x) { return states(x); };
  ResizedPlan run(f);
  for (const int longest : {9, 12}) {
    const Tensor x = batch({longest, 3, 1});
    expect_same_bits(run(x), jit(f)(x));
    ASSERT_FALSE(run.loops().empty());
    for (const LoopPlan* const loop : run.loops()) {
      ASSERT_EQ(loop->blocks(), 1u);
      EXPECT_TRUE(PlanView::blocks(*loop)[0]);
      EXPECT_FALSE(PlanView::whole(*loop).body);
    }
  }
}

TEST_F(UnplannedLoopsTest, OtherNumbersOfThreadsHaveTheSameBits) {
  const auto f = [this](const Tensor& x) { return states(x); };
  ResizedPlan run(f);
  const Tensor x = batch({8, 30, 2, 30, 17, 5, 5, 21, 1, 3, 12, 29, 4, 7, 9, 11});
  const Tensor expected = jit(f)(x);
  for (const int count : {1, 2, 1, 3}) {
    const Threads these(count);
    expect_same_bits(run(x), expected);
    ASSERT_FALSE(run.loops().empty());
    for (const LoopPlan* const loop : run.loops()) EXPECT_TRUE(PlanView::is_planned(*loop));
  }
}

// explain() shows the loop that a run used, with other threads as well.
TEST_F(UnplannedLoopsTest, ExplainedTextsNeedNoPlanOfTheWhole) {
  const auto f = jit([this](const Tensor& x) { return attended(x, x); });
  {
    const Threads one(1);
    f(batch({8, 30, 2, 30, 17, 5, 5, 21, 1, 3, 12, 29, 4, 7, 9, 11}));
    EXPECT_NE(f.explain().find("as a shrinking batch"), std::string::npos) << f.explain();
  }
  const Threads three(3);
  EXPECT_NE(f.explain().find("instructions each"), std::string::npos) << f.explain();
}

}  // namespace
}  // namespace reel
