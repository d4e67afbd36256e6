// Policies on every loop of a nest, beyond the first gradient: jvp, hvp and gradients that a body
// takes, of loops inside that end by a condition, and of states that grow.
#include <gtest/gtest.h>

#include <functional>

#include "reel/tests/frontend/policies.h"
#include "reel/trace/executors/spilled.h"

namespace reel {
namespace {

using Function = std::function<Tensor(const Tensor&)>;

class PoliciesInPoliciesTest : public UnderPolicies {
 protected:
  static std::vector<std::pair<const char*, LoopPolicy>> loop_policies() {
    const auto recomputes = [](const StepValue&) { return Saving::recompute; };
    const auto keeps_products = [](const StepValue& v) {
      return v.op == "dot" ? Saving::keep : Saving::recompute;
    };
    const auto spills = [](const StepValue&) { return Saving::spill; };
    return {{"all", {}},
            {"every 1", {Checkpoint::every(1)}},
            {"every 64", {Checkpoint::every(64)}},
            {"budget 1", {Checkpoint::budget(1)}},
            {"budget 1 MiB", {Checkpoint::budget(1 << 20)}},
            {"recompute", {Checkpoint().where(recomputes)}},
            {"keep products", {Checkpoint().where(keeps_products)}},
            {"spill", {Checkpoint().where(spills)}},
            {"in a file", {{}, true}},
            {"every 2, recompute, in a file", {Checkpoint::every(2).where(recomputes), true}}};
  }
  /// Derivatives of f at x: the gradient, in the direction v, the Hessian times v, and both ways to
  /// derive a jvp once more.
  std::vector<Tensor> derivatives(const Function& f, const Tensor& x, const Tensor& v) const {
    const auto along = [f](const Tensor& x, const Tensor& v) { return jvp(f, x, v).second; };
    const auto twice = [=](const Tensor& x, const Tensor& v) {
      return jvp([&](const Tensor& x) { return along(x, v); }, x, v).second;
    };
    const auto of_tangent = [=](const Tensor& x, const Tensor& v) {
      return grad([&](const Tensor& x) { return along(x, v); })(x);
    };
    return {run(grad(f))(x), run(along)(x, v),
            run([f](const Tensor& x, const Tensor& v) { return hvp(f, x, v); })(x, v),
            run(twice)(x, v), run(of_tangent)(x, v)};
  }
  /// f under the policies of both loops has the derivatives of f without any.
  void expect_same_derivatives(
      const std::function<Function(const LoopPolicy& outer, const LoopPolicy& inner)>& make,
      const Tensor& x, const Tensor& v, bool has_inner) const {
    const std::vector<Tensor> expected = derivatives(make({}, {}), x, v);
    SmallSpillBlocks blocks;
    const auto all = loop_policies();
    for (std::size_t k = 1; k < all.size(); ++k) {
      const std::size_t inside = has_inner ? (3 * k + 1) % all.size() : 0;
      SCOPED_TRACE(str(all[k].first, ", inside ", all[inside].first));
      const std::vector<Tensor> actual = derivatives(make(all[k].second, all[inside].second), x, v);
      for (std::size_t i = 0; i < actual.size(); ++i) {
        SCOPED_TRACE(i);
        expect_all_close(actual[i], expected[i], 1e-10);
      }
    }
  }
};
REEL_IN_EVERY_MODE(PoliciesInPoliciesTest);

/// Twice the sum of x² + 4x² + 16x² + 64x²: x doubles while it is below 9. So 170 x² at 1.1.
Function doubling(const LoopPolicy& outer, const LoopPolicy& inner) {
  return [=](const Tensor& x) -> Tensor {
    const auto pass = [&](const Tensor& i, const Tensor& total) {
      const auto made = scan(Scan{.cond_dims = {x.dims()[0]},
                                  .initial = x,
                                  .cond = [](const Tensor& s) { return s < 9.; },
                                  .body =
                                      [](const Tensor& s) {
                                        return std::pair{square(s), s * 2.};
                                      },
                                  .checkpoint = inner.checkpoint,
                                  .swap_memory = inner.swap_memory});
      return std::tuple{i + 1, total + sum(made.ys)};
    };
    return std::get<1>(
        while_loop([](const Tensor& i, const Tensor&) { return i < 2; }, pass,
                   std::tuple{scalar(0), zeros({}, f64)},
                   {.checkpoint = outer.checkpoint, .swap_memory = outer.swap_memory}));
  };
}

TEST_P(PoliciesInPoliciesTest, ALoopInsideThatMakesADim) {
  const Tensor x = tensor({1.1}, {Dim("batch", 1)}, f64), v = tensor({2.}, x.dims(), f64);
  const auto all = loop_policies();
  for (const auto& [name, outer] : all)
    for (const auto& [name_inside, inner] : all) {
      if (outer.swap_memory.spill() || inner.swap_memory.spill()) continue;
      SCOPED_TRACE(str(name, ", inside ", name_inside));
      const Function f = doubling(outer, inner);
      expect_all_close(run(grad(f))(x), tensor({374.}, x.dims(), f64), 1e-12);
      const auto along = [&](const Tensor& x, const Tensor& v) { return jvp(f, x, v).second; };
      expect_all_close(run(along)(x, v), scalar(748., f64), 1e-12);
      const auto product = [&](const Tensor& x, const Tensor& v) { return hvp(f, x, v); };
      expect_all_close(run(product)(x, v), tensor({680.}, x.dims(), f64), 1e-12);
    }
}

// Entries that end one after the other, in a nest, with everything in small blocks of files.
TEST_P(PoliciesInPoliciesTest, ALoopInsideWhoseEntriesEndOneByOne) {
  const Tensor x = tensor({1.1, 4.0, 9.5}, {Dim("batch", 3)}, f64),
               v = tensor({2., -1., .5}, x.dims(), f64);
  expect_same_derivatives(doubling, x, v, true);
}

/// A loop over the gradient of a loop of unknown length.
Function descent(const LoopPolicy& outer, const LoopPolicy& inner) {
  return [=](const Tensor& x) -> Tensor {
    const auto goes_on = [](const Tensor& i, const Tensor&) { return i < 2; };
    const auto slope = grad([&](const Tensor& a) -> Tensor {
      return std::get<1>(
          while_loop(goes_on,
                     [](const Tensor& i, const Tensor& s) {
                       return std::tuple{i + 1, cos(s)};
                     },
                     std::tuple{scalar(0), a},
                     {.checkpoint = inner.checkpoint, .swap_memory = inner.swap_memory}));
    });
    return std::get<1>(
        while_loop(goes_on,
                   [&](const Tensor& i, const Tensor& s) {
                     return std::tuple{i + 1, slope(s)};
                   },
                   std::tuple{scalar(0), x},
                   {.checkpoint = outer.checkpoint, .swap_memory = outer.swap_memory}));
  };
}

TEST_P(PoliciesInPoliciesTest, AGradientThatABodyTakes) {
  const Tensor x = scalar(1., f64);
  expect_all_close(run(grad(descent({Checkpoint::budget(1)}, {Checkpoint::budget(1)})))(x),
                   scalar(-0.199925056567, f64), 1e-10);
  expect_same_derivatives(descent, x, scalar(0.7, f64), true);
}

/// (.09 + x0²) + (.09 + x0² + x1²), of a vector that grows.
Function sum_of_squares(const LoopPolicy& policy, const LoopPolicy&) {
  return [=](const Tensor& x) -> Tensor {
    const auto body = [&](const Tensor& i, const Tensor& h, const Tensor& t) {
      const Tensor next = concat({h, reshape(gather(x, i, 0), {1})}, 0);
      return std::tuple{i + 1, next, t + sum(next * next)};
    };
    return std::get<2>(
        while_loop([](const Tensor& i, const Tensor&, const Tensor&) { return i < 2; }, body,
                   std::tuple{scalar(0), tensor({.3}, {}, f64), scalar(0., f64)},
                   {.shape_invariants = {std::nullopt, PartialShape{unknown}, std::nullopt},
                    .checkpoint = policy.checkpoint,
                    .swap_memory = policy.swap_memory}));
  };
}

TEST_P(PoliciesInPoliciesTest, AStateThatGrows) {
  const Tensor x = tensor({.4, -.6}, {}, f64);
  expect_same_derivatives(sum_of_squares, x, x, false);
  expect_all_close(derivatives(sum_of_squares({}, {}), x, x)[2], tensor({1.6, -1.2}, {}, f64),
                   1e-12);
}

struct GrowingMatrix {
  Tensor i;
  SparseTensor m;
  Tensor v;
};
/// v <- (m + 1) v, with a matrix that gains the element sin(x_i) at (0, 1) in each step.
Function sparse_products(const LoopPolicy& policy, const LoopPolicy&) {
  return [=](const Tensor& x) -> Tensor {
    const SparseTensor start{tensor({0, 0}, {1, 2}), tensor({.3}, {}, f64), tensor({2, 2})};
    const auto body = [&](const GrowingMatrix& s) {
      const Tensor value = reshape(sin(gather(x, s.i, 0)), {1});
      const SparseTensor m{concat({s.m.indices, tensor({0, 1}, {1, 2})}, 0),
                           concat({s.m.values, value}, 0), s.m.dense_shape};
      return GrowingMatrix{s.i + 1, m, reshape(matmul(m, reshape(s.v, {2, 1})), {2}) + s.v};
    };
    return sum(
        square(while_loop([](const GrowingMatrix& s) { return s.i < 3; }, body,
                          GrowingMatrix{scalar(0), start, ones({2}, f64)},
                          {.checkpoint = policy.checkpoint, .swap_memory = policy.swap_memory})
                   .v));
  };
}

TEST_P(PoliciesInPoliciesTest, ASparseStateThatGainsElements) {
  const Tensor x = tensor({.4, -.6, 1.2}, {}, f64);
  expect_same_derivatives(sparse_products, x, tensor({.5, 1., -.2}, {}, f64), false);
  const double step = 1e-5;
  const auto slope = [&](double by) {
    return sum(grad(sparse_products({}, {}))(x + x * by) * x).item<double>();
  };
  const double curvature = (slope(step) - slope(-step)) / (2 * step);
  const Tensor product = derivatives(sparse_products({{}, true}, {}), x, x)[2];
  EXPECT_NEAR(sum(product * x).item<double>(), curvature, 1e-6 * std::abs(curvature));
}

}  // namespace
}  // namespace reel
