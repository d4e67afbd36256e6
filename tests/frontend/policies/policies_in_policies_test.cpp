// Memory policies on every loop of a nest, beyond first gradients: jvp, hvp and gradients taken in
// a body, inner loops that are ragged or end by a condition, and states that grow.
#include <gtest/gtest.h>

#include <functional>

#include "reel/tests/frontend/policies/policies.h"
#include "reel/trace/executors/spill/spilled.h"

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
            {"every 2, recompute", {Checkpoint::every(2).where(recomputes)}},
            {"every 2, recompute, in a file", {Checkpoint::every(2).where(recomputes), true}}};
  }
  /// Returns derivatives of f at x: the gradient, the derivative along v, the Hessian times v, and
  /// both ways to differentiate a jvp again.
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
  /// Expects that f has the same derivatives with policies on both loops as without.
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

/// Twice the sum of x² + 4x² + 16x² + 64x², because x doubles while it is below 9: 170 x² at 1.1.
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

// Entries finish one after the other in a nest, with all residuals in small blocks of files.
TEST_P(PoliciesInPoliciesTest, EntriesOfALoopInsideMayFinishOneByOne) {
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

/// (.09 + x0²) + (.09 + x0² + x1²), with a vector that grows.
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
/// v <- (m + 1) v, with a matrix that gains the element sin(x_i) at (0, 1) in each iteration.
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

/// A step of all that is below: over the rows of a batch, which sum up beside each other.
Tensor mixed(const Tensor& x, const Tensor& s) {
  return sin(s * 0.9) * 0.6 + x * s * 0.3 + sum(tanh(s * x), x.dims()[0]) * 0.1;
}

/// A scan in two loops, along a dim with lengths that the body of the loops makes. Residuals of the
/// loops are lists, and each element has its own Dims.
Function ragged_in_loops(const LoopPolicy& outer, const LoopPolicy& inner) {
  return [=](const Tensor& x) -> Tensor {
    const Dim& batch = x.dims()[0];
    const auto along_time = [&](const Tensor&, const Tensor& s) {
      const Dim time("time", tensor({3, 1, 2}, {batch}));
      const Tensor all = expand(cast(range(time), f64) * 0.4 + 0.3, {time, batch}) * x;
      return scan(Scan{.spatial_dim = time,
                       .initial = s,
                       .xs = all,
                       .body =
                           [](const Tensor& x, const Tensor& s) {
                             return std::pair{None{}, mixed(x, s)};
                           },
                       .checkpoint = inner.checkpoint,
                       .swap_memory = inner.swap_memory})
          .state;
    };
    const auto twice = [&](const Tensor&, const Tensor& s) {
      return fori_loop(0, 2, along_time, s,
                       {.checkpoint = outer.checkpoint, .swap_memory = outer.swap_memory});
    };
    return sum(fori_loop(0, 2, twice, x * 0.5 + 0.4));
  };
}

TEST_P(PoliciesInPoliciesTest, ARaggedLoopInLoops) {
  const Tensor x = tensor({.5, .8, .3}, {Dim("batch", 3)}, f64),
               v = tensor({.7, -.4, 1.1}, x.dims(), f64);
  expect_same_derivatives(ragged_in_loops, x, v, true);
}

/// A ragged loop around a loop with another ragged dim in its state. Entries finish one by one.
Function ragged_state_in_ragged_loop(const LoopPolicy& outer, const LoopPolicy& inner) {
  return [=](const Tensor& x) -> Tensor {
    const Dim batch = x.dims()[0], time("time", tensor({2, 1, 0}, {batch})),
              other("other", tensor({1, 0, 3}, {batch}));
    const auto grown = [](const Tensor& total, const Dim& dim) {
      return expand(total, {dim}) * (cast(range(dim), f64) * 0.3 + 0.5);
    };
    const Tensor start = grown(sum(x), other);
    const auto body = [&](const Tensor& x_t, const Tensor& total) {
      const auto step = [&](const Tensor& i, const Tensor& s) {
        return std::tuple{i + 1, sin(s * x_t)};
      };
      const Tensor made = std::get<1>(while_loop(
          [](const Tensor& i, const Tensor&) { return i < 2; }, step, std::tuple{scalar(0), start},
          {.checkpoint = inner.checkpoint, .swap_memory = inner.swap_memory}));
      return std::pair{made, total + sum(made)};
    };
    const auto made = scan(Scan{.spatial_dim = time,
                                .initial = zeros({}, f64),
                                .xs = grown(sum(square(x)), time),
                                .body = body,
                                .checkpoint = outer.checkpoint,
                                .swap_memory = outer.swap_memory});
    return sum(square(made.ys)) + made.state;
  };
}

TEST_P(PoliciesInPoliciesTest, ALoopWhoseStateHasAnotherRaggedDim) {
  const Tensor x = tensor({.5, .8, .3}, {Dim("batch", 3)}, f64),
               v = tensor({.7, -.4, 1.1}, x.dims(), f64);
  expect_same_derivatives(ragged_state_in_ragged_loop, x, v, true);
}

struct Matrix {
  Tensor i;
  SparseTensor m;
  Tensor v;
};
/// That nest once more, where no state of the loop around has the dims of the batch.
Function ragged_in_sparse(const LoopPolicy& outer, const LoopPolicy& inner) {
  return [=](const Tensor& x) -> Tensor {
    const auto total = ragged_in_loops(outer, inner);
    const SparseTensor start{tensor({0, 0}, {1, 2}), tensor({.3}, {}, f64), tensor({2, 2})};
    const auto body = [&](const Matrix& s) {
      const SparseTensor m{concat({s.m.indices, tensor({0, 1}, {1, 2})}, 0),
                           concat({s.m.values, reshape(total(x * 0.5) * sum(s.v) * 0.2, {1})}, 0),
                           s.m.dense_shape};
      return Matrix{s.i + 1, m, reshape(matmul(m, reshape(s.v, {2, 1})), {2}) * 0.5 + s.v * 0.5};
    };
    return sum(while_loop([](const Matrix& s) { return s.i < 2; }, body,
                          Matrix{scalar(0), start, full({2}, 0.7, f64)})
                   .v);
  };
}

TEST_P(PoliciesInPoliciesTest, ARaggedLoopInALoopWhoseStateHasNoBatch) {
  const Tensor x = tensor({.5, .8, .3}, {Dim("batch", 3)}, f64),
               v = tensor({.7, -.4, 1.1}, x.dims(), f64);
  const auto tangent_of_gradient = [&](const Function& f) {
    return run([f](const Tensor& x, const Tensor& v) { return jvp(grad(f), x, v).second; })(x, v);
  };
  const Tensor expected = tangent_of_gradient(ragged_in_sparse({}, {}));
  for (const auto& [name, policy] : loop_policies()) {
    SCOPED_TRACE(name);
    expect_all_close(tangent_of_gradient(ragged_in_sparse(policy, {})), expected, 1e-10);
  }
}

struct History {
  Tensor i, frames;
  Dim hist;
  Tensor last;
};
/// A pullback of a loop with a growing state, called in a body. Its gradient has slices over
/// hist + 1 beside slices over hist.
Function pullback_of_a_history(const LoopPolicy& outer, const LoopPolicy& inner) {
  return [=](const Tensor& x) -> Tensor {
    const Dim& batch = x.dims()[0];
    const auto grown = [&](const Tensor& s) {
      const Dim start("hist", scalar(1));
      const auto body = [&](const History& h) {
        const Tensor next = mixed(x, h.last);
        const auto [frames, hist] = cum_concat(next * 0.5, tanh(h.frames), h.hist);
        return History{h.i + 1, frames, hist, next * 0.5 + sum(frames * frames, hist) * 0.1};
      };
      const History end =
          while_loop([](const History& h) { return h.i < 3; }, body,
                     History{scalar(0), full({batch, start}, 0.2, f64), start, s},
                     {.checkpoint = inner.checkpoint, .swap_memory = inner.swap_memory});
      return end.last + sum(end.frames, end.hist) * 0.1;
    };
    const auto grown_twice = [&](const Tensor& s) {
      return fori_loop(
          0, 2, [&](const Tensor&, const Tensor& s) { return grown(s); }, s);
    };
    const auto body = [&](const Tensor&, const Tensor& s) {
      const auto [y, back] = vjp(grown_twice, s);
      return y * 0.5 + back(y * y) * 0.4;
    };
    return sum(fori_loop(0, 2, body, x * 0.5 + 0.4,
                         {.checkpoint = outer.checkpoint, .swap_memory = outer.swap_memory}));
  };
}

TEST_P(PoliciesInPoliciesTest, APullbackInABodyOfALoopWhoseStateGrows) {
  const Tensor x = tensor({.5, .8, .3}, {Dim("batch", 3)}, f64),
               v = tensor({.7, -.4, 1.1}, x.dims(), f64);
  // With several iterations in flight, the dataflow executor refuses higher derivatives under
  // policies of both loops: two replays make one computed dim twice (docs/semantics.md).
  const bool has_inner = parallel_iterations_of(GetParam()) <= 1;
  expect_same_derivatives(pullback_of_a_history, x, v, has_inner);
}

/// Three scans in one another. The outer and the inner one are along a ragged dim.
Function nest_of_scans(const LoopPolicy& outer, const LoopPolicy& inner) {
  return [=](const Tensor& x) -> Tensor {
    const Dim time = x.dims()[0], batch = time.length_dims()[0];
    const auto innermost = [&](const Tensor& begin) {
      return scan(Scan{.spatial_dim = time,
                       .initial = std::pair{begin, scalar(.5, f64)},
                       .xs = x,
                       .body =
                           [](const Tensor& x, const std::pair<Tensor, Tensor>& s) {
                             const auto& [a, b] = s;
                             return std::pair{None(), std::pair{tanh(a), a + 0. * x * b}};
                           },
                       .checkpoint = inner.checkpoint,
                       .swap_memory = inner.swap_memory})
          .state.second;
    };
    const auto middle = [&](const Tensor& begin, None) {
      const auto body = [&](const Tensor&, None) { return std::pair{innermost(begin), None()}; };
      return std::pair{scan(Scan{.spatial_dim = batch,
                                 .initial = None(),
                                 .xs = zeros({batch, time}, f64),
                                 .body = body,
                                 .checkpoint = outer.checkpoint,
                                 .swap_memory = outer.swap_memory})
                           .ys,
                       None()};
    };
    const auto made = scan(Scan{.spatial_dim = time,
                                .initial = None(),
                                .xs = x,
                                .body = middle,
                                .checkpoint = outer.checkpoint,
                                .swap_memory = outer.swap_memory});
    return sum(square(mask_padding(made.ys)));
  };
}

TEST_P(PoliciesInPoliciesTest, ThreeScansOfWhichTwoAreRagged) {
  const Dim batch("batch", scalar(3)), time("time", tensor({2, 1, 3}, {batch}));
  const Tensor x = tensor({.7, -.2, .4}, {time}, f64), v = tensor({.5, 1., -.3}, {time}, f64);
  expect_same_derivatives(nest_of_scans, x, v, true);
}

/// The loop inside begins with a slice, which has its own lengths, and reads it.
Function loops_over_slices(const LoopPolicy& outer, const LoopPolicy& inner) {
  return [=](const Tensor& x) -> Tensor {
    const auto body = [&](const Tensor& row, None) {
      const Tensor made = while_loop([](const Tensor&) { return true; },
                                     [&](const Tensor& s) { return tanh(s + row); }, row,
                                     {.checkpoint = inner.checkpoint,
                                      .swap_memory = inner.swap_memory,
                                      .maximum_iterations = tensor(2)});
      return std::pair{sigmoid(made), None()};
    };
    const auto made = scan(Scan{.spatial_dim = x.dims()[0],
                                .initial = None(),
                                .xs = x,
                                .body = body,
                                .checkpoint = outer.checkpoint,
                                .swap_memory = outer.swap_memory});
    return sum(square(mask_padding(made.ys)));
  };
}

TEST_P(PoliciesInPoliciesTest, ALoopInsideThatBeginsWithASliceOfARaggedDim) {
  const Dim batch("batch", 2), time("time", tensor({2, 3}, {batch}));
  const Tensor x = tensor({.7, -.2, 0., .4, .1, -.6}, {batch, time}, f64),
               v = tensor({.5, 1., 0., -.3, .2, .8}, {batch, time}, f64);
  expect_same_derivatives(loops_over_slices, x, v, true);
}

TEST_P(PoliciesInPoliciesTest, ARaggedLoopInALoopWithoutIterations) {
  const Dim batch("batch", 2), time("time", tensor({2, 3}, {batch}));
  const Tensor x = tensor({.7, -.2, 0., .4, .1, -.6}, {batch, time}, f64);
  for (const auto& [name, policy] : loop_policies()) {
    SCOPED_TRACE(name);
    const auto f = [&](const Tensor& x) {
      const auto body = [&](None, const Tensor& state) {
        const auto inner = [](const Tensor&, const Tensor& s) {
          return std::pair{ones({}, f64), s};
        };
        const auto made =
            scan(Scan{.spatial_dim = x.dim("time"), .initial = state, .xs = x, .body = inner});
        return std::pair{made.ys, state + 1.0};
      };
      const auto made = scan(Scan{.spatial_dim = Dim("steps"),
                                  .cond_dims = {},
                                  .initial = zeros({}, f64),
                                  .xs = None(),
                                  .cond = [](const Tensor& state) { return state < 2.0; },
                                  .body = body,
                                  .max_seq_len = 0,
                                  .checkpoint = policy.checkpoint,
                                  .swap_memory = policy.swap_memory});
      return std::pair{sum(made.ys), made.ys};
    };
    const Tensor ys = run(value_and_grad(f))(x).first.second;
    EXPECT_EQ(str(ys.type()), "f64[steps=0,time[batch=2]]");
    EXPECT_EQ(ys.dims()[1], time);
  }
}

}  // namespace
}  // namespace reel
