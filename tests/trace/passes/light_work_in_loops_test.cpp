// Light work on large values stays in loops, where its operands are in the cache.
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <utility>

#include "reel/core/base/str.h"
#include "reel/tests/trace/passes/batched_graphs.h"

namespace reel {
namespace {

/// A selective scan (Gu and Dao, 2023): an iteration makes large values of small slices.
struct SelectiveLoop {
  Dim batch{"batch", 2}, time{"time", 12}, channel{"channel", 256}, state{"state", 16};

  Tensor operator()(const std::array<Tensor, 3>& at) const {
    const Dims dims{batch, channel, state};
    const auto body = [&](const std::pair<Tensor, Tensor>& now, const Tensor& h) {
      const auto& [step, in] = now;
      const Tensor next = exp(expand(step, dims) * at[2]) * h + expand(step, dims) * in;
      return std::pair{matmul(next, in, state), next};
    };
    return mean(square(scan(Scan{.spatial_dim = time,
                                 .initial = zeros(dims, f64),
                                 .xs = std::pair{at[0], at[1]},
                                 .body = body})
                           .ys));
  }
  std::array<Tensor, 3> arguments() const {
    manual_seed(4);
    return {random_normal({time, batch, channel}, f64), random_normal({time, batch, state}, f64),
            -abs(random_normal({channel, state}, f64))};
  }
};

TEST(LightWorkInLoopsTest, LargeValuesOfSmallSlicesAreMadeInside) {
  SelectiveLoop f;
  EXPECT_EQ(count(*graphs(f, f.arguments()).second, "exp"), (Count{0, 1}));
  expect_same_results(f, f.arguments());
  f.channel = Dim("channel", 4);  // calls of small ops would take longer than their elements
  EXPECT_EQ(count(*graphs(f, f.arguments()).second, "exp"), (Count{1, 0}));
  expect_same_results(f, f.arguments());
}

TEST(LightWorkInLoopsTest, ProductsThatUseEachLargeElementOnceStayInside) {
  SelectiveLoop f;
  const auto gradient = jit(value_and_grad(f));
  gradient(f.arguments());
  const std::string text = gradient.explain();
  for (const char* product : {"dot(f64[batch=2,channel=256], f64[batch=2,state=16])",
                              "dot(f64[batch=2,channel=256,state=16], f64[batch=2,state=16])"})
    EXPECT_NE(text.find(str("not moved: ", product)), std::string::npos) << product << text;
  EXPECT_NE(text.find("faster inside, where its operands are in the cache"), std::string::npos);
  expect_same_results(value_and_grad(f), f.arguments());
}

// If results of a product without a sum are added up over iterations, it is one product for all.
TEST(LightWorkInLoopsTest, TermsOfSumsLeaveTheLoopHoweverLightTheyAre) {
  const Dim time("time", 6), in("in", 128), out("out", 64);
  const auto loss = [&](const Tensor& w, const Tensor& xs) {
    const auto body = [&](const Tensor& x, const Tensor& h) {
      const Tensor next = tanh(matmul(x, w, in) + h);
      return std::pair{next, next};
    };
    return sum(
        scan(Scan{.spatial_dim = time, .initial = zeros({out}, f64), .xs = xs, .body = body}).ys);
  };
  const auto gradient = jit(grad(loss));
  const Tensor w = random_normal({in, out}, f64) * 0.1, xs = random_normal({time, in}, f64);
  gradient(w, xs);
  const std::string text = gradient.explain();
  EXPECT_NE(text.find("sunk: dot(f64[time=6,in=128], f64[time=6,out=64])"), std::string::npos)
      << text;
}

}  // namespace
}  // namespace reel
