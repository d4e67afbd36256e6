// Gradients of loops and conds in a trace: nested loops over one dim, values with lengths over the
// loop's dim, cotangents that reach nothing, and the order of sums.
#include <limits>

#include "reel/tests/gradients.h"
#include "reel/tests/modes.h"

namespace reel {
namespace {

using LoopGradientsTest = InEveryMode;
REEL_IN_EVERY_MODE(LoopGradientsTest);

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

/// Returns the gradient of the summed sine of f's gradient.
template <class F>
auto second(F f) {
  return grad([f](const Tensor& x) { return sum(sin(grad(f)(x))); });
}

TEST_P(LoopGradientsTest, NestedLoopsOverOneDimHaveTwoDerivatives) {
  const Dim in("in", 3);
  const auto loss = [&](const Tensor& x) {
    const auto inner = [&](const Tensor& x_t, const Tensor& s) {
      return scan(Scan{.spatial_dim = in,
                       .initial = s,
                       .xs = x,
                       .body =
                           [&](const Tensor& x_k, const Tensor& s) {
                             return std::pair{None{}, tanh(s * x_k + x_t)};
                           }})
          .state;
    };
    return scan(Scan{.spatial_dim = in,
                     .initial = scalar(0.5, f64),
                     .xs = x,
                     .body =
                         [&](const Tensor& x_t, const Tensor& s) {
                           return std::pair{None{}, inner(x_t, s)};
                         }})
        .state;
  };
  const Tensor x = tensor({0.5, -0.25, 1.}, {in}, f64);
  expect_gradient_of(loss, x, run(grad(loss))(x));
  const auto slope = [&](const Tensor& x) { return sum(sin(grad(loss)(x))); };
  expect_gradient_of(slope, x, run(second(loss))(x));
}

TEST_P(LoopGradientsTest, StateWithLengthsOverTheLoopsDimHasSecondGradients) {
  // Inside the loop there are no entries for the lengths, so all of time counts.
  const Dim batch("batch", 2), time("time", tensor({1, 2}, {batch}));
  const auto loss = [&](const Tensor& x) {
    return sum(scan(Scan{.spatial_dim = batch,
                         .initial = x,
                         .body =
                             [](const Tensor& s) {
                               return std::pair{None{}, tanh(s)};
                             }})
                   .state,
               time);
  };
  const Tensor x = tensor({0.5, -1.}, {time}, f64);
  const auto slope = [&](const Tensor& x) { return sum(sin(grad(loss)(x))); };
  expect_gradient_of(slope, x, run(second(loss))(x));
}

TEST_P(LoopGradientsTest, StackedStateWithPaddingHasTwoDerivatives) {
  const Dim batch("batch", 2), time("time", tensor({1, 2}, {batch}));
  const auto loss = [&](const Tensor& x) {
    const auto result = scan(Scan{.spatial_dim = batch, .initial = x, .body = [](const Tensor& s) {
                                    return std::pair{s, tanh(s)};
                                  }});
    return sum(sin(result.ys)) + sum(result.state, time);
  };
  const Tensor x = tensor({0.5, -1.}, {time}, f64);
  expect_gradient_of(loss, x, run(grad(loss))(x));
  const auto slope = [&](const Tensor& x) { return sum(sin(grad(loss)(x))); };
  expect_gradient_of(slope, x, run(second(loss))(x));
}

TEST_P(LoopGradientsTest, SlicesAlongTheDimOfLengthsHaveNoPadding) {
  const Dim batch("batch", 2), time("time", tensor({1, 2}, {batch}));
  const auto loss = [&](const Tensor& x) {
    return sum(scan(Scan{.spatial_dim = batch,
                         .xs = x,
                         .body = [&](const Tensor& x_b) { return log_softmax(x_b, time); }})
                   .ys);
  };
  const auto f = run(value_and_grad(loss));
  const auto [clean, clean_gradient] = f(tensor({1., 0., 2., 3.}, {batch, time}, f64));
  const auto [value, gradient] = f(tensor({1., kNan, 2., 3.}, {batch, time}, f64));
  expect_same_bits(value, clean);
  expect_same_bits(mask_padding(gradient), mask_padding(clean_gradient));
}

TEST_P(LoopGradientsTest, SumOverFinishedEntriesCountsTheRunningOne) {
  // After the second entry has finished, both entries show the first one, which counts twice.
  const Dim batch("batch", 2), time("time", tensor({2, 1}, {batch}));
  const Tensor x = tensor({.2, .3, .4, 0.}, {batch, time}, f64);
  const auto loss = [&](const Tensor& c) {
    const auto body = [&](const Tensor&) { return sum(c); };
    return sum(scan(Scan{.spatial_dim = time, .xs = x, .body = body}).ys);
  };
  expect_values(run(grad(loss))(transpose(x, {time, batch})), {3, 1, 3, 0});
  expect_values(run(grad(loss))(x), {3, 3, 1, 0});
}

TEST_P(LoopGradientsTest, GradientOfXsIsAsLongAsXsIfAConditionEndsTheScan) {
  // The loop's stacks are shorter than xs; the gradient of xs is not.
  const Dim batch("batch", 2), in("in", 3);
  const auto loss = [&](const std::pair<Tensor, Tensor>& x) {
    return sum(scan(Scan{.spatial_dim = in,
                         .cond_dims = {batch},
                         .initial = x.first,
                         .xs = x.second,
                         .cond = [](const Tensor& s) { return s < 2.; },
                         .body =
                             [](const Tensor& x_t, const Tensor& s) {
                               return std::pair{None{}, s * s + cast(x_t, f64)};
                             }})
                   .state);
  };
  const auto slope = [&](const std::pair<Tensor, Tensor>& x) {
    return sum(sin(grad(loss)(x).first));
  };
  const std::pair x{tensor({1.1, 0.5}, {batch}, f64), tensor({1, 1, 1}, {in})};
  const auto [first, indices] = run(grad(slope))(x);
  EXPECT_EQ(indices.type(), x.second.type());
  expect_gradient_of(slope, x, std::pair{first, indices});
}

TEST_P(LoopGradientsTest, UnreadSlicesGiveATracedGradientItsDim) {
  // time is known from x alone, on which no result of the body depends.
  const Dim batch("batch", 2), time("time", tensor({1, 2}, {batch}));
  const auto f = run([&](const Tensor& x) {
    const Dim time = x.dim("time");
    const auto body = [&](const Tensor& x_b) {
      const Tensor unused = x_b * x_b;
      return ones({time}, f64);
    };
    return sum(x * scan(Scan{.spatial_dim = batch, .xs = x, .body = body}).ys);
  });
  expect_values(grad(f)(ones({batch, time}, f64)), {1, 0, 1, 1});
}

TEST_P(LoopGradientsTest, ValuesWithoutAPathGetNoZeroCotangent) {
  // 0 times the infinite derivative of sqrt at 0 would be NaN.
  const Dim in("in", 2);
  const auto loss = [&](const Tensor& x) {
    const Tensor root = sqrt(x), bound = sum(root);
    const Tensor state =
        scan(Scan{.spatial_dim = in,
                  .initial = sum(x),
                  .xs = root,
                  .body =
                      [&](const Tensor&, const Tensor& s) {
                        const auto body = [](const Tensor& s) { return 2. * s; };
                        return std::pair{
                            None{},
                            while_loop([&](const Tensor& s) { return s < bound; }, body, s)};
                      }})
            .state;
    return cond(
        state > 100., [&] { return state * 2.; }, [&] { return state; });
  };
  expect_values(run(grad(loss))(tensor({0., 4.}, {in}, f64)), {1, 1});
}

// ---- Operands that no iteration reads -----------------------------------------------------------

/// Not differentiable. If `bad` is not read, it must get no cotangent at all instead of zeros.
Tensor bad(const Tensor& x) { return sqrt(x - x); }

TEST_P(LoopGradientsTest, BranchThatNoIterationTakesGivesNoCotangent) {
  const auto f = [](const Tensor& x) {
    const Tensor y = bad(x);
    return fori_loop(
        0, 2,
        [&](const Tensor& i, const Tensor& s) {
          return cond(
              i > 5, [&] { return s * y; }, [&] { return s * x; });
        },
        x);
  };
  expect_values(run(grad(f))(scalar(0.8, f64)), {3 * 0.64}, 1e-12);
  expect_values(run(grad(grad(f)))(scalar(0.8, f64)), {6 * 0.8}, 1e-12);
  expect_values(grad(run(f))(scalar(0.8, f64)), {3 * 0.64}, 1e-12);
}

TEST_P(LoopGradientsTest, BranchThatOneIterationTakesGivesItsCotangent) {
  const auto f = [](const std::pair<Tensor, Tensor>& p) {
    const Tensor y = sin(p.first);
    return fori_loop(
        0, 4,
        [&](const Tensor& i, const Tensor& s) {
          return cond(
              i == 2, [&] { return s * y; }, [&] { return s * p.second; });
        },
        p.first);
  };
  const double a = 0.8, b = 1.1;  // a b³ sin(a)
  const auto [da, db] = run(grad(f))(std::pair{scalar(a, f64), scalar(b, f64)});
  expect_values(da, {b * b * b * (std::sin(a) + a * std::cos(a))}, 1e-12);
  expect_values(db, {3 * b * b * a * std::sin(a)}, 1e-12);
}

TEST_P(LoopGradientsTest, InnerLoopThatNeverRunsGivesNoCotangent) {
  const auto f = [](const Tensor& x, const Tensor& times) {
    const Tensor y = bad(x);
    return fori_loop(
        0, 2,
        [&](const Tensor&, const Tensor& s) {
          return fori_loop(
                     0, times, [&](const Tensor&, const Tensor& t) { return t * y; }, s) *
                 x;
        },
        x);
  };
  expect_values(run(grad(f))(scalar(0.8, f64), scalar(0)), {3 * 0.64}, 1e-12);
}

TEST_P(LoopGradientsTest, SlicesThatNoIterationReadsGetNoCotangent) {
  const auto f = [](const Tensor& x) {
    const Tensor xs = bad(x * ones({3}, f64));
    return fori_loop(
        0, 2,
        [&](const Tensor& i, const Tensor& s) {
          return scan(Scan{.initial = s,
                           .xs = xs,
                           .body =
                               [&](const Tensor& y, const Tensor& s) {
                                 return std::pair{None{}, cond(
                                                              i > 5, [&] { return s * y; },
                                                              [&] { return s * x; })};
                               }})
              .state;
        },
        x);
  };
  expect_values(run(grad(f))(scalar(0.8, f64)), {7 * std::pow(0.8, 6)}, 1e-12);
}

TEST_P(LoopGradientsTest, UntakenNestedAndCalledBranchesGiveNoCotangent) {
  const auto nested = [](const Tensor& x) {
    const Tensor y = bad(x);
    return cond(
        x > 0.0,
        [&] {
          return cond(
              x > 5.0, [&] { return x * y; }, [&] { return x * x; });
        },
        [&] { return x + y; });
  };
  expect_values(run(grad(nested))(scalar(0.8, f64)), {1.6}, 1e-12);
  const auto inner = run([](const Tensor& y, const Tensor& x) {
    return cond(
        x > 5.0, [&] { return y * x; }, [&] { return x * x; });
  });
  const auto f = [&](const Tensor& x) { return inner(bad(x), x); };
  expect_values(grad(f)(scalar(0.8, f64)), {1.6}, 1e-12);
  expect_values(run(grad(f))(scalar(0.8, f64)), {1.6}, 1e-12);
}

TEST_P(LoopGradientsTest, UnreadResidualsOfNestedLoopsHaveEmptyCotangents) {
  // Each iteration saves a list; the cotangent of these lists is a list of empty lists.
  const Dim batch("batch", 2), time("time", tensor({1, 2}, {batch}));
  const auto loss = run([&](const Tensor& x) {
    const auto inner = [&] {
      const auto body = [&](const Tensor&) { return std::pair{None{}, x}; };
      return scan(Scan{.spatial_dim = time, .initial = x, .body = body}).state;
    };
    const Tensor ones_along_time = ones({time}, f64);
    return sum(sin(scan(Scan{.spatial_dim = time,
                             .xs = ones_along_time,
                             .body = [&](const Tensor& one) { return one * inner(); }})
                       .ys));
  });
  const Tensor x = tensor({0.5, 0.75}, {batch}, f64);
  const auto slope = [&](const Tensor& x) { return sum(sin(grad(loss)(x))); };
  expect_gradient_of(slope, x, second(loss)(x));
}

TEST_P(LoopGradientsTest, TheLastZeroIterationsOfAListHaveSomeType) {
  // The gradient of a gradient saves a list of elements with a dim that each iteration makes.
  const Dim batch("batch", 2);
  const auto loss = run([&](const Tensor& x) {
    const auto body = [&](const Tensor& s) {
      return scan(Scan{.spatial_dim = Dim("steps"),
                       .cond_dims = {batch},
                       .initial = s,
                       .cond = [](const Tensor& s) { return s < 2.; },
                       .body =
                           [&](const Tensor& s) {
                             return std::pair{None{}, s + variance(x, batch)};
                           }})
          .state;
    };
    const WhileOptions options{.maximum_iterations = 0};
    return sum(while_loop([](const Tensor&) { return true; }, body, x, options));
  });
  expect_values(second(loss)(tensor({1., 2.}, {batch}, f64)), {0, 0});
}

/// Eager mode adds contributions in the order of a graph.
class OrderOfSumsTest : public ::testing::Test {
 protected:
  template <class F>
  static void expect_equal(F loss, const Tensor& x) {
    expect_same_bits(grad(loss)(x), jit(grad(loss))(x));
  }
};

TEST_F(OrderOfSumsTest, ReturnedCaptureHasTheBitsOfEagerMode) {
  const auto loss = [](const Tensor& x) {
    const Tensor ys =
        scan(Scan{.xs = zeros({3}, f64), .body = [&](const Tensor&) { return x; }}).ys;
    const Tensor square = x * x;
    return sum(0.5 * ys + sin(ys)) + sum(0.5 * square + sin(square));
  };
  for (const double x : {2., 0.3, 1.7, 2.9}) expect_equal(loss, scalar(x, f64));
}

TEST_F(OrderOfSumsTest, StackedStateHasTheBitsOfEagerMode) {
  const auto loss = [](const Tensor& x) {
    const auto result =
        scan(Scan{.spatial_dim = Dim(3), .initial = softplus(x), .body = [](const Tensor& s) {
                    return std::pair{s, s + s * s};
                  }});
    return sum(0.5 * result.ys + sin(result.ys));
  };
  for (const double x : {2., 0.3, 1.1, -0.9}) expect_equal(loss, scalar(x, f64));
}

TEST_F(OrderOfSumsTest, OneTensorInSeveralStatesHasTheBitsOfEagerMode) {
  const auto loss = [](const Tensor& x) {
    const auto body = [](const Tensors& s) {
      const Tensor h = gelu(s[0] + 0.3 * s[1] * s[2]);
      return std::pair{Tensors{h, h}, Tensors{h, h, h}};
    };
    const auto result =
        scan(Scan{.spatial_dim = Dim(3), .initial = Tensors{x, 2. * x, sin(x)}, .body = body});
    return sum(result.ys[0]) + sum(sin(result.ys[1])) + result.state[1] * result.state[2];
  };
  for (const double x : {2., 0.3, 1.1, -0.9}) expect_equal(loss, scalar(x, f64));
}

TEST_F(OrderOfSumsTest, OneTensorAsStateAndSliceHasTheBitsOfEagerMode) {
  const auto loss = [](const Tensor& x) {
    const auto body = [&](const Tensors& xs, const Tensors& s) {
      return std::pair{None{}, Tensors{s[0] + xs[0] * x, s[1] * s[0] * xs[1]}};
    };
    const Tensor state =
        scan(Scan{.initial = Tensors{x, x}, .xs = Tensors{x, x}, .body = body}).state[1];
    return sum(0.5 * state + sin(state));
  };
  for (const double x : {2., 0.3, 1.1, -0.9}) expect_equal(loss, tensor({x, 0.7}, {}, f64));
}

TEST_F(OrderOfSumsTest, BranchHasTheBitsOfEagerMode) {
  const auto loss = [](const Tensor& x) {
    return cond(
               x > 10., [&] { return x; }, [&] { return tanh(x + sin(x) * x); }) +
           x * 0.1;
  };
  for (const double x : {2., 0.3, 1.1, -0.9}) expect_equal(loss, scalar(x, f64));
}

TEST_F(OrderOfSumsTest, ValuesWithoutPaddingHaveTheBitsOfEagerMode) {
  const Dim batch("batch", 1), time("time", tensor({2}, {batch}));
  const auto loss = [](const Tensor& x) {
    const Tensor product = mask_padding(x) * mod(x, 2.5) * variance(x, x.dim("time"));
    return sum(0.5 * x + sin(x)) + sum(0.5 * product + sin(product));
  };
  for (const double x : {2., 0.3, 1.1, -0.875})
    expect_equal(loss, tensor({0.375, x}, {time, batch}, f64));
}

TEST_F(OrderOfSumsTest, ProductsWithoutPaddingHaveTheBitsOfEagerMode) {
  const Dim batch("batch", 2), time("time", tensor({3, 3}, {batch}));
  const auto loss = [&](const Tensor& x) {
    const Tensor before = cumprod(x, batch), product = matmul(x, x, x.dim("time"));
    return sum(0.5 * before + sin(before)) + sum(0.5 * product + sin(product));
  };
  for (const double x : {2., 0.3, 1.1, -0.9})
    expect_equal(loss, tensor({x, 0.7, 0.1, -x, 0.9, 1.3}, {time, batch}, f64));
}

}  // namespace
}  // namespace reel
