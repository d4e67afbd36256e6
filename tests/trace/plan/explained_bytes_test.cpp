// The plans of loops that PlanView lists for explain(): all that hold memory.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "reel/reel.h"
#include "reel/tests/check.h"
#include "reel/tests/threads.h"
#include "reel/tests/trace/plan/resized_plan.h"
#include "reel/trace/executors/plan/base/held_memory.h"

namespace reel {
namespace {

/// Returns the memory of a plan, its loops and branches, and the plans inside these.
std::int64_t bytes_of(const Plan& plan) {
  std::int64_t bytes = PlanView::memory_bytes(plan);
  const auto add = [&](const Plan& inside) { bytes += bytes_of(inside); };
  for (const PlanView::Instruction& at : PlanView::instructions(plan)) {
    if (at.kind == PlanView::Kind::loop)
      PlanView::each_planned(PlanView::loop_of(plan, at), [&](const PlannedLoop& loop) {
        if (loop.memory.is_defined()) bytes += loop.memory.type().bytes();
        PlanView::each_plan(loop, add);
      });
    if (at.kind == PlanView::Kind::cond)
      for (const std::size_t b : {0, 1})
        if (const SubPlan& branch = PlanView::branch(PlanView::cond_of(plan, at), b)) add(*branch);
  }
  return bytes;
}

class ExplainedBytesTest : public RaggedLoopsTest {
 protected:
  ExplainedBytesTest() : RaggedLoopsTest(96, 0.1) {}

  /// Expects that the plan of f(x) holds the bytes that its loops and plans have in all, and that
  /// `holds` is true for a loop of it.
  static void expect_held(const ResizedPlan::Function& f, const Tensor& x,
                          const std::function<bool(const LoopPlan&)>& holds = {}) {
    free_held_plan_memory();
    const std::int64_t before = memory().buffers.current;
    ResizedPlan run(f);
    run(x);
    EXPECT_EQ(bytes_of(run.plan()), memory().buffers.current - before);
    const auto loops = run.loops();
    EXPECT_TRUE(!holds ||
                std::ranges::any_of(loops, [&](const LoopPlan* loop) { return holds(*loop); }));
  }
};

TEST_F(ExplainedBytesTest, BatchesAndRowBlocksHoldTheirOwn) {
  const Tensor x = batch({8, 30, 2, 30, 17, 5, 5, 21, 1, 3, 12, 29, 4, 7, 9, 11});
  for (const int count : {1, 2, 3}) {
    const Threads these(count);
    expect_held([this](const Tensor& x) { return attended(x, x); }, x);
    expect_held([this](const Tensor& x) { return attended(x, x); }, batch({7, 5, 6}));
  }
}

TEST_F(ExplainedBytesTest, BlocksThatRunAsOneAreCounted) {
  const Dim rows("batch", 64), time("time", 20);
  const Tensor x = random_normal({time, rows, feature});
  const auto f = [&](const Tensor& x) {
    const auto body = [&](const Tensor& x_t, const Tensor& h) {
      const Tensor y =
          tanh(rename(matmul(h, u, hidden), next, hidden) + rename(x_t, feature, hidden));
      return std::pair{y, y};
    };
    return scan(Scan{.spatial_dim = time, .initial = zeros({rows, hidden}), .xs = x, .body = body})
        .ys;
  };
  for (const int count : {1, 2}) {
    const Threads these(count);
    expect_held(f, x, [&](const LoopPlan& loop) {
      return loop.blocks() > 1 && PlanView::runs_joined(loop) == (count == 1);
    });
  }
}

// The last chunk is shorter, and has a plan of its own.
TEST_F(ExplainedBytesTest, ShorterChunksHoldTheirOwn) {
  const auto f = [this](const Tensor& x) {
    const auto body = [&](const Tensor& x_t, const Tensor& h) {
      const Tensor from = rename(matmul(x_t, rename(u, hidden, feature), feature), next, hidden);
      const Tensor y = tanh(rename(matmul(h, u, hidden), next, hidden) + from);
      return std::pair{y, exp(y * 0.5)};
    };
    return scan(
               Scan{
                   .spatial_dim = x.dim("time"), .initial = zeros({hidden}), .xs = x, .body = body})
        .ys;
  };
  for (const std::int64_t steps : {1024, 1000})
    expect_held(f, random_normal({Dim("time", steps), feature}), [&](const LoopPlan& loop) {
      return static_cast<bool>(PlanView::whole(loop).rest) == (steps == 1000);
    });
}

TEST_F(ExplainedBytesTest, BranchesHoldTheirOwn) {
  const auto f = [this](const Tensor& x) {
    return cond(
        sum(x) > 1e9, [&] { return attended(x, x); }, [&] { return attended(x * 0.5, x); });
  };
  expect_held(f, batch({4, 9, 2, 1}));
}

// Shorter entries need fewer batches: the others keep their plans, and so their memory.
TEST_F(ExplainedBytesTest, BatchesThatACallDoesNotNeedCount) {
  const auto f = [this](const Tensor& x) { return attended(x, x); };
  const auto loops_of = [](const ResizedPlan& run) {
    std::size_t count = 0;
    for (const LoopPlan* const loop : run.loops())
      PlanView::each_planned(*loop,
                             [&](const PlannedLoop& of) { count += of.memory.is_defined(); });
    return count;
  };
  const Threads one(1);
  std::vector<int> lengths(33, 3);
  ResizedPlan run(f);
  lengths[0] = 120;
  run(batch(lengths));
  const std::size_t batches = PlanView::batches(*run.loops()[0]), held = loops_of(run);
  lengths[0] = 9;
  run(batch(lengths));
  ASSERT_LT(PlanView::batches(*run.loops()[0]), batches);
  EXPECT_GE(loops_of(run), held);
}

}  // namespace
}  // namespace reel
