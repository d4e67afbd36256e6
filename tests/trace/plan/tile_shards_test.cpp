// Large tile programs, which run in parts on several threads, with the bits of separate ops for any
// number of threads.
#include <gtest/gtest.h>

#include <ctime>

#include "reel/core/ops/kernels/parallel_ranges.h"
#include "reel/reel.h"
#include "reel/tests/threads.h"
#include "reel/tests/trace/plan/planned.h"

namespace reel {
namespace {

class TileShardsTest : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override { manual_seed(7); }

  template <class F, class... Args>
  void expect_same(const F& f, const Args&... args) {
    expect_same_without({.fuse_pointwise = false}, true, f, args...);
  }

  const Threads threads_{GetParam()};
};

TEST_P(TileShardsTest, ElementsSideBySide) {
  const auto f = [](Tensor x, Tensor y) { return tanh(x * y + x) * sigmoid(y) - x; };
  for (const std::int64_t count : {100'003, 65'536, 13'108})  // in 4, 3, and 1 shards
    expect_same(f, random_normal({count}), random_normal({count}));
}

TEST_P(TileShardsTest, SplitsConcatsAndBroadcastOperands) {
  const auto step = [](Tensor gates, Tensor bias, Tensor c) {
    auto [i, f, o, g] = split<4>(gates + bias, 1);
    const Tensor next = sigmoid(f) * c + sigmoid(i) * tanh(g);
    return std::pair{sigmoid(o) * tanh(next), next};
  };
  const auto loss = grad([&](Tensor gates, Tensor bias, Tensor c) {
    const auto [h, next] = step(gates, bias, c);
    return sum(h * h) + sum(next);
  });
  for (const std::int64_t hidden : {129, 512})
    for (const std::int64_t batch : {64, 101}) {
      const Tensor gates = random_normal({batch, 4 * hidden}), bias = random_normal({4 * hidden}),
                   c = random_normal({batch, hidden});
      expect_same(step, gates, bias, c);
      expect_same(loss, gates, bias, c);
    }
}

// The operands' axes are not adjacent, so that parts begin in the middle of outer axes.
TEST_P(TileShardsTest, ShardsMayBeginInTheMiddleOfOuterAxes) {
  const Dim a("a", 7), b("b", 5), c("c", 11), d("d", 130);
  const auto f = [](Tensor x, Tensor y, Tensor z) { return exp(tanh(x * y) + z) * y - z; };
  for (const Dims& dims : {Dims{a, c}, Dims{b, d}, Dims{a, d}})
    expect_same(f, random_normal({a, b, c, d}), random_normal(dims), random_normal({b}));
}

TEST_P(TileShardsTest, SumsOverRows) {
  const auto normed = [](Tensor x) {
    const Tensor centred = x - mean(x, -1, Keep::yes);
    return centred / sqrt(mean(square(centred), -1, Keep::yes) + 1e-5);
  };
  for (const Dims& dims : {Dims{300, 257}, Dims{7, 31, 512}, Dims{3, 30000}}) {
    expect_same(normed, random_normal(dims));
    expect_same(grad([&](Tensor x) { return sum(square(normed(x * x) * 0.5 + x)); }),
                random_normal(dims, f64));
  }
}

// Results are written into the memory of arguments that were moved in.
TEST_P(TileShardsTest, ShardsWriteInPlace) {
  const auto step = [](Tensor p, Tensor m, Tensor g) {
    const Tensor next = m * 0.9 + g * g * 0.1;
    return std::pair{p - g / (sqrt(next) + 1e-3) * 0.01, next};
  };
  const auto run = [&](const Passes& passes) {
    manual_seed(3);
    const auto f = jit(step, {.executor = Executor::plan, .passes = passes});
    const Tensor g = random_normal({300, 301});
    Tensor p = random_normal({300, 301}), m = zeros({300, 301});
    for (int i = 0; i < 5; ++i) std::tie(p, m) = f(std::move(p), std::move(m), g);
    return p * 2. + m;
  };
  expect_same_bits(run({}), run({.fuse_pointwise = false}));
}

TEST_P(TileShardsTest, ShardsRunInIterationsOfALoop) {
  const Dim time("time", 5), batch("batch", 48), hidden("hidden", 300);
  const auto f = grad([&](Tensor x) {
    const auto body = [](const Tensor& x, const Tensor& h) {
      const Tensor y = tanh(h * sigmoid(x) + x) - h * x;
      return std::pair{y, y};
    };
    return sum(square(
        scan(Scan{.spatial_dim = time, .initial = zeros({batch, hidden}), .xs = x, .body = body})
            .ys));
  });
  expect_same(f, random_normal({time, batch, hidden}));
}

INSTANTIATE_TEST_SUITE_P(OnThreads, TileShardsTest, ::testing::Values(1, 2, 3));

TEST(WorkShardsTest, AreAsManyAsWorkIsWorth) {
  EXPECT_EQ(shards_for(0, 100), 1);
  EXPECT_EQ(shards_for((1 << 17) - 1, 100), 1);
  EXPECT_EQ(shards_for(1 << 17, 100), 2);
  EXPECT_EQ(shards_for(1 << 30, 100), 4);
  EXPECT_EQ(shards_for(1 << 30, 3), 3);
  EXPECT_EQ(shards_for(1 << 30, 0), 1);
}

// The time that a second thread saves depends on other load; its taking a share does not.
TEST(WorkShardsTest, OtherThreadsHelp) {
  if (threads() < 2) GTEST_SKIP() << "one processor";
  const Threads two(2);
  const auto f = jit([](Tensor x) { return tanh(x * x + 1.) - x; });
  const auto softmax_of = [](const Tensor& x) { return log_softmax(x, -1); };
  const Tensor x = random_normal({1000, 1000});
  const auto time_of = [](clockid_t clock) {
    timespec now{};
    clock_gettime(clock, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
  };
  const auto share_of_others = [&](const auto& run) {
    run();
    double most = 0;
    // On a busy machine the other thread may come too late many times. Runs repeat until it takes
    // its share, or until CTest ends the test.
    while (most < 0.25) {
      const double all = time_of(CLOCK_PROCESS_CPUTIME_ID), own = time_of(CLOCK_THREAD_CPUTIME_ID);
      run();
      const double here = time_of(CLOCK_THREAD_CPUTIME_ID) - own;
      most = std::max(most, 1 - here / (time_of(CLOCK_PROCESS_CPUTIME_ID) - all));
    }
    return most;
  };
  EXPECT_GE(share_of_others([&] { f(x); }), 0.25);
  EXPECT_GE(share_of_others([&] { softmax_of(x); }), 0.25);
}

// Row blocks, one behind the other.
TEST(WorkShardsTest, SoftmaxesHaveTheirBitsOnAnyNumberOfThreads) {
  manual_seed(5);
  for (const DType dtype : {f32, f64})
    for (const int axis : {0, 1, 2}) {
      const Tensor x = random_normal({30, 40, 50}, dtype);
      const auto all = [&](int count) {
        const Threads threads(count);
        return std::vector{softmax(x, axis), log_softmax(x, axis), logsumexp(x, axis)};
      };
      const auto one = all(1), three = all(3);
      for (std::size_t i = 0; i < one.size(); ++i) expect_same_bits(one[i], three[i]);
    }
}

}  // namespace
}  // namespace reel
