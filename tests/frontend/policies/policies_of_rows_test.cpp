// Memory policies of loops with enough rows for row blocks, and of products with bits that depend
// on the number of rows: a plan's gradients have the same bits as with all residuals saved.
#include <gtest/gtest.h>

#include <functional>
#include <optional>

#include "reel/tests/frontend/policies/policies.h"
#include "reel/trace/executors/spill/spilled.h"

namespace reel {
namespace {

struct Model {
  Tensor w, u, v, x;
};
struct Sizes {
  std::int64_t steps, rows, units;
};
/// Plain dims: x is [steps, rows, units].
Model model(const Sizes& n) {
  manual_seed(5);
  const double scale = 1.0 / static_cast<double>(n.units);
  const auto square_matrix = [&] { return random_normal({n.units, n.units}) * scale; };
  const Tensor w = square_matrix(), u = square_matrix(), v = square_matrix();
  return {w, u, v, random_normal({n.steps, n.rows, n.units})};
}

using Step = std::function<Tensor(const Model&, const Tensor& x, const Tensor& h)>;

Tensor plain_step(const Model& m, const Tensor& x, const Tensor& h) {
  return tanh(matmul(x, m.u) + matmul(h, m.w));
}
/// The gradient waits for the step behind it, but ops that a rule recomputes do not.
Tensor deep_step(const Model& m, const Tensor& x, const Tensor& h) {
  return tanh(matmul(tanh(matmul(h, m.w) + x), m.v) + matmul(tanh(x), m.u));
}
Tensor branch_step(const Model& m, const Tensor& x, const Tensor& h) {
  return cond(
      sum(h) < 0.5f, [&] { return plain_step(m, x, h); }, [&] { return tanh(matmul(h, m.v) + x); });
}
/// The body computes its weights from others.
Tensor turned_step(const Model& m, const Tensor& x, const Tensor& h) {
  return tanh(matmul(x, m.u) + matmul(h, transpose(m.w, {1, 0})));
}
Tensor made_again_step(const Model& m, const Tensor& x, const Tensor& h) {
  const auto f = [](const Tensor& w) { return tanh(matmul(w, w)); };
  return tanh(matmul(x, m.u) + matmul(h, checkpoint(f)(m.w)));
}
Tensor checkpointed_step(const Model& m, const Tensor& x, const Tensor& h) {
  return checkpoint([&](const Tensor& x, const Tensor& h) { return deep_step(m, x, h); })(x, h);
}

/// Sums over iterations are transposed and scaled once at the end. Sums over no iterations must be
/// +0 all the same.
Tensor minus_step(const Model& m, const Tensor& x, const Tensor& h) {
  return tanh(matmul(h, m.w * 0.5f) - matmul(h, m.w) - matmul(x, -m.u * 2.0f));
}

Tensor loss(const Model& m, const Step& step, const LoopPolicy& policy) {
  const auto body = [&](const Tensor& x, const Tensor& h) {
    const Tensor next = step(m, x, h);
    return std::pair{matmul(next, m.v), next};
  };
  const auto made = scan(Scan{.initial = zeros({m.x.dims()[1], m.x.dims()[2]}),
                              .xs = m.x,
                              .body = body,
                              .checkpoint = policy.checkpoint,
                              .swap_memory = policy.swap_memory});
  return sum(square(made.ys)) + sum(made.state);
}

Checkpoint rule(Saving (*of)(const StepValue&)) { return Checkpoint().where(of); }
const std::vector<std::pair<const char*, LoopPolicy>>& all_policies() {
  static const std::vector<std::pair<const char*, LoopPolicy>> all{
      {"every 1", {Checkpoint::every(1)}},
      {"every 16", {Checkpoint::every(16)}},
      {"a budget", {Checkpoint::budget(100000)}},
      {"a file", {{}, true}},
      {"recompute all", {rule([](const StepValue&) { return Saving::recompute; })}},
      {"recompute products", {rule([](const StepValue& v) {
         return v.op == "dot" ? Saving::recompute : Saving::by_default;
       })}},
      {"keep products",
       {rule([](const StepValue& v) { return v.op == "dot" ? Saving::keep : Saving::recompute; })}},
      {"by default", {rule([](const StepValue&) { return Saving::by_default; })}},
      {"every 16, recompute all",
       {Checkpoint::every(16).where([](const StepValue&) { return Saving::recompute; })}},
  };
  return all;
}

/// Expects the same bits for all gradients, and for the gradient of x alone, which needs no sums.
void expect_same_bits_under_policies(const char* name, const Step& step, const Sizes& n) {
  const Model m = model(n);
  const auto gradient = [&](const LoopPolicy& policy) {
    return jit(value_and_grad([&](const Model& m) { return loss(m, step, policy); }))(m);
  };
  const auto frozen = [&](const LoopPolicy& policy) {
    return jit(grad([&](const Tensor& x) { return loss({m.w, m.u, m.v, x}, step, policy); }))(m.x);
  };
  const auto expected = gradient({});
  const Tensor expected_of_x = frozen({});
  SmallSpillBlocks blocks;
  for (const auto& [of_policy, policy] : all_policies()) {
    SCOPED_TRACE(str(name, ", ", of_policy, ", ", n.steps, " steps, ", n.rows, " rows, ", n.units,
                     " units"));
    const auto actual = gradient(policy);
    expect_same_bits(actual.first, expected.first);
    expect_same_leaves(actual.second, expected.second);
    expect_same_bits(frozen(policy), expected_of_x);
  }
}

class PoliciesOfRowsTest : public ::testing::TestWithParam<Sizes> {};
std::string name_of(const ::testing::TestParamInfo<Sizes>& info) {
  return str("Of", info.param.steps, "StepsOf", info.param.rows, "Rows", info.param.units, "Units");
}

TEST_P(PoliciesOfRowsTest, GradientsHaveTheBitsOfKeepingAll) {
  expect_same_bits_under_policies("plain", plain_step, GetParam());
  expect_same_bits_under_policies("deep", deep_step, GetParam());
  expect_same_bits_under_policies("branches", branch_step, GetParam());
  expect_same_bits_under_policies("turned", turned_step, GetParam());
  expect_same_bits_under_policies("made again", made_again_step, GetParam());
  expect_same_bits_under_policies("checkpointed", checkpointed_step, GetParam());
  expect_same_bits_under_policies("minus", minus_step, GetParam());
}
// One row block and several, matrices in the first cache and beyond the second, and a length with
// suitable divisors and a prime.
INSTANTIATE_TEST_SUITE_P(Sizes, PoliciesOfRowsTest,
                         ::testing::Values(Sizes{0, 3, 8}, Sizes{70, 2, 8}, Sizes{70, 16, 32},
                                           Sizes{37, 33, 72}, Sizes{40, 16, 200},
                                           Sizes{33, 4, 300}),
                         name_of);

// Part of the state is shared by all rows, and matrices have its dim. A rule that recomputes sums
// of its cotangent keeps the gradient from being split into row blocks.
TEST(PoliciesOfStatesTest, SharedStateHasTheBitsOfKeepingAll) {
  const Dim batch("batch", 24), time("time", 5), in("in", 33), hidden("hidden", 64),
      next("next", 64);
  const auto again = [](const StepValue&) { return Saving::recompute; };
  for (const DType dtype : {f32, f64}) {
    manual_seed(17);
    const Model model{random_normal({hidden, in}, dtype) * 0.2,
                      random_normal({hidden, next}, dtype) * 0.1, random_normal({hidden}, dtype),
                      random_normal({time, batch, in}, dtype)};
    const auto gradient = [&](const Checkpoint& policy) {
      return jit(value_and_grad([&](const Model& m) {
        const auto step = [&](const Tensor& x, const std::pair<Tensor, Tensor>& state) {
          const auto& [h, c] = state;
          const Tensor q = tanh(matmul(x * x, m.w, in) + h);
          const Tensor r = q + rename(matmul(q, m.u, hidden), next, hidden) * 0.5;
          const Tensor gate = sigmoid(r) * matmul(rename(r, hidden, next), m.u * 0.9, next);
          const Tensor y = tanh(gate + c * 0.01);
          return std::pair{y, std::pair{y, c * 0.99}};
        };
        return sum(square(scan(Scan{.spatial_dim = time,
                                    .initial = std::pair{zeros({batch, hidden}, dtype), m.v},
                                    .xs = m.x,
                                    .body = step,
                                    .checkpoint = policy})
                              .ys));
      }))(model);
    };
    const auto expected = gradient({});
    for (const Checkpoint& policy :
         {Checkpoint().where(again), Checkpoint::every(3).where(again), Checkpoint::every(4)}) {
      const auto actual = gradient(policy);
      expect_same_bits(actual.first, expected.first);
      expect_same_leaves(actual.second, expected.second);
    }
  }
}

// A function under checkpoint() is recomputed with the same bits as the same ops without it.
TEST(PoliciesOfFunctionsTest, StepsUnderCheckpointHaveTheBitsOfPlainOnes) {
  for (const Sizes n : {Sizes{70, 16, 32}, Sizes{40, 16, 200}, Sizes{20, 16, 512}}) {
    const Model m = model(n);
    const auto gradient = [&](const Step& step) {
      return jit(value_and_grad([&](const Model& m) { return loss(m, step, {}); }))(m);
    };
    const auto plain = gradient(deep_step), again = gradient(checkpointed_step);
    SCOPED_TRACE(n.units);
    expect_same_bits(again.first, plain.first);
    expect_same_leaves(again.second, plain.second);
  }
}

}  // namespace
}  // namespace reel
