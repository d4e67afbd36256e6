// Values that are computed again for later readers: graphs after the pass, and the same bits.
#include "reel/trace/passes/fusion/recompute_broadcasts.h"

#include <gtest/gtest.h>

#include <array>

#include "reel/reel.h"
#include "reel/tests/trace/plan/planned.h"

namespace reel {
namespace {

template <class F, class... Args>
std::string recomputed_ops(const F& f, const Args&... args) {
  return ops_behind(recompute_broadcasts, f, args...);
}

template <class F, class... Args>
void expect_same(const F& f, const Args&... args) {
  expect_same_without({.fuse_pointwise = false}, true, f, args...);
}

class RecomputeBroadcastsTest : public ::testing::Test {
 protected:
  void SetUp() override { manual_seed(7); }

  Dim batch_{"batch", 64}, channel_{"channel", 256}, state_{"state", 16};
  Dims full() const { return {batch_, channel_, state_}; }
};

TEST_F(RecomputeBroadcastsTest, OpsOnSmallOperandsAreCopiedBehindAProduct) {
  const auto f = [&](const Tensor& x, const Tensor& y) {
    const Tensor a = exp(expand(x, full()) * y);
    const Tensor total = sum(tanh(a));
    return a * total;
  };
  const Tensor x = random_normal({batch_, channel_}), y = random_normal({channel_, state_});
  EXPECT_EQ(recomputed_ops(f, x, y), "expand mul exp tanh sum expand mul exp mul");
  expect_same(f, x, y);
  expect_same(grad([&](const std::array<Tensor, 2>& at) { return sum(square(f(at[0], at[1]))); }),
              std::array{x, y});
}

TEST_F(RecomputeBroadcastsTest, SmallValuesAndOutputsStay) {
  const auto f = [&](const Tensor& x, const Tensor& y) {
    const Tensor a = exp(expand(x, full()) * y);
    const Tensor total = sum(tanh(a));
    return std::pair{a * total, a};
  };
  const Tensor x = random_normal({batch_, channel_}), y = random_normal({channel_, state_});
  EXPECT_EQ(recomputed_ops(f, x, y), "expand mul exp tanh sum mul");
  channel_ = Dim("channel", 4);
  const auto only_first = [&](const Tensor& x, const Tensor& y) { return f(x, y).first; };
  EXPECT_EQ(recomputed_ops(only_first, random_normal({batch_, channel_}),
                           random_normal({channel_, state_})),
            "expand mul exp tanh sum mul");
}

// 1 - z is computed from z, which the product behind reads anyway; sigmoid is no simple op.
TEST_F(RecomputeBroadcastsTest, SimpleOpsOnRetainedOperandsAreRecomputed) {
  const auto f = [&](const Tensor& x) {
    const Tensor z = sigmoid(x);
    const Tensor rest = 1. - z;
    const Tensor total = sum(tanh(rest));
    const Tensor scaled = rest * total;
    return scaled * z;
  };
  EXPECT_EQ(recomputed_ops(f, zeros(full())), "sigmoid full sub tanh sum sub mul mul");
  expect_same(f, random_normal(full()));
}

// The gradient of a recurrence walks from the other end, and is no part of the same fused op.
TEST_F(RecomputeBroadcastsTest, RecurrencesOfOtherDirectionsAreOtherReaders) {
  const auto f = [&](const std::array<Tensor, 2>& at) {
    const Tensor z = sigmoid(at[0]);
    return sum(linear_scan(1. - z, z, 0, {.input = at[1]}));
  };
  const std::array<Tensor, 2> args{random_normal({512, 8, 80}), random_normal({512, 8, 80})};
  const std::string ops = recomputed_ops(grad(f), args);
  EXPECT_NE(ops.find("sub linear_scan"), std::string::npos) << ops;
  EXPECT_NE(ops.find("sub linear_scan_grad"), std::string::npos) << ops;
  expect_same(grad(f), args);
}

TEST_F(RecomputeBroadcastsTest, BodiesOfLoops) {
  const auto f = [&](const Tensor& x, const Tensor& y) {
    return fori_loop(
        0, 3,
        [&](const Tensor&, const Tensor& x) {
          const Tensor a = exp(expand(x, full()) * y);
          return sum(a * sum(tanh(a)), state_) * 1e-6;
        },
        x);
  };
  const Tensor x = random_normal({batch_, channel_}), y = random_normal({channel_, state_});
  EXPECT_NE(recomputed_ops(f, x, y).find("sum expand mul exp mul"), std::string::npos)
      << recomputed_ops(f, x, y);
  expect_same(f, x, y);
}

}  // namespace
}  // namespace reel
