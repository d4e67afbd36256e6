// Ops on captures: they run once for all calls without a tape.
#include "reel/trace/passes/cleanup/fold_captures.h"

#include <gtest/gtest.h>

#include <cmath>
#include <sstream>

#include "reel/tests/trace/plan/planned.h"

namespace reel {
namespace {

class FoldCapturesTest : public ::testing::TestWithParam<Executor> {
 protected:
  FoldCapturesTest() { manual_seed(3); }
  template <class F>
  auto traced(const F& f) const {
    return jit(f, {.name = "f", .executor = GetParam()});
  }
  const Tensor w = random_normal({3, 4}), x = random_normal({2, 4});
};

TEST_P(FoldCapturesTest, OpsOnCapturesRunOnceForAllCalls) {
  const auto apply = [&](const Tensor& x) { return matmul(x, transpose(w, {1, 0}) * 2) + 1; };
  const auto f = traced(apply);
  for (const Tensor& given : {x, x + 1.F}) expect_same_bits(f(given), apply(given));
  EXPECT_EQ(ops(f.graph()), "dot full add");
  ASSERT_EQ(f.captures().size(), 1U);  // w itself is not read any more
  expect_same_bits(f.captures()[0], transpose(w, {1, 0}) * 2);
}

/// Five results of 5 MiB each; at most 16 MiB fold.
TEST_P(FoldCapturesTest, ResultsTakeAsManyBytesAsTheCapturesAtMost) {
  const Tensor wide = random_normal({1280, 1024});
  const auto apply = [&](const Tensor& x) {
    Tensor y = x;
    for (const Tensor& each : {exp(wide), sin(wide), cos(wide), abs(wide), square(wide)})
      y = y + sum(each * x, {0});
    return y;
  };
  const auto f = traced(apply);
  const Tensor given = random_normal({1024});
  expect_same_bits(f(given), apply(given));
  EXPECT_EQ(f.captures().size(), 4U);  // three results, and `wide` for the other two
  const Tensor larger = random_normal({5 * 1280, 1024});  // 25 MiB, so that all fold
  const auto g = traced([&](const Tensor& x) { return apply(x) + sum(larger * x, {0}); });
  g(given);
  EXPECT_EQ(g.captures().size(), 6U);
}

/// 20 MiB may fold, and the product and its exponential take as much each.
TEST_P(FoldCapturesTest, ResultsThatOnlyFoldedOpsReadDoNotCount) {
  const Tensor wide = random_normal({1280, 4096});
  const auto apply = [&](const Tensor& x) {
    const Tensor twice = wide * 2;
    return sum((exp(twice) - twice) * x, {0});
  };
  const auto f = traced(apply);
  const Tensor given = random_normal({4096});
  expect_same_bits(f(given), apply(given));
  ASSERT_EQ(f.captures().size(), 1U);
  expect_same_bits(f.captures()[0], wide * 2);  // a reader does not fold, so the product counts
  const auto g = traced([&](const Tensor& x) { return sum(exp(wide * 2) * x, {0}); });
  g(given);
  ASSERT_EQ(g.captures().size(), 1U);
  expect_same_bits(g.captures()[0], exp(wide * 2));
}

TEST_P(FoldCapturesTest, GradientsReachWatchedCaptures) {
  const auto apply = [&](const Tensor& x) { return matmul(x, transpose(w, {1, 0})); };
  const auto f = traced(apply);
  const auto gradient = [&](const auto& function) {
    Tape tape;
    tape.watch(w);
    return tape.gradient(sum(square(function(x))), w);
  };
  const Tensor expected = gradient(apply);
  EXPECT_GT(max(abs(expected)).item<float>(), 0.1F);
  expect_all_close(gradient(f), expected, 1e-5);  // the first call is under a tape
  f(x);
  EXPECT_EQ(ops(f.graph()), "dot");
  expect_all_close(gradient(f), expected, 1e-5);
  EXPECT_EQ(ops(f.graph()), "transpose dot");
  EXPECT_EQ(f.captures()[0].block(), w.block());
  f(x);
  EXPECT_EQ(ops(f.graph()), "dot");
}

TEST_P(FoldCapturesTest, ResultsEffectsAndGrowingValuesStay) {
  const auto results = traced([&](const Tensor& x) { return std::pair{x + 1, exp(w)}; });
  results(x);
  EXPECT_EQ(ops(results.graph()), "full add exp");
  const auto growing = traced([&](const Tensor& x) { return x + broadcast_to(w, {5, 3, 4}); });
  growing(ones({5, 3, 4}));
  EXPECT_EQ(growing.captures()[0].block(), w.block());
  int calls = 0;
  const auto products = traced([&](const Tensor& x) {
    ++calls;
    return x + matmul(w, transpose(w, {1, 0}));
  });
  products(ones({3, 3}));
  products(ones({3, 3}));
  EXPECT_EQ(ops(products.graph()),
            "dot add");  // not computed in advance, as it costs more than a pass
  EXPECT_EQ(calls, 1);
}

TEST_P(FoldCapturesTest, LoopsOverCapturesStay) {
  const Dim time("time", 3), unit("unit", 4);
  const Tensor xs = random_normal({time, unit});
  const auto apply = [&](const Tensor& x) {
    const auto body = [](const Tensor& x, const Tensor& state) {
      return std::pair{state, state * 0.5 + x};
    };
    return x +
           scan(Scan{.spatial_dim = time, .initial = zeros({unit}), .xs = xs, .body = body}).state;
  };
  const auto f = traced(apply);
  expect_same_bits(f(ones({unit})), apply(ones({unit})));
  EXPECT_NE(ops(f.graph()).find("loop"), std::string::npos);
}

TEST_P(FoldCapturesTest, FunctionsWithoutTensorArgumentsStay) {
  const auto f = traced([&](int n) { return sum(transpose(w, {1, 0}) * n); });
  f(3);
  EXPECT_EQ(f.captures()[0].block(), w.block());
}

TEST_P(FoldCapturesTest, NaNIsFoundInTheOpThatMakesIt) {
  const auto f = traced([&](const Tensor& x) { return x + sum(log(w), 0); });
  EXPECT_TRUE(any(isnan(f(x))).item<bool>());
  const DetectNan guard;
  const std::string message = message_of<NumericsError>([&] { return f(x); });
  EXPECT_EQ(message.find("log: "), 0U) << message;
}

TEST_P(FoldCapturesTest, NamedAndRaggedCapturesHaveTheValuesOfEagerMode) {
  const Dim batch("batch", 2), time("time", tensor({3, 1}, {batch})), unit("unit", 4);
  const Tensor ragged = random_normal({batch, time, unit}), named = random_normal({unit});
  const auto apply = [&](const Tensor& x) {
    return std::pair{x * exp(named), sum(x * square(ragged), time)};
  };
  const auto f = traced(apply);
  const Tensor given = random_normal({batch, time, unit});
  for (int i = 0; i < 2; ++i) {
    const auto made = f(given), expected = apply(given);
    expect_same_bits(made.first, expected.first);
    expect_all_close(made.second, expected.second, 1e-6);
  }
}

TEST_P(FoldCapturesTest, DetectNanRunsTheRecordedOps) {
  const auto f = traced([&](const Tensor& x) { return matmul(x, transpose(w, {1, 0})); });
  {
    const DetectNan guard;
    f(x);
    EXPECT_EQ(f.captures()[0].block(), w.block());
  }
  f(x);
  EXPECT_NE(f.captures()[0].block(), w.block());
}

// The gradient of the captured tensor needs tanh(w), which a call without a tape computes once.
TEST(FoldedCapturesTest, ResidualsAreThoseOfTheRecordedGraph) {
  const Tensor w = random_normal({4, 3}), x = random_normal({3, 4});
  const KeptValues kept = saved_values([&](const Tensor& x) {
    return sum(x * tanh(transpose(w, {1, 0})));
  })(x);
  EXPECT_EQ(kept.bytes(), 12 * 4) << kept;
}

INSTANTIATE_TEST_SUITE_P(Executors, FoldCapturesTest,
                         ::testing::Values(Executor::interpreter, Executor::plan,
                                           Executor::dataflow));

}  // namespace
}  // namespace reel
