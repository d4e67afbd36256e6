// Steps of a tile program that run as one chain; programs of chains give the bits of separate ops.
#include "reel/trace/executors/plan/tiles/tile_chains.h"

#include <gtest/gtest.h>

#include "reel/core/ops/elementwise/pointwise_code.h"
#include "reel/core/ops/elementwise/pointwise_kernels.h"
#include "reel/reel.h"
#include "reel/tests/trace/plan/planned.h"

namespace reel {
namespace {

using Groups = std::vector<std::vector<int>>;

const auto kAnyFits = [](const std::vector<int>&) { return true; };

// Values 0 to 9 are operands.
TEST(StepsInChainsTest, StepsThatWaitForAnotherKindComeBehindIt) {
  const std::vector<StepInOrder> steps = {
      {{0, 1}, 10, 4}, {{10}, 11, kNoChain}, {{11, 2}, 12, 4}, {{10, 3}, 13, 4}, {{13, 12}, 14, 4}};
  EXPECT_EQ(steps_in_chains(steps, 15, kAnyFits), (Groups{{0, 3}, {1}, {2, 4}}));
}

TEST(StepsInChainsTest, StepsOfNoChainComeAsSoonAsTheyCan) {
  const std::vector<StepInOrder> steps = {
      {{0, 1}, 10, 4}, {{1}, 11, kNoChain}, {{11, 10}, 12, 4}, {{11}, 13, kNoChain}};
  EXPECT_EQ(steps_in_chains(steps, 14, kAnyFits), (Groups{{1}, {3}, {0, 2}}));
}

TEST(StepsInChainsTest, KindsDoNotMix) {
  const std::vector<StepInOrder> steps = {{{0}, 10, 4}, {{1}, 11, 8}, {{10}, 12, 4}, {{11}, 13, 8}};
  EXPECT_EQ(steps_in_chains(steps, 14, kAnyFits), (Groups{{0, 2}, {1, 3}}));
}

TEST(StepsInChainsTest, ChainsEndWhereTheNextStepDoesNotFit) {
  const std::vector<StepInOrder> steps = {
      {{0}, 10, 4}, {{10}, 11, 4}, {{11}, 12, 4}, {{12}, 13, 4}, {{13}, 14, 4}};
  const auto two = [](const std::vector<int>& chain) { return chain.size() <= 2; };
  EXPECT_EQ(steps_in_chains(steps, 15, two), (Groups{{0, 1}, {2, 3}, {4}}));
}

class TileChainsTest : public ::testing::Test {
 protected:
  void SetUp() override { manual_seed(3); }

  template <class F, class... Args>
  void expect_same(const F& f, const Args&... args) {
    expect_same_without({.fuse_pointwise = false}, true, f, args...);
  }
};

TEST_F(TileChainsTest, SimpleOpsOfOneSize) {
  const auto f = [](Tensor x, Tensor y) {
    const Tensor z = sqrt(abs(x * y - x)) / (maximum(x, y) + 3);
    return std::tuple{relu(z - 0.5), minimum(-z, square(x)), z};
  };
  for (const DType dtype : {f32, f64})
    for (const std::int64_t count : {1, 7, 16, 1000, 5000})
      expect_same(f, random_normal({count}, dtype), random_normal({count}, dtype));
}

TEST_F(TileChainsTest, ChainsBetweenOpsThatHaveNoCode) {
  const auto f = [](Tensor x, Tensor y) {
    const Tensor a = tanh(x * y + x), b = exp(x - y), c = a * b - x;
    return where(c > 0., c * a, sigmoid(c) * b + 1.);
  };
  expect_same(f, random_normal({33, 77}), random_normal({33, 77}));
}

TEST_F(TileChainsTest, OperandsThatRepeatAlongRowsAndColumns) {
  const auto f = [](Tensor x, Tensor row, Tensor column, Tensor one) {
    return (x * row + column) * one - row * column / (one + 2.) + x;
  };
  for (const std::int64_t columns : {1, 9, 130})
    expect_same(f, random_normal({21, columns}), random_normal({columns}), random_normal({21, 1}),
                random_normal({}));
}

// More values are live at once than there are registers, and more than a chain has places.
TEST_F(TileChainsTest, ProgramsOfMoreThanOneChain) {
  const auto f = [](std::vector<Tensor> x) {
    std::vector<Tensor> made;
    for (std::size_t i = 0; i + 1 < x.size(); ++i) made.push_back(x[i] * x[i + 1]);
    for (std::size_t i = 0; i + 1 < made.size(); ++i) made[i] = made[i] + made[made.size() - 1 - i];
    Tensor total = made[0];
    for (const Tensor& m : made) total = total * 0.5 - m;
    made.push_back(total);
    return made;
  };
  std::vector<Tensor> x;
  for (int i = 0; i < 40; ++i) x.push_back(random_normal({300}));
  expect_same(f, x);
}

// A dropped part must not leave a chain without results, which crashed.
TEST_F(TileChainsTest, UnreadSplitResultLeavesNoEmptyChain) {
  const auto f = [](Tensor u, Tensor k, Tensor c, Tensor d) {
    return split(concat({u, exp(u * k)}, -1) * c + d, -1, 2)[0];
  };
  expect_same(f, random_normal({8, 32}), random_normal({8, 32}), random_normal({8, 64}),
              random_normal({8, 64}));
}

// As on a processor without AVX2, or if the system refuses executable memory.
TEST_F(TileChainsTest, WithoutCodeStepsRunOneByOne) {
  const PointwiseTable* const sse42 = find_pointwise_table("sse42");
  if (!sse42) GTEST_SKIP() << "this processor is no x86-64";
  const PointwiseTable* const before = &pointwise_table();
  chosen_pointwise_table.store(sse42);
  Chain chain{.repeats = {false, false}, .steps = {}, .results = {}};
  chain.results = {chain.append(Binary::add, 0, 1)};
  EXPECT_FALSE(code_of(chain));
  const auto f = [](Tensor x, Tensor scale) {
    const Tensor centred = x - mean(x, -1, Keep::yes);
    return tanh(centred * scale + x) * square(centred) - scale;
  };
  expect_same(f, random_normal({37, 40}), random_normal({40}));
  expect_same(grad([&](Tensor x, Tensor scale) { return sum(f(x, scale)); }),
              random_normal({37, 40}), random_normal({40}));
  chosen_pointwise_table.store(before);
}

TEST_F(TileChainsTest, NumbersForEachRowBetweenSums) {
  const auto normed = [](Tensor x, Tensor scale) {
    const Tensor centred = x - mean(x, -1, Keep::yes);
    const Tensor spread = sqrt(mean(square(centred), -1, Keep::yes) + 1e-5);
    return centred / spread * scale + spread;
  };
  for (const Dims& dims : {Dims{1, 40}, Dims{37, 40}, Dims{5, 700}}) {
    const Tensor scale = random_normal({dims[1]});
    expect_same(normed, random_normal(dims), scale);
    expect_same(grad([&](Tensor x) { return sum(square(normed(x, scale))); }), random_normal(dims));
  }
}

}  // namespace
}  // namespace reel
