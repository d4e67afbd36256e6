// Collectives on every dtype, on empty and large tensors, and on values that are no numbers.
#include <cmath>
#include <cstdint>
#include <limits>

#include "world_of_tests.h"

namespace reel {
namespace {

class KindsInEveryModeTest : public InEveryMode {
 protected:
  static int rank() { return world().rank(); }
  static int size() { return world().size(); }
};
REEL_IN_EVERY_MODE(KindsInEveryModeTest);

TEST_P(KindsInEveryModeTest, SumsAndMaximaOfIntegersAreExactAndWrapAround) {
  const auto both = [](const Tensor& x) {
    return std::pair{world().all_reduce(x), world().all_reduce(x, Reduction::max)};
  };
  const std::int64_t most = std::numeric_limits<std::int64_t>::max();
  const auto [sum, max] = run(both)(tensor({most, std::int64_t{-3} - rank()}, {}, i64));
  EXPECT_EQ(sum.to_vector<std::int64_t>()[0],
            static_cast<std::int64_t>(static_cast<std::uint64_t>(most) *
                                      static_cast<std::uint64_t>(size())));
  EXPECT_EQ(sum.to_vector<std::int64_t>()[1], -3 * size() - size() * (size() - 1) / 2);
  EXPECT_EQ(max.to_vector<std::int64_t>()[1], -3);
  const auto [sum32, max32] = run(both)(tensor({-5 - rank()}));
  EXPECT_EQ(max32.item<std::int32_t>(), -5);
}

TEST_P(KindsInEveryModeTest, ANumberThatIsNoneReachesAllRanks) {
  const double nan = std::nan("");
  const bool is_last = rank() == size() - 1;
  const auto both = [](const Tensor& x) {
    return std::pair{world().all_reduce(x), world().all_reduce(x, Reduction::max)};
  };
  const auto [sum, max] = run(both)(tensor({is_last ? nan : 1., 2.}, {}, f64));
  EXPECT_TRUE(std::isnan(sum.to_vector<double>()[0]));
  EXPECT_TRUE(std::isnan(max.to_vector<double>()[0]));
  EXPECT_EQ(sum.to_vector<double>()[1], 2 * size());
  EXPECT_EQ(max.to_vector<double>()[1], 2);
  const auto loss = [](const Tensor& x) {
    return reel::sum(world().all_reduce(x, Reduction::max));
  };
  const Tensor dx = run(grad(loss))(tensor({is_last ? nan : 1., 2.}, {}, f64));
  EXPECT_EQ(dx.to_vector<double>()[0], is_last ? size() : 0);
}

TEST_P(KindsInEveryModeTest, TensorsWithoutElements) {
  const auto all = [](const Tensor& x) {
    return std::tuple{world().all_reduce(x),    world().all_reduce(x, Reduction::max),
                      world().all_gather(x, 0), world().all_gather(x, 1),
                      world().broadcast(x),     world().reduce_scatter(x, 0)};
  };
  for (const DType dtype : {f32, i64}) {
    const auto [sum, max, rows, columns, copy, part] = run(all)(zeros({0, 3}, dtype));
    EXPECT_EQ(sum.shape(), (std::vector<std::int64_t>{0, 3}));
    EXPECT_EQ(max.shape(), (std::vector<std::int64_t>{0, 3}));
    EXPECT_EQ(rows.shape(), (std::vector<std::int64_t>{0, 3}));
    EXPECT_EQ(columns.shape(), (std::vector<std::int64_t>{0, 3 * size()}));
    EXPECT_EQ(copy.shape(), (std::vector<std::int64_t>{0, 3}));
    EXPECT_EQ(part.shape(), (std::vector<std::int64_t>{0, 3}));
  }
  struct Nothing {
    std::vector<Tensor> none;
    int number = 3;
  };
  EXPECT_EQ(world().all_reduce(Nothing{}).number, 3);
}

TEST_P(KindsInEveryModeTest, BooleansAreSentAsTheyAre) {
  const auto both = [](const Tensor& x) {
    return std::pair{world().all_gather(x, 0), world().broadcast(x, world().size() - 1)};
  };
  const auto [all, last] = run(both)(tensor({rank() % 2 == 0, true}));
  for (int r = 0; r < size(); ++r)
    EXPECT_EQ(all.to_vector<bool>()[static_cast<std::size_t>(2 * r)], r % 2 == 0);
  EXPECT_EQ(last.to_vector<bool>()[0], (size() - 1) % 2 == 0);
}

TEST_P(KindsInEveryModeTest, IntegersAreScattered) {
  const auto scatter = [](const Tensor& x) { return world().reduce_scatter(x, 0); };
  std::vector<std::int32_t> x;
  for (int r = 0; r < size(); ++r) x.push_back(10 * r + rank());
  EXPECT_EQ(run(scatter)(tensor(x)).to_vector<std::int32_t>(),
            std::vector<std::int32_t>{10 * rank() * size() + size() * (size() - 1) / 2});
}

TEST_P(KindsInEveryModeTest, ScatterOfANamedAxisKeepsItsName) {
  const Dim batch("batch", 2), hidden("hidden", 3 * size());
  const auto scatter = [](const Tensor& x) { return world().reduce_scatter(x, x.dim("hidden")); };
  const Tensor y = run(scatter)(full({batch, hidden}, 1. + rank(), f64));
  EXPECT_EQ(y.dim("hidden").size(), 3);
  EXPECT_EQ(y.dim("batch").size(), 2);
  EXPECT_EQ(y.to_vector<double>()[5], sum_over_ranks([](int r) { return 1. + r; }));
}

TEST(KindsTest, ATraceRefusesToCutASizeThatOnlyTheRunKnows) {
  const auto scatter = [](const Tensor& x, const Tensor& mask) {
    return world().reduce_scatter(pack(x, mask), 0);
  };
  const auto shard = [](const Tensor& x, const Tensor& mask) {
    return world().shard(pack(x, mask)).parts[0];
  };
  const std::string reason =
      ": axis 0 of f32[?] has a size that only the run knows, so it cannot be cut; state it, as in "
      "ensure_shape(x, {...})";
  const Tensor x = zeros({12}), mask = x == 0.;
  EXPECT_EQ(error_of([&] { jit(scatter)(x, mask); }), "reduce_scatter" + reason);
  EXPECT_EQ(error_of([&] { jit(shard)(x, mask); }), "shard" + reason);
}

TEST(BucketsTest, LargeAndSmallTensorsShareBuckets) {
  // Sizes around the ends of buckets of 4 MiB: elements at the seams must be in their places.
  const std::int64_t bucket = (4 << 20) / 4;
  struct Tree {
    std::vector<Tensor> floats;
    Tensor integers;
  };
  Tree tree{{}, cast(range(300'001), i64) + world().rank()};
  for (const std::int64_t n :
       {std::int64_t{5}, bucket - 7, std::int64_t{0}, bucket + 11, 2 * bucket, std::int64_t{1}})
    tree.floats.push_back(cast(range(n) % 251, f32) * static_cast<float>(1 + world().rank()));
  const Tree sum = world().all_reduce(tree);
  const auto factor = static_cast<float>(sum_over_ranks([](int r) { return 1. + r; }));
  for (const Tensor& x : sum.floats) {
    const std::vector<float> y = x.to_vector<float>();
    for (std::size_t i = 0; i < y.size(); ++i)
      ASSERT_EQ(y[i], factor * static_cast<float>(i % 251)) << i << " of " << y.size();
  }
  const std::vector<std::int64_t> n = sum.integers.to_vector<std::int64_t>();
  const int ranks = world().size();
  for (std::size_t i = 0; i < n.size(); ++i)
    ASSERT_EQ(n[i], static_cast<std::int64_t>(i) * ranks + ranks * (ranks - 1) / 2);
}

TEST(BucketsTest, ScatterOfSeveralBuckets) {
  const std::int64_t part = (4 << 20) / 4 + 13;
  const Tensor x = cast(range(part * world().size()) % 127, f32);
  const std::vector<float> y = world().reduce_scatter(x, 0).to_vector<float>();
  ASSERT_EQ(static_cast<std::int64_t>(y.size()), part);
  for (std::size_t i = 0; i < y.size(); ++i)
    ASSERT_EQ(y[i],
              static_cast<float>(world().size()) *
                  static_cast<float>((static_cast<std::int64_t>(i) + part * world().rank()) % 127));
}

}  // namespace
}  // namespace reel
