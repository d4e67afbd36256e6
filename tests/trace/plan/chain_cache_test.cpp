// Chains of tile programs are found again by their structure, which has no sizes.
#include "reel/trace/executors/plan/tiles/chain_cache.h"

#include <gtest/gtest.h>

#include <random>
#include <thread>

#include "reel/core/ops/elementwise/elementwise.h"
#include "reel/core/ops/elementwise/pointwise_code.h"
#include "reel/reel.h"
#include "reel/tests/check.h"

namespace reel {
namespace {

std::vector<TileStep> steps(int count) {
  std::vector<TileStep> result;
  for (int i = 0; i < count; ++i)
    result.push_back({.op = &mul_op, .in = {i, i + 1}, .out = {i + 2}});
  return result;
}

TEST(ChainCacheTest, StepsAreFoundByTheirKey) {
  ChainCache cache(100'000);
  EXPECT_FALSE(cache.find("a"));
  cache.insert("a", steps(1));
  cache.insert("b", steps(3));
  ASSERT_TRUE(cache.find("b"));
  EXPECT_EQ(cache.find("b")->size(), 3u);
  EXPECT_EQ(cache.find("b")->at(2).in, (std::vector<int>{2, 3}));
  EXPECT_EQ(cache.find("a")->size(), 1u);
}

TEST(ChainCacheTest, LeastRecentlyUsedEntriesAreDropped) {
  ChainCache one(100'000);
  one.insert("a", steps(4));
  const std::int64_t bytes = one.bytes();
  EXPECT_GT(bytes, static_cast<std::int64_t>(4 * sizeof(TileStep)));
  ChainCache cache(3 * bytes);
  for (const char* key : {"a", "b", "c"}) cache.insert(key, steps(4));
  EXPECT_EQ(cache.bytes(), 3 * bytes);
  EXPECT_TRUE(cache.find("a"));
  cache.insert("d", steps(4));
  EXPECT_FALSE(cache.find("b"));
  for (const char* key : {"a", "c", "d"}) EXPECT_TRUE(cache.find(key)) << key;
  EXPECT_EQ(cache.bytes(), 3 * bytes);
}

TEST(ChainCacheTest, OneEntryLargerThanTheBoundIsNotHeld) {
  ChainCache cache(1'000);
  cache.insert("small", steps(1));
  cache.insert("large", steps(100));
  EXPECT_FALSE(cache.find("large"));
  EXPECT_TRUE(cache.find("small"));
}

TEST(ChainCacheTest, CodeCountsWithItsPages) {
  Chain chain{.repeats = {false, false}, .steps = {}, .results = {}};
  chain.results = {chain.append(Binary::add, 0, 1)};
  const auto code = code_of(chain);
  if (!code) GTEST_SKIP() << "this processor has no generated code";
  std::vector<TileStep> with_code(1);
  with_code[0].code = code;
  ChainCache with(100'000), without(100'000);
  with.insert("a", with_code);
  without.insert("a", std::vector<TileStep>(1));
  EXPECT_EQ(with.bytes() - without.bytes(), static_cast<std::int64_t>(code->bytes()));
  EXPECT_GE(code->bytes(), 512u);
}

TEST(ChainCacheTest, ThreadsFindAndInsertTogether) {
  ChainCache cache(20'000);
  std::vector<std::thread> all;
  for (int t = 0; t < 4; ++t)
    all.emplace_back([&, t] {
      std::mt19937 draw(static_cast<unsigned>(t));
      for (int i = 0; i < 500; ++i) {
        const int size = static_cast<int>(1 + draw() % 40);
        const std::string key(1, static_cast<char>('0' + size));
        if (const auto found = cache.find(key))
          EXPECT_EQ(found->size(), static_cast<std::size_t>(size));
        else
          cache.insert(key, steps(size));
      }
    });
  for (std::thread& thread : all) thread.join();
  EXPECT_LE(cache.bytes(), 20'000);
}

/// Functions with fused ops that broadcast, sum over rows, split and join.
class ChainsOfOtherSizesTest : public ::testing::Test {
 protected:
  void SetUp() override { manual_seed(11); }

  static Tensors fused(const Tensor& x, const Tensor& row, const Tensor& column) {
    const Tensor centred = x - mean(x, -1, Keep::yes);
    const Tensor y = tanh(centred * row + column) / sqrt(mean(square(centred), -1, Keep::yes) + 1.);
    const Tensors halves = split(concat({y * x, exp(-square(y))}, 0), 0, 2);
    return {y, relu(halves[0] - halves[1] * column) + row, maximum(x, row) * column - y};
  }
};

// Sizes of 1 change which operands repeat: another structure.
TEST_F(ChainsOfOtherSizesTest, BitsAreThoseOfSeparateOps) {
  std::mt19937 draw(5);
  const auto traced = jit(fused);
  for (int turn = 0; turn < 60; ++turn) {
    const auto size = [&] {
      return static_cast<std::int64_t>(draw() % 4 ? 1 + draw() % 70 : 1 + draw() % 2);
    };
    const std::int64_t rows = size(), columns = size();
    const DType dtype = turn % 2 ? f32 : f64;
    const Tensor x = random_normal({rows, columns}, dtype), row = random_normal({columns}, dtype),
                 column = random_normal({rows, 1}, dtype);
    const Tensors made = traced(x, row, column),
                  apart = jit(fused, {.passes = {.fuse_pointwise = false}})(x, row, column);
    for (std::size_t k = 0; k < made.size(); ++k) expect_same_bits(made[k], apart[k]);
  }
}

TEST_F(ChainsOfOtherSizesTest, ALongerBatchAddsNoStructure) {
  const auto traced = jit(fused);
  const auto run = [&](std::int64_t rows, std::int64_t columns) {
    traced(random_normal({rows, columns}), random_normal({columns}), random_normal({rows, 1}));
  };
  run(5, 33);
  const std::int64_t bytes = chain_cache().bytes();
  EXPECT_GT(bytes, 0);
  for (const std::int64_t rows : {7, 9, 300}) run(rows, 33 + rows);
  EXPECT_EQ(chain_cache().bytes(), bytes);
}

}  // namespace
}  // namespace reel
