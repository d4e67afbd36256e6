// Memory policies of loops with entries that finish one by one, and of plain lengths that no chunk
// divides: plans run them in chunks, too, and gradients have the same bits as with all residuals
// saved.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "reel/tests/frontend/policies/policies.h"
#include "reel/tests/threads.h"
#include "reel/trace/executors/spill/spilled.h"

namespace reel {
namespace {

/// An LSTM over many time steps, in f32.
struct LongRun {
  LstmCell cell;
  Tensor x;
};
auto long_loss(const LoopPolicy& policy) {
  return [policy](const LongRun& run) { return squares_of_states(run.cell, run.x, policy); };
}

// Chunks are counted from the first iteration under every policy, so sums over iterations add the
// same terms in the same order.
TEST(PoliciesOfFinishedChunksTest, GradientsHaveTheBitsOfKeepingAll) {
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

/// An RNN over plain dims, or over entries that finish, with enough rows for row blocks.
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

TEST(PoliciesOfFinishedChunksTest, FinishedRowsAndPlainLengthsWithoutADivisorHaveThemToo) {
  SmallSpillBlocks blocks;
  for (const bool is_named : {true, false}) {
    manual_seed(4);
    const std::int64_t steps = 523, rows = 20, units = 128;
    std::vector<std::int64_t> lengths;
    for (std::int64_t row = 0; row < rows; ++row)
      lengths.push_back((row * 147 + steps) % (steps + 1));
    // A plan sorts the rows of loops without a policy, and adds in that order.
    std::sort(lengths.begin(), lengths.end(), std::greater<>());
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

/// Weights and input of an RNN over entries that finish, in f64.
struct MixedRun {
  Tensor recurrent, in, out, x;
};
using MixingStep = std::function<Tensor(const MixedRun&, const Tensor& x, const Tensor& h)>;
Tensor times(const Tensor& a, const Tensor& weight) {
  const Dim from = weight.dims()[0], to = weight.dims()[1];
  return rename(matmul(a, weight, from), to, from);
}
/// Returns bodies in which entries read each other's states, or may read them.
std::vector<std::pair<const char*, MixingStep>> mixing_steps() {
  const auto plain = [](const MixedRun& run, const Tensor& x, const Tensor& h) {
    return tanh(times(h, run.recurrent) + times(x, run.in));
  };
  return {
      {"a sum over entries behind",
       [plain](const MixedRun& run, const Tensor& x, const Tensor& h) {
         return plain(run, x, h) + sum(x) * 0.01;
       }},
      {"a sum over entries before",
       [](const MixedRun& run, const Tensor& x, const Tensor& h) {
         return tanh(times(h, run.recurrent) + x + sum(h, h.dims()[0]) * 0.01);
       }},
      {"a loop inside",
       [plain](const MixedRun& run, const Tensor& x, const Tensor& h) {
         return fori_loop(
             0, 3, [&](const Tensor&, const Tensor& h) { return plain(run, x, h); }, h);
       }},
      {"a branch",
       [plain](const MixedRun& run, const Tensor& x, const Tensor& h) {
         return cond(
             sum(x) < 0.0, [&] { return plain(run, x, h); }, [&] { return tanh(h + x); });
       }},
      {"sums over the entries so far",
       [plain](const MixedRun& run, const Tensor& x, const Tensor& h) {
         return tanh(times(cumsum(plain(run, x, h), h.dims()[0]), run.in)) + plain(run, x, h);
       }},
  };
}
auto mixed_loss(const MixingStep& step, const LoopPolicy& policy) {
  return [step, policy](const MixedRun& run) {
    const Dim batch = run.x.dims()[0], time = run.x.dims()[1], unit = run.x.dims()[2];
    const auto body = [&](const Tensor& x, const Tensor& h) {
      const Tensor next = step(run, x, h);
      return std::pair{times(next, run.out), next};
    };
    const auto made = scan(Scan{.spatial_dim = time,
                                .initial = zeros({batch, unit}, f64),
                                .xs = run.x,
                                .body = body,
                                .checkpoint = policy.checkpoint,
                                .swap_memory = policy.swap_memory});
    return sum(square(made.ys)) + sum(made.state);
  };
}

// If a body mixes entries, recomputed values are slices for later ops, as saved residuals are. The
// product that makes the gradient of `out` leaves the loop in both cases.
TEST(PoliciesOfFinishedChunksTest, StepsThatMixEntriesHaveTheBitsToo) {
  manual_seed(5);
  const Dim batch("batch", 5), unit("unit", 6), to("to", 6);
  const Dim time("time", tensor({21, 0, 13, 21, 4}, {batch}));
  const auto drawn = [](const Dims& dims) { return cast(random_normal(dims), f64) * 0.2; };
  const MixedRun at{drawn({unit, to}), drawn({unit, to}), drawn({unit, to}),
                    drawn({batch, time, unit}) * 5.0};
  const auto rule = [](bool keeps_products, Checkpoint base = {}) {
    return base.where([keeps_products](const StepValue& v) {
      return keeps_products && v.op == "dot" ? Saving::keep : Saving::recompute;
    });
  };
  for (const auto& [name, step] : mixing_steps()) {
    const auto expected = jit(grad(mixed_loss(step, {})))(at);
    const auto eager = grad(mixed_loss(step, {}))(at);
    SCOPED_TRACE(name);
    expect_all_close(expected.recurrent, eager.recurrent, 1e-12);
    expect_all_close(expected.in, eager.in, 1e-12);
    expect_all_close(expected.out, eager.out, 1e-12);
    expect_all_close(expected.x, eager.x, 1e-12);
    for (const LoopPolicy& policy : {LoopPolicy{rule(false)}, LoopPolicy{rule(true)},
                                     LoopPolicy{rule(false, Checkpoint::every(7))},
                                     LoopPolicy{Checkpoint::every(4)}, LoopPolicy{{}, true}}) {
      SCOPED_TRACE(text_of(policy.checkpoint));
      expect_same_leaves(jit(grad(mixed_loss(step, policy)))(at), expected);
    }
  }
}

}  // namespace
}  // namespace reel
