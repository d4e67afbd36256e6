// Masks of values that are masked already: graphs after the pass, and results with and without it.
#include "reel/trace/passes/cleanup/drop_masks.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "reel/core/graph/passes/merge_equal.h"
#include "reel/tests/trace/plan/planned.h"

namespace reel {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

/// Returns the number of masks in f's graph, and in the graph behind the pass.
template <class F, class... Args>
std::pair<int, int> masks(const F& f, const Args&... args) {
  const auto count = [](const std::string& ops) {
    int result = 0;
    for (std::size_t at = 0; (at = ops.find("where", at)) != ops.npos; ++at) ++result;
    return result;
  };
  const auto merged = [](const Graph& graph) { return merge_equal(graph); };
  const auto dropped = [&](const Graph& graph) { return drop_masks(*merged(graph)); };
  return {count(ops_behind(merged, f, args...)), count(ops_behind(dropped, f, args...))};
}
using Counts = std::pair<int, int>;
using T = const Tensor&;

class DropMasksTest : public ::testing::Test {
 protected:
  void SetUp() override { manual_seed(3); }

  const Dim row{"row", 3}, unit{"unit", 4};
  const Tensor x = random_normal({row, unit}), y = random_normal({row, unit}),
               m = tensor({true, false, true}, {row}), other = tensor({true, true, false}, {row});
};

TEST_F(DropMasksTest, SumsAndProductsOfMaskedValues) {
  const auto of = [&](const std::function<Tensor(T, T, T)>& f) {
    return masks(
        [f](const Tensor& x, const Tensor& y, const Tensor& m, const Tensor& other) {
          return where(m, f(where(m, x, 0), where(m, y, 0), other), 0);
        },
        x, y, m, other);
  };
  const Counts dropped{3, 2}, kept{3, 3};
  EXPECT_EQ(of([](T a, T b, T) { return a + b; }), dropped);
  EXPECT_EQ(of([](T a, T b, T) { return a - b; }), dropped);
  EXPECT_EQ(of([](T a, T b, T) { return a * b; }), dropped);
  EXPECT_EQ(of([](T a, T b, T) { return a * 2 + b / 3; }), dropped);
  EXPECT_EQ(of([](T a, T b, T) { return a / b; }), kept);           // NaN
  EXPECT_EQ(of([](T a, T b, T) { return a + b + 1; }), kept);       // 1
  EXPECT_EQ(of([](T a, T b, T) { return a * -2. + b; }), kept);     // -0 + 0
  EXPECT_EQ(of([](T a, T b, T) { return a * kInf + b; }), kept);    // NaN
  EXPECT_EQ(of([](T a, T b, T) { return exp(a) + b; }), kept);      // 1
  EXPECT_EQ(of([&](T a, T, T) { return a * y; }), (Counts{2, 2}));  // y may be infinite
  EXPECT_EQ(of([&](T a, T b, T other) { return where(other, a, b); }), (Counts{4, 3}));
  EXPECT_EQ(of([&](T a, T, T other) { return where(other, a, 0); }), (Counts{3, 2}));
  EXPECT_EQ(of([&](T a, T, T other) { return where(other, a, y); }), (Counts{3, 3}));
}

// The kernels tell: no op of these is named in the pass.
TEST_F(DropMasksTest, ElementwiseOpsKeepZerosUnderTheMask) {
  const auto of = [&](const std::function<Tensor(T, T)>& f) {
    return masks([f](const Tensor& x, const Tensor& y,
                     const Tensor& m) { return where(m, f(where(m, x, 0), where(m, y, 0)), 0); },
                 x, y, m);
  };
  const Counts dropped{3, 2}, kept{3, 3};
  EXPECT_EQ(of([](T a, T b) { return tanh(a) + sqrt(abs(b)); }), dropped);
  EXPECT_EQ(of([](T a, T b) { return maximum(a, b); }), dropped);
  EXPECT_EQ(of([](T a, T b) { return cast(cast(a, f64), f32) + relu(b); }), dropped);
  EXPECT_EQ(of([](T a, T b) { return cos(a) + b; }), kept);       // 1
  EXPECT_EQ(of([](T a, T b) { return neg(a) + neg(b); }), kept);  // -0
  EXPECT_EQ(of([](T a, T b) { return sigmoid(a) * b; }), kept);   // the half is not followed
  const auto exponentials = [](T x, T m) { return where(m, exp(where(m, x, -kInf)), 0); };
  EXPECT_EQ(masks(exponentials, x, m), (Counts{2, 1}));
  expect_same_bits(jit(exponentials)(x, m), exponentials(x, m));
}

TEST_F(DropMasksTest, LogSoftmaxKeepsItsMask) {
  EXPECT_EQ(
      masks([&](T x, T m) { return where(m, log_softmax(where(m, x, -kInf), row), 0); }, x, m),
      (Counts{2, 2}));
}

TEST_F(DropMasksTest, OnlyOfTheSameMaskAndNumber) {
  const auto of = [&](const std::function<Tensor(T, T, T)>& f) { return masks(f, x, m, other); };
  EXPECT_EQ(of([](T x, T m, T) { return where(m, where(m, x, 0), 0); }), (Counts{2, 1}));
  EXPECT_EQ(of([](T x, T m, T) { return where(m, where(m, x, -kInf), -kInf); }), (Counts{2, 1}));
  EXPECT_EQ(of([](T x, T m, T) { return where(m, where(m, x, 0), -kInf); }), (Counts{2, 2}));
  EXPECT_EQ(of([](T x, T m, T o) { return where(o, where(m, x, 0), 0); }), (Counts{2, 2}));
  // -0 is another number.
  EXPECT_EQ(of([](T x, T m, T) { return where(m, where(m, x, -0.), 0); }), (Counts{2, 2}));
  // The mask adds an axis.
  EXPECT_EQ(masks([](T x, T m) { return where(m, sum(where(m, x, 0)), 0); }, x, m), (Counts{2, 2}));
}

TEST_F(DropMasksTest, SoftmaxOfMaskedScores) {
  const auto f = [&](const Tensor& x, const Tensor& m) {
    return where(m, softmax(where(m, x, -kInf), row), 0);
  };
  EXPECT_EQ(masks(f, x, m), (Counts{2, 1}));
  expect_same_bits(jit(f)(x, m), f(x, m));
  const Tensor none = tensor({false, false, false}, {row});
  expect_same_bits(jit(f)(x, none), f(x, none));
}

// Attention to ragged keys, with gradients of two orders.
TEST_F(DropMasksTest, AttentionHasTheSameBitsWithFewerMasks) {
  const Dim batch("batch", 3), time("time", tensor({3, 0, 2}, {batch})),
      keys("keys", tensor({2, 4, 1}, {batch}));
  const Tensor q = mask_padding(random_normal({batch, time, unit}, f64), NAN),
               k = mask_padding(random_normal({batch, keys, unit}, f64), NAN);
  const auto loss = [&](const std::pair<Tensor, Tensor>& p) {
    const Dim of = p.second.dim("keys");
    const Tensor weights = softmax(matmul(p.first, p.second, unit) / 2., of);
    return sum(square(matmul(weights, p.second, of)));
  };
  const auto slope = [&](const std::pair<Tensor, Tensor>& p) {
    const auto [dq, dk] = grad(loss)(p);
    return sum(square(dq)) + sum(square(dk));
  };
  const auto all = [&](const std::pair<Tensor, Tensor>& p) {
    const auto clean = [](const std::pair<Tensor, Tensor>& g) {
      return std::pair{mask_padding(g.first), mask_padding(g.second)};
    };
    return std::tuple{loss(p), clean(grad(loss)(p)), clean(grad(slope)(p))};
  };
  const std::pair p{q, k};
  const auto [before, after] = masks(grad(loss), p);
  EXPECT_LT(after, before);
  expect_same_without({.simplify = false}, true, all, p);
}

// Bodies of loops and branches are graphs of their own.
TEST_F(DropMasksTest, MasksInBodiesAreDropped) {
  const auto f = [&](const Tensor& x, const Tensor& m) {
    return fori_loop(
        0, 2, [&](const Tensor&, const Tensor& h) { return where(m, where(m, h + x, 0), 0); }, x);
  };
  EXPECT_EQ(masks(f, x, m), (Counts{2, 1}));
  expect_same_bits(jit(f)(x, m), f(x, m));
}

}  // namespace
}  // namespace reel
