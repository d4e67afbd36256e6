// Branches of conds under vmap that are computed only for the rows that take them, chosen by cost.
#include <functional>
#include <sstream>

#include "reel/frontend/transforms/branch_cost.h"
#include "reel/tests/modes.h"

namespace reel {
namespace {

using Function = std::function<Tensor(const Tensor&)>;

/// Returns true if only the rows that take a branch compute it.
bool packs(const Function& branch, const Tensor& x) {
  const auto row = [&](const Tensor& x) {
    return cond(
        sum(x) > 0.0, [&] { return branch(x); }, [&] { return x; });
  };
  const auto jitted = jit(vmap(row));
  jitted(x);
  std::ostringstream text;
  text << jitted.graph();
  return text.str().find("true_positions") != std::string::npos;
}

TEST(BranchCostTest, CostlyBranchesArePacked) {
  const Tensor x = ones({1024, 256}), w = ones({256, 256});
  EXPECT_TRUE(packs([&](const Tensor& x) { return tanh(matmul(w, x)); }, x));
  const auto loop = [](const Tensor& x) {
    return fori_loop(
        0, 20, [](const Tensor&, const Tensor& s) { return tanh(s) * 1.1; }, x);
  };
  EXPECT_TRUE(packs(loop, x));
  EXPECT_TRUE(packs([](const Tensor& x) { return sort(x, 0); }, x));
  EXPECT_TRUE(packs([](const Tensor& x) { return set_at(x, 3, 2.0, Axis(0)); }, x))
      << "runs row by row";
}

TEST(BranchCostTest, CheapBranchesAreComputedForAllRows) {
  const Tensor x = ones({1024, 256}), few = ones({16, 256}), w = ones({256, 256});
  EXPECT_FALSE(packs([](const Tensor& x) { return x * 2.0 + 1.0; }, x));
  EXPECT_FALSE(packs([](const Tensor& x) { return tanh(tanh(x)); }, x));
  EXPECT_FALSE(packs([&](const Tensor& x) { return tanh(matmul(w, x)); }, few));
}

TEST(BranchCostTest, EffectsArePackedWhateverTheyCost) {
  testing::internal::CaptureStdout();
  EXPECT_TRUE(packs([](const Tensor& x) { return print(x, "x"); }, ones({2, 1})));
  testing::internal::GetCapturedStdout();
}

TEST(BranchCostTest, BranchesOfAVmapInsideAreComputedForAllRows) {
  const TakenRowsScope always(TakenRowsRule::always);
  const auto inner = [](const Tensor& x) {
    return vmap([](const Tensor& x) {
      return cond(
          x > 0.0, [&] { return tanh(x); }, [&] { return x; });
    })(x);
  };
  const auto jitted = jit(vmap(inner));
  const Tensor x = ones({2, 3});
  jitted(x);
  std::ostringstream text;
  text << jitted.graph();
  // The rows of the outer vmap that take a branch are packed, for each of the two branches.
  EXPECT_NE(text.str().find("true_positions"), std::string::npos);
  EXPECT_EQ(text.str().find("taken[rows]"), std::string::npos);
}

}  // namespace
}  // namespace reel
