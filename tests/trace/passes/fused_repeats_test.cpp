// Ops that repeat elements in fused ops: the graphs after fusion, and the bits of single ops.
#include <gtest/gtest.h>

#include <array>

#include "reel/reel.h"
#include "reel/tests/trace/passes/fused_ops.h"

namespace reel {
namespace {

class FusedRepeatsTest : public ::testing::Test {
 protected:
  void SetUp() override { manual_seed(7); }
};

TEST_F(FusedRepeatsTest, FusesRepeatsAlongNewAxes) {
  const auto g = grad([](Tensor x) {
    const Tensor rows = sum(exp(x) * x, 1);
    return sum(rows * rows);
  });
  EXPECT_EQ(fused_ops(g, zeros({4, 30})),
            "full fused[exp mul sum spread mul add spread mul mul mul add]");
  expect_same(g, random_normal({4, 30}));
}

// An operand that lacks axes is read where it lies, instead of from a repeated copy.
TEST_F(FusedRepeatsTest, FusesExpands) {
  const Dim batch("batch", 3), time("time", 5), channel("channel", 20), state("state", 16);
  const Dims full{batch, time, channel, state};
  const auto f = [&](Tensor step, Tensor decay, Tensor x) {
    const Tensor a = exp(expand(step, full) * decay);
    return a + expand(step * 2., full) * x;
  };
  const std::array args{random_normal({batch, time, channel}), random_normal({channel, state}),
                        random_normal({batch, time, state})};
  EXPECT_EQ(fused_ops(f, args[0], args[1], args[2]),
            "full mul fused[expand mul exp expand mul add]");
  expect_same(f, args[0], args[1], args[2]);
  expect_same(grad([&](Tensor a, Tensor b, Tensor c) { return sum(square(f(a, b, c))); }), args[0],
              args[1], args[2]);
  const auto plain = [](Tensor x, Tensor y) {
    const Tensor repeated = tanh(broadcast_to(x, {4, 3, 6}));
    return repeated * broadcast_to(y, {4, 3, 6});
  };
  EXPECT_EQ(fused_ops(plain, zeros({3, 1}), zeros({4, 1, 6})), "fused[expand tanh expand mul]");
  for (const DType dtype : {f32, f64})
    expect_same(plain, random_normal({3, 1}, dtype), random_normal({4, 1, 6}, dtype));
  expect_same(
      [](Tensor x) {
        return where(broadcast_to(x > 0., {2, 0, 3}), 1., 0.);
      },
      random_normal({3}));
}

// An expand that moves axes, or that only adds axes of one element, is no element-wise work.
TEST_F(FusedRepeatsTest, LeavesOtherExpandsAlone) {
  const Dim a("a", 3), b("b", 4), c("c", 5);
  const auto moves = [&](Tensor x) { return exp(expand(x, {b, a, c})) * 2.; };
  EXPECT_EQ(fused_ops(moves, zeros({a, b})), "expand full fused[exp mul]");
  expect_same(moves, random_normal({a, b}));
  const auto adds_ones = [](Tensor x) { return exp(broadcast_to(x, {1, 3})) * 2.; };
  EXPECT_EQ(fused_ops(adds_ones, zeros({3})), "expand full fused[exp mul]");
  expect_same(adds_ones, random_normal({3}));
}

// A value that the same op makes and repeats along a last axis is one number per row.
TEST_F(FusedRepeatsTest, ExpandsOfSumsOverRows) {
  const Dim batch("batch", 6), hidden("hidden", 40);
  const auto f = [&](Tensor x) {
    return tanh(x) * expand(sum(tanh(x), hidden) * 0.1, {batch, hidden});
  };
  EXPECT_EQ(fused_ops(f, zeros({batch, hidden})), "full fused[tanh sum mul expand mul]");
  expect_same(f, random_normal({batch, hidden}));
  const auto along_rows = [&](Tensor x) {
    return tanh(expand(sum(tanh(x), hidden), {hidden, batch})) + 1.;
  };
  expect_same(along_rows, random_normal({batch, hidden}));
}

}  // namespace
}  // namespace reel
