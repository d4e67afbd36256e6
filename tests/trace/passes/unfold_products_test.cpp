// Products of few terms as element-wise ops: graphs after the pass, and values beside products.
#include "reel/trace/passes/fusion/unfold_products.h"

#include <gtest/gtest.h>

#include <array>

#include "reel/reel.h"
#include "reel/tests/gradients.h"
#include "reel/tests/trace/plan/planned.h"

namespace reel {
namespace {

template <class F, class... Args>
std::string unfolded_ops(const F& f, const Args&... args) {
  return ops_behind(unfold_products, f, args...);
}

/// y = sum of tanh(h) c over the last dim: a product with one vector per batch.
struct Readout {
  Dim batch{"batch", 64}, channel{"channel", 64}, state{"state", 16};
  Tensor operator()(const std::array<Tensor, 2>& at) const {
    return matmul(tanh(at[0]), at[1], state);
  }
  std::array<Tensor, 2> arguments(DType dtype = f32) const {
    return {random_normal({batch, channel, state}, dtype), random_normal({batch, state}, dtype)};
  }
};

TEST(UnfoldProductsTest, SumsOfFewTermsOfALargeElementWiseValue) {
  Readout f;
  EXPECT_EQ(unfolded_ops(f, f.arguments()), "tanh expand mul sum");
  f.state = Dim("state", 100);
  EXPECT_EQ(unfolded_ops(f, f.arguments()), "tanh dot");
  f.state = Dim("state", 8);  // the value stays in the cache
  EXPECT_EQ(unfolded_ops(f, f.arguments()), "tanh dot");
  const auto of_argument = [&](const std::array<Tensor, 2>& at) {
    return matmul(at[0], at[1], f.state);
  };
  f.state = Dim("state", 16);
  EXPECT_EQ(unfolded_ops(of_argument, f.arguments()), "dot");
}

TEST(UnfoldProductsTest, TheSecondOperandMayBeTheLargeOne) {
  const Readout f;
  const auto other = [&](const std::array<Tensor, 2>& at) {
    return matmul(at[1], tanh(at[0]), f.state);
  };
  EXPECT_EQ(unfolded_ops(other, f.arguments()), "tanh expand mul sum");
  expect_same_without({.fuse_pointwise = false}, false, other, f.arguments());
}

TEST(UnfoldProductsTest, ProductsWithoutASumThatElementWiseOpsRead) {
  const Readout f;
  const auto gradient = grad([&](const std::array<Tensor, 2>& at) { return sum(square(f(at))); });
  const std::string ops = unfolded_ops(gradient, f.arguments());
  EXPECT_NE(ops.find("expand expand mul dot tanh_grad"), std::string::npos) << ops;
  manual_seed(3);
  for (const DType dtype : {f32, f64})
    expect_same_without({.fuse_pointwise = false}, false, gradient, f.arguments(dtype));
}

TEST(UnfoldProductsTest, MatricesAndRaggedSumsStayProducts) {
  const Readout f;
  const Dim other("other", 3);
  const auto matrix = [&](const Tensor& h, const Tensor& w) { return matmul(tanh(h), w, f.state); };
  EXPECT_EQ(unfolded_ops(matrix, zeros({f.batch, f.channel, f.state}), zeros({f.state, other})),
            "tanh dot");
  const Dim batch("batch", 2), wide("wide", 4096);
  const Dim time("time", tensor({16, 5}, {batch}));
  const auto ragged = [&](const Tensor& h, const Tensor& c) { return matmul(tanh(h), c, time); };
  manual_seed(3);
  const Tensor h = random_normal({batch, wide, time}), c = random_normal({batch, time});
  EXPECT_EQ(unfolded_ops(ragged, h, c).find("sum"), std::string::npos);
  expect_same_without({.fuse_pointwise = false}, false, ragged, h, c);
}

TEST(UnfoldProductsTest, GradientsAgreeWithDifferences) {
  manual_seed(3);
  Readout f;
  f.batch = Dim("batch", 2);
  f.channel = Dim("channel", 2048);
  const Tensor h = random_normal({f.batch, f.channel, f.state}, f64);
  const auto loss = [&](const Tensor& c) { return sum(sin(f({h, c}))); };
  const Tensor c = random_normal({f.batch, f.state}, f64);
  expect_gradient_of(loss, c, jit(grad(loss))(c), 1e-5);
}

}  // namespace
}  // namespace reel
