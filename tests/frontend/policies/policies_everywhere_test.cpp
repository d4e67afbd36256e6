// Memory policies of loops that are made by other functions than scan and while_loop.
#include <gtest/gtest.h>

#include "reel/tests/gradients.h"
#include "reel/tests/modes.h"
#include "reel/trace/executors/spill/spilled.h"

namespace reel {
namespace {

struct Policy {
  Checkpoint checkpoint = {};
  SwapMemory swap_memory = {};
};

/// w: [h, to] of equal sizes, x: [time, batch, h].
struct Problem {
  Tensor w, x;
  RnnCell cell;

  Tensor step(const Tensor& h, const Tensor& row) const {
    return tanh(rename(matmul(h, w, x.dim("h")), w.dims()[1], x.dim("h")) + row);
  }
  Tensor start() const { return zeros({x.dim("batch"), x.dim("h")}, f64); }
};
Problem problem() {
  manual_seed(3);
  const Dim time("time", 9), batch("batch", 2), h("h", 3), to("to", 3);
  return {random_normal({h, to}, f64) * 0.5, random_normal({time, batch, h}, f64),
          RnnCell::init(h, Dim("hidden", 3), {.dtype = f64})};
}

/// A loss under a policy, named after the function that makes its loop.
using Loss = std::function<Tensor(const Problem&, const Policy&)>;
const std::vector<std::pair<const char*, Loss>>& losses() {
  static const std::vector<std::pair<const char*, Loss>> all{
      {"fori_loop",
       [](const Problem& p, const Policy& policy) {
         const auto body = [&](const Tensor& i, const Tensor& h) {
           return p.step(h, gather(p.x, i, p.x.dim("time")));
         };
         return sum(
             fori_loop(0, 9, body, p.start(),
                       {.checkpoint = policy.checkpoint, .swap_memory = policy.swap_memory}));
       }},
      {"map",
       [](const Problem& p, const Policy& policy) {
         // Without the sine, its result would be saved anyway.
         return sum(map([&](const Tensor& row) { return sin(p.step(row, row)); }, p.x,
                        {.spatial_dim = p.x.dim("time"),
                         .checkpoint = policy.checkpoint,
                         .swap_memory = policy.swap_memory}));
       }},
      {"foldl",
       [](const Problem& p, const Policy& policy) {
         const auto f = [&](const Tensor& h, const Tensor& row) { return p.step(h, row); };
         return sum(foldl(f, p.x, p.start(),
                          {.spatial_dim = p.x.dim("time"),
                           .checkpoint = policy.checkpoint,
                           .swap_memory = policy.swap_memory}));
       }},
      {"foldr from the last element",
       [](const Problem& p, const Policy& policy) {
         const auto f = [&](const Tensor& h, const Tensor& row) { return p.step(h, row); };
         return sum(foldr(f, p.x,
                          {.spatial_dim = p.x.dim("time"),
                           .checkpoint = policy.checkpoint,
                           .swap_memory = policy.swap_memory}));
       }},
      {"recur",
       [](const Problem& p, const Policy& policy) {
         return sum(recur(p.cell, p.x, p.x.dim("time"),
                          {.checkpoint = policy.checkpoint, .swap_memory = policy.swap_memory})
                        .outputs);
       }},
      {"bidirectional",
       [](const Problem& p, const Policy& policy) {
         return sum(
             bidirectional(p.cell, p.cell, p.x, p.x.dim("time"),
                           {.checkpoint = policy.checkpoint, .swap_memory = policy.swap_memory})
                 .outputs);
       }},
  };
  return all;
}

class PoliciesEverywhereTest : public InEveryMode {};

TEST_P(PoliciesEverywhereTest, ChangeNoGradient) {
  const std::vector<Policy> policies{{.checkpoint = Checkpoint::every(4)},
                                     {.checkpoint = Checkpoint::budget(300)},
                                     {.swap_memory = true}};
  SmallSpillBlocks blocks;
  for (const auto& [name, loss] : losses()) {
    SCOPED_TRACE(name);
    const auto gradient = [&](const Policy& policy) {
      return run(grad([&](const Problem& p) { return loss(p, policy); }))(problem());
    };
    const Problem expected = gradient({});
    for (const Policy& policy : policies) {
      const Problem actual = gradient(policy);
      expect_same_bits(actual.x, expected.x);
      expect_same_bits(actual.w, expected.w);
      expect_same_bits(actual.cell.recurrent_weight, expected.cell.recurrent_weight);
      // Some plans run all iterations as one chunk, which is one block.
      if (policy.swap_memory.spill() && GetParam() != RunMode::plan) {
        EXPECT_GT(blocks.written(), 0);
      }
    }
  }
}

TEST_P(PoliciesEverywhereTest, TruncateInRecur) {
  const Problem p = problem();
  const auto gradient = [&](std::int64_t truncate) {
    const auto loss = [&](const Tensor& x) {
      return sum(recur(p.cell, x, x.dim("time"), {.truncate = truncate}).state);
    };
    return run(grad(loss))(p.x);
  };
  // Gradients from behind a cut do not reach iterations in front of it.
  const Tensor x = gradient(4), whole_x = gradient(9);
  const Dim& time = p.x.dim("time");
  EXPECT_EQ(values_of(slice(x, time, 0, 8)), std::vector<double>(8 * 2 * 3));
  expect_same_bits(slice(x, time, 8), slice(whole_x, time, 8));
  EXPECT_NE(values_of(slice(whole_x, time, 0, 8)), std::vector<double>(8 * 2 * 3));
}
REEL_IN_EVERY_MODE(PoliciesEverywhereTest);

TEST(PoliciesOfAllLoopsTest, AreInForce) {
  for (const auto& [name, loss] : losses()) {
    SCOPED_TRACE(name);
    const auto kept = [&](const Policy& policy) {
      return saved_values([&](const Problem& p) { return loss(p, policy); })(problem()).values;
    };
    const auto is_of_checkpoints = [](const KeptValue& value) {
      return value.op.find("checkpoints") != std::string::npos;
    };
    EXPECT_TRUE(std::ranges::none_of(kept({}), is_of_checkpoints));
    EXPECT_TRUE(std::ranges::any_of(kept({.checkpoint = Checkpoint::every(2)}), is_of_checkpoints));
    EXPECT_TRUE(std::ranges::any_of(kept({.swap_memory = true}), &KeptValue::is_spilled));
  }
}

}  // namespace
}  // namespace reel
