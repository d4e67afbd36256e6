// Policies of loops whose entries end one by one, and of plain lengths that no chunk divides: plans
// run them in chunks, too, and gradients have the bits of keeping all.
#include <gtest/gtest.h>

#include "reel/tests/frontend/policies.h"
#include "reel/tests/threads.h"
#include "reel/trace/executors/spilled.h"

namespace reel {
namespace {

/// An LSTM over so many steps, in f32.
struct LongRun {
  LstmCell cell;
  Tensor x;
};
auto long_loss(const LoopPolicy& policy) {
  return [policy](const LongRun& run) { return squares_of_states(run.cell, run.x, policy); };
}

// Chunks are cut from the first step on, whatever the policy: sums over steps add up the same terms
// in the same order.
TEST(PoliciesOfEndedChunksTest, GradientsHaveTheBitsOfKeepingAll) {
  const Dim batch("batch", 4), in("in", 8);
  for (const Dim& time : {Dim("time", tensor({320, 1000, 17, 700}, {batch})),
                          Dim("time", tensor({0, 97, 1, 60}, {batch}))}) {
    manual_seed(4);
    const LongRun at{LstmCell::init(in, Dim("hidden", 32)), random_normal({time, batch, in})};
    const auto keeps_all = jit(value_and_grad(long_loss({})));
    const auto [value, gradient] = keeps_all(at);
    ASSERT_NE(keeps_all.explain().find(" chunk"), std::string::npos) << keeps_all.explain();
    SmallSpillBlocks blocks;
    for (const LoopPolicy& policy :
         {LoopPolicy{Checkpoint::every(1)}, LoopPolicy{Checkpoint::every(200)},
          LoopPolicy{Checkpoint::budget(40'000)}, LoopPolicy{Checkpoint::budget(400'000)},
          LoopPolicy{{}, true}, LoopPolicy{Checkpoint::every(100), true}}) {
      SCOPED_TRACE(str(time, ' ', time.size(), ", ", text_of(policy.checkpoint),
                       policy.swap_memory.spill() ? ", in a file" : ""));
      const auto f = jit(value_and_grad(long_loss(policy)));
      const auto actual = f(at);
      EXPECT_NE(f.explain().find(" chunk"), std::string::npos) << f.explain();
      expect_same_bits(actual.first, value);
      expect_same_leaves(actual.second, gradient);
      if (policy.swap_memory.spill() && time.size() == 1000) {
        EXPECT_GT(blocks.written(), 0);
      }
    }
  }
}

/// An RNN over plain dims, or over entries that end: rows enough to be cut into blocks.
struct WideRun {
  Tensor in, recurrent, x;
};
auto wide_loss(const LoopPolicy& policy) {
  return [policy](const WideRun& run) {
    const bool is_named = run.x.type().is_named();
    const Dim rows = run.x.dims()[1], from = run.x.dims()[2], unit = run.in.dims()[1];
    const auto times = [&](const Tensor& a, const Tensor& b, const Dim& dim) {
      return is_named ? matmul(a, b, dim) : matmul(a, b);
    };
    const Dim before = run.recurrent.dims()[0];
    const auto body = [&](const Tensor& x, const Tensor& h) {
      const Tensor sum = times(x, run.in, from) + times(h, run.recurrent, before);
      const Tensor next = is_named ? rename(tanh(sum), unit, before) : tanh(sum);
      return std::pair{sin(next), next};
    };
    const Dims state{rows, before};
    return sum(square(scan(Scan{.spatial_dim = run.x.dims()[0],
                                .initial = zeros(state),
                                .xs = run.x,
                                .body = body,
                                .checkpoint = policy.checkpoint,
                                .swap_memory = policy.swap_memory})
                          .ys));
  };
}

TEST(PoliciesOfEndedChunksTest, RowsOfEntriesThatEndAndPlainLengthsWithoutADivisorHaveThemToo) {
  SmallSpillBlocks blocks;
  for (const bool is_named : {true, false}) {
    manual_seed(4);
    const std::int64_t steps = 523, rows = 20, units = 128;
    std::vector<std::int64_t> lengths;
    for (std::int64_t row = 0; row < rows; ++row)
      lengths.push_back((row * 147 + steps) % (steps + 1));
    const Dim batch = is_named ? Dim("batch", rows) : Dim(rows),
              time = is_named ? Dim("time", tensor(lengths, {batch})) : Dim(steps),
              in = is_named ? Dim("in", 8) : Dim(8),
              unit = is_named ? Dim("unit", units) : Dim(units),
              before = is_named ? Dim("before", units) : Dim(units);
    const WideRun at{random_normal({in, unit}), random_normal({before, unit}) * 0.1,
                     random_normal({time, batch, in})};
    const auto [value, gradient] = jit(value_and_grad(wide_loss({})))(at);
    for (const LoopPolicy& policy :
         {LoopPolicy{Checkpoint::every(1)}, LoopPolicy{Checkpoint::every(50)},
          LoopPolicy{Checkpoint::budget(2'000'000)}, LoopPolicy{{}, true},
          LoopPolicy{Checkpoint::every(100), true}})
      for (const int count : {1, 2}) {
        SCOPED_TRACE(str(time, ", ", text_of(policy.checkpoint),
                         policy.swap_memory.spill() ? ", in a file, " : ", ", count, " threads"));
        const Threads these(count);
        const auto actual = jit(value_and_grad(wide_loss(policy)))(at);
        expect_same_bits(actual.first, value);
        expect_same_leaves(actual.second, gradient);
      }
  }
  EXPECT_GT(blocks.written(), 0);
}

}  // namespace
}  // namespace reel
