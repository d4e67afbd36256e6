// Memory policies of loops that a plan runs in chunks: gradients have the same bits as with all
// residuals saved. Chunks are counted from the first iteration under every policy, so sums over
// iterations add the same terms in the same order.
#include <gtest/gtest.h>

#include <functional>

#include "reel/tests/frontend/policies/policies.h"
#include "reel/trace/executors/spill/spilled.h"

namespace reel {
namespace {

/// Two cells, a readout and a sequence.
struct Problem {
  LstmCell first;
  GruCell second;
  Linear readout;
  Tensor x;
};
Problem problem(std::int64_t steps) {
  manual_seed(4);
  const Dim time("time", steps), batch("batch", 4), in("in", 8), hidden("hidden", 32);
  return {LstmCell::init(in, hidden), GruCell::init(hidden, Dim("units", 24)),
          Linear::init(hidden, Dim("classes", 5)), random_normal({time, batch, in})};
}
using Loss = std::function<Tensor(const Problem&, const LoopPolicy&)>;

Tensor forwards(const Problem& at, const LoopPolicy& policy) {
  return squares_of_states(at.first, at.x, policy);
}
Tensor backwards(const Problem& at, const LoopPolicy& policy) {
  return squares_of_states(at.first, at.x, policy, true);
}
/// Returns the summed squares of a scan's outputs, with the first cell's state.
template <class Body>
Tensor squares_of(const Body& body, const Problem& at, const LoopPolicy& policy) {
  return sum(square(scan(Scan{.spatial_dim = at.x.dim("time"),
                              .initial = at.first.initial_state({at.x.dim("batch")}),
                              .xs = at.x,
                              .body = body,
                              .checkpoint = policy.checkpoint,
                              .swap_memory = policy.swap_memory})
                        .ys));
}
Tensor of_a_body_that_draws(const Problem& at, const LoopPolicy& policy) {
  const auto body = [&](const Tensor& x, const LstmCell::State& state) {
    const Tensor kept = random_uniform({at.x.dim("batch"), at.x.dim("in")}, 0, 1);
    auto [y, next] = at.first(where(kept < 0.8f, x, x * 0.0f), state);
    return std::pair{at.readout(y * random_normal({at.first.out_dim()})), next};
  };
  return squares_of(body, at, policy);
}
Tensor of_layers(const Problem& at, const LoopPolicy& policy) {
  const auto both = stack_cells(at.first, at.second);
  return sum(square(recur(both, at.x, at.x.dim("time"),
                          {.checkpoint = policy.checkpoint, .swap_memory = policy.swap_memory})
                        .outputs));
}
Tensor of_several_loops(const Problem& at, const LoopPolicy& policy) {
  const Dim time = at.x.dim("time");
  const auto first = recur(at.first, at.x, time,
                           {.checkpoint = policy.checkpoint, .swap_memory = policy.swap_memory});
  const auto second =
      recur(at.second, first.outputs, time, {.reverse = true, .swap_memory = policy.swap_memory});
  const auto third = recur(at.first, at.x, time, {.checkpoint = policy.checkpoint});
  return sum(square(second.outputs)) + sum(at.readout(third.outputs));
}
Tensor under_a_rule(const Problem& at, const LoopPolicy& policy) {
  const SavingRule rule = [](const StepValue& v) {
    return v.op == "tanh"      ? Saving::recompute
           : v.op == "sigmoid" ? Saving::spill
                               : Saving::by_default;
  };
  const bool keeps_all = policy.checkpoint.keeps_all() && !policy.swap_memory.spill();
  return forwards(
      at, keeps_all ? policy : LoopPolicy{policy.checkpoint.where(rule), policy.swap_memory});
}

struct Model {
  const char* name;
  Loss loss;
};
struct InChunks {
  Model model;
  int steps, chunk;  ///< iterations per chunk; 0: the plan's choice
};

class PoliciesInChunksTest : public ::testing::TestWithParam<InChunks> {
 protected:
  static std::size_t count(const std::string& text, const std::string& part) {
    std::size_t result = 0;
    for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
      ++result;
    return result;
  }
};

TEST_P(PoliciesInChunksTest, GradientsHaveTheBitsOfKeepingAll) {
  const InChunks& c = GetParam();
  const Problem at = problem(c.steps);
  const auto make = [&](const LoopPolicy& policy) {
    Passes passes;
    passes.chunk_steps = c.chunk;
    return jit(
        value_and_grad([loss = c.model.loss, policy](const Problem& p) { return loss(p, policy); }),
        {.passes = passes});
  };
  const auto call = [&](const auto& f) {
    manual_seed(8);
    return f(at);
  };
  const auto keeps_all = make({});
  const auto [value, gradient] = call(keeps_all);
  // Checks the loops that were written, and their gradients; inner loops have a number behind a
  // point.
  const auto expect_chunks = [&](const std::string& text) {
    EXPECT_EQ(count(text, " iterations, in ") > 0, c.chunk || c.steps > 64) << text;
    EXPECT_EQ(count(text, "\nloop "), count(text, " iterations, in ")) << text;
  };
  if (c.chunk || c.steps > 64) expect_chunks(keeps_all.explain());
  SmallSpillBlocks blocks;
  for (const LoopPolicy& policy :
       {LoopPolicy{Checkpoint::every(1)}, LoopPolicy{Checkpoint::every(200)},
        LoopPolicy{Checkpoint::budget(40'000)}, LoopPolicy{Checkpoint::budget(400'000)},
        LoopPolicy{{}, true}, LoopPolicy{Checkpoint::every(10), true}}) {
    SCOPED_TRACE(str(text_of(policy.checkpoint), policy.swap_memory.spill() ? ", in a file" : ""));
    const auto f = make(policy);
    const auto actual = call(f);
    if (c.chunk || c.steps > 64) expect_chunks(f.explain());
    expect_same_bits(actual.first, value);
    expect_same_leaves(actual.second, gradient);
    if (policy.swap_memory.spill() && c.steps == 1000) {
      EXPECT_GT(blocks.written(), 0);
    }
  }
}

const Model kForwards{"Forwards", forwards}, kBackwards{"Backwards", backwards},
    kDraws{"Draws", of_a_body_that_draws}, kSeveral{"Several", of_several_loops},
    kRule{"Rule", under_a_rule}, kLayers{"Layers", of_layers};
std::string name_of(const ::testing::TestParamInfo<InChunks>& info) {
  const std::string chunk = info.param.chunk ? str("ByTwos") : str("ByItself");
  return str(info.param.model.name, info.param.steps, chunk);
}
// One chunk; two, the second an iteration shorter; three and more.
INSTANTIATE_TEST_SUITE_P(Lengths, PoliciesInChunksTest,
                         ::testing::Values(InChunks{kForwards, 1, 0}, InChunks{kForwards, 40, 0},
                                           InChunks{kForwards, 64, 0}, InChunks{kForwards, 97, 0},
                                           InChunks{kForwards, 131, 0},
                                           InChunks{kForwards, 1000, 0},
                                           InChunks{kBackwards, 97, 0},
                                           InChunks{kBackwards, 131, 0},
                                           InChunks{kBackwards, 1000, 0}, InChunks{kDraws, 131, 0},
                                           InChunks{kDraws, 1000, 0}, InChunks{kSeveral, 131, 0},
                                           InChunks{kSeveral, 1000, 0}, InChunks{kRule, 131, 0},
                                           InChunks{kRule, 1000, 0}, InChunks{kLayers, 40, 0},
                                           InChunks{kLayers, 131, 0}, InChunks{kLayers, 1000, 0}),
                         name_of);
INSTANTIATE_TEST_SUITE_P(ByTwos, PoliciesInChunksTest,
                         ::testing::Values(InChunks{kForwards, 21, 2}, InChunks{kBackwards, 21, 2},
                                           InChunks{kDraws, 21, 2}, InChunks{kSeveral, 21, 2},
                                           InChunks{kRule, 21, 2}, InChunks{kLayers, 21, 2}),
                         name_of);

/// The kind of the inner loop in each iteration.
enum class Inside { counts, goes_along_a_dim, goes_along_slices };

/// A loop with a policy around inner loops of `inner` iterations, which save all residuals.
auto of_loops_inside(Inside inside, const Dim& inner, const LoopPolicy& policy) {
  return [=](const Problem& at) {
    using State = LstmCell::State;
    const auto body = [&](const Tensor& x, const State& state) {
      const auto with_count = [&](const Tensor& i, const State& state) {
        return at.first(x * (cast(i, f32) * 0.3f + 1.f), state).second;
      };
      const auto with_slice = [&](const Tensor& i, const State& state) {
        const State next =
            at.first(inside == Inside::goes_along_slices ? x + i : x * i, state).second;
        return std::pair{at.readout(next.h), next};
      };
      if (inside == Inside::counts) {
        const State next = fori_loop(0, inner.size(), with_count, state);
        return std::pair{at.readout(next.h), next};
      }
      const Tensor along = cast(range(inner), f32) * 0.1f;
      const Tensor xs = inside == Inside::goes_along_slices
                            ? expand(along, {inner, at.x.dim("batch"), at.x.dim("in")})
                            : along;
      const auto of_step =
          scan(Scan{.spatial_dim = inner, .initial = state, .xs = xs, .body = with_slice});
      return std::pair{sum(square(of_step.ys), inner), of_step.state};
    };
    return squares_of(body, at, policy);
  };
}

// Inner loops are chunked by their own iterations, also without a policy.
TEST(PoliciesOfLoopsInsideTest, GradientsHaveTheBitsOfKeepingAll) {
  for (const Inside inside : {Inside::counts, Inside::goes_along_a_dim, Inside::goes_along_slices})
    for (const auto& [steps, inner] : {std::pair{1, 3}, {7, 5}, {100, 3}, {131, 2}, {40, 60}}) {
      const Problem at = problem(steps);
      const auto gradient = [&, inner = Dim("inner", inner)](const LoopPolicy& policy) {
        return jit(value_and_grad(of_loops_inside(inside, inner, policy)))(at);
      };
      const auto [value, expected] = gradient({});
      SmallSpillBlocks blocks;
      for (const LoopPolicy& policy :
           {LoopPolicy{Checkpoint::every(1)}, LoopPolicy{Checkpoint::every(8)},
            LoopPolicy{Checkpoint::budget(400'000)}, LoopPolicy{{}, true},
            LoopPolicy{Checkpoint::every(10), true}}) {
        SCOPED_TRACE(str(static_cast<int>(inside), ": ", steps, " times ", inner, ", ",
                         text_of(policy.checkpoint),
                         policy.swap_memory.spill() ? ", in a file" : ""));
        const auto actual = gradient(policy);
        expect_same_bits(actual.first, value);
        expect_same_leaves(actual.second, expected);
      }
    }
}

}  // namespace
}  // namespace reel
