// Bodies that mix entries: a finished entry counts as a copy of the first running one, as in eager
// mode.
#include <limits>

#include "reel/tests/cases/entries_alone.h"

namespace reel {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

/// Bodies that mix entries count a finished one as a copy of the first running one.
class CouplingBodies : public InEveryMode {
 protected:
  const Dim batch{"batch", 2};
  const Dim time{"time", tensor({2, 1}, {batch})}, outer{"outer", tensor({1, 2}, {batch})};
  const Tensor x = tensor({.1, .2, .3, kNan}, {batch, time}, f64);

  using Body = std::function<Tensor(const Tensor& x, const Tensor& s)>;
  /// Returns a function that sums the body's results over all iterations and entries.
  auto total_of(const Body& body) const {
    return [this, body](const Tensor& x) {
      const auto step = [&](const Tensor& s) { return std::pair{None{}, s + body(x, s)}; };
      return sum(
          scan(Scan{.spatial_dim = outer, .initial = zeros({batch}, f64), .body = step}).state);
    };
  }
  /// Expects the bits of eager mode for value and gradient.
  void expect_as_eager(const Body& body) const {
    const auto both = value_and_grad(total_of(body));
    const auto [value, gradient] = both(x);
    const auto [same_value, same_gradient] = run([&](const Tensor& x) { return both(x); })(x);
    expect_same_bits(value, same_value);
    expect_same_bits(mask_padding(gradient), mask_padding(same_gradient));
  }
};
REEL_IN_EVERY_MODE(CouplingBodies);

TEST_P(CouplingBodies, ASumOverTheBatch) {
  const auto f = total_of([](const Tensor& x, const Tensor&) { return sum(x); });
  // 0.6 for both entries, then 0.3 + 0.3: the first entry sees the second one's frame.
  expect_values(run(f)(x), {0.6 + 0.6 + 0.6});
  expect_values(mask_padding(run(grad(f))(x)), {2, 2, 4, 0});
}
TEST_P(CouplingBodies, AsInEagerMode) {
  expect_as_eager([](const Tensor& x, const Tensor&) { return sum(x); });
  expect_as_eager([](const Tensor& x, const Tensor& s) { return sum(x * s) + s; });
}
TEST_P(CouplingBodies, LoopsInsideStackValuesOverDimsOfCaptures) {
  const Dim batch("batch", 2), time("time", tensor({2, 1}, {batch})),
      other("other", tensor({1, 2}, {batch})), k("k", 2);
  const Tensor x = tensor({.2, .3, .4, 0.}, {batch, time}, f64),
               c = tensor({1., 2., 3., 4.}, {batch, other}, f64);
  const auto f = run([&](const Tensor& x) {
    const auto body = [&](const Tensor& e) {
      const auto scaled = [&](const Tensor& q) { return c * q; };
      return e + sum(map(scaled, ones({k}, f64), {.spatial_dim = k}), {k, other});
    };
    return scan(Scan{.spatial_dim = time, .xs = x, .body = body}).ys;
  });
  expect_values(mask_padding(transpose(f(x), {batch, time})), {2.2, 2.3, 14.4, 0});
}
TEST_P(CouplingBodies, LengthsAsInEagerMode) {
  expect_as_eager([](const Tensor& x, const Tensor& s) {
    return sum(x) * sum(cast(x.dim("time").lengths(), f64)) + s;
  });
  expect_as_eager([](const Tensor& x, const Tensor& s) {
    const Dim time = x.dim("time");
    return sum(cast(mask(time), f64)) * sum(x) + sum(cast(range(time), f64)) * s;
  });
  expect_as_eager([](const Tensor& x, const Tensor& s) {
    const Dim time = x.dim("time");
    return sum(ones(x.dims(), f64)) * s + sum(max(x * s, time)) + sum(cumsum(x, time)) +
           sum(softmax(x, time) * x);
  });
}

TEST_P(CouplingBodies, AveragesAlongLengthsAlone) {
  // x has no entries. Its time is as long as the first entry's while only that entry is running.
  const Dim time("time", tensor({1, 2}, {batch})), outer("outer", tensor({1, 0}, {batch}));
  const Tensor x = tensor({3., 5.}, {time}, f64), y = tensor({1., 2.}, {batch, outer}, f64);
  const auto f = [](const Tensor& x, const Tensor& y) {
    const auto body = [&](const Tensor& y) {
      const Dim time = x.dim("time");
      const Tensor more = expand(x, {Dim("k", 2), time});
      return std::array{mean(x, time) + y, variance(x) + y, variance(more) + y,
                        sum(mean(more, {time})) + y};
    };
    return scan(Scan{.spatial_dim = y.dim("outer"), .xs = y, .body = body}).ys;
  };
  const auto [mean, variance, variance_of_more, mean_of_more] = run(f)(x, y);
  expect_values(mask_padding(mean), {4, 0});
  expect_values(mask_padding(variance), {1, 0});
  expect_values(mask_padding(variance_of_more), {1, 0});
  expect_values(mask_padding(mean_of_more), {7, 0});
}

TEST_P(CouplingBodies, DrawsLikeThatOfACapture) {
  const Tensor even = zeros({batch, time}, f64);
  const auto f = [&](const Tensor& logits) {
    const auto body = [&](const Tensor& s) {
      return std::pair{None{}, s + sum(categorical(logits, logits.dim("batch"))) +
                                   10 * sum(categorical(logits, logits.dim("time")))};
    };
    return scan(Scan{.spatial_dim = outer, .initial = zeros({batch}, i32), .body = body}).state;
  };
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    manual_seed(seed);
    const Tensor eager = f(even);
    manual_seed(seed);
    expect_same_bits(run(f)(even), eager);
  }
}
TEST_P(CouplingBodies, AGradientOfOnesOwn) {
  expect_as_eager([](const Tensor& x, const Tensor& s) {
    const auto doubled = custom_vjp(
        [](const Tensor& x) {
          return std::pair{square(x), x};
        },
        [](const Tensor& x, const Tensor& dy) { return 2.0 * x * dy; });
    return sum(doubled(x)) * s + sum(doubled(x), x.dim("time"));
  });
}

TEST_P(CouplingBodies, GradientsFlowThroughFinishedEntriesThatCount) {
  const Tensor x = tensor({.1, kNan, .2, .3}, {batch, outer}, f64),
               w = tensor({.5, -.7}, {batch}, f64);
  const auto f = [&](const Tensor& x, const Tensor& w) {
    const auto body = [&](const Tensor& x) { return matmul(x, x, batch) * sum(w * x, batch); };
    return sum(scan(Scan{.spatial_dim = outer, .xs = x, .body = body}).ys);
  };
  // (a a + b b) (.5 a - .7 b), then the second entry alone, which the first one sees as well: (c c
  // + c c) (-.7 c - .7 c).
  const double a = .1, b = .2, c = .3, s = .5 * a - .7 * b, p = a * a + b * b;
  expect_values(mask_padding(run(grad(f))(x, w)),
                {2 * a * s + p * .5, 0, 2 * b * s - p * .7, -8.4 * c * c});
  expect_values(run(grad([&](const Tensor& w) { return f(x, w); }))(w),
                {p * a, p * b + 4 * c * c * c});
}

TEST_P(CouplingBodies, GradientsOfProductsOverEntries) {
  const Tensor x = tensor({.1, kNan, .2, .3}, {batch, outer}, f64);
  const auto f = [&](const Tensor& x) {
    const auto body = [&](const Tensor& x) { return matmul(x, x, batch); };
    return sum(sin(scan(Scan{.spatial_dim = outer, .xs = x, .body = body}).ys));
  };
  const double a = .1, b = .2, c = .3, at = std::cos(a * a + b * b);
  expect_values(mask_padding(run(grad(f))(x)),
                {2 * a * at, 0, 2 * b * at, 4 * c * std::cos(2 * c * c)});
}

TEST_P(CouplingBodies, AValueSharedByAllStepsHasTheGradientOfRunningEntries) {
  const Dim time("time", tensor({0, 1}, {batch}));
  const Tensor x = tensor({.5, .2}, {batch}, f64), steps = zeros({batch, time}, f64);
  const auto f = [&](const Tensor& x) {
    const auto body = [&](const Tensor&) { return logsumexp(x, batch); };
    return sum(square(scan(Scan{.spatial_dim = time, .xs = steps, .body = body}).ys));
  };
  // Only the second entry is running, and the first one sees its values: log(2 exp(x1)) squared.
  expect_values(run(grad(f))(x), {0, 2 * (.2 + std::log(2))});
}

TEST_P(CouplingBodies, StatesAlongLengthsInALoopInALoop) {
  // Entry 0 never runs. It sees entry 1 in both loops, and has its length.
  const Dim batch("batch", 3);
  const Dim time("time", tensor({0, 1, 2}, {batch})), other("other", tensor({0, 2, 0}, {batch}));
  const Tensor xs = tensor({1., 2.}, {time}, f64), steps = zeros({batch, other}, f64);
  const auto f = [&](const Tensor& xs) {
    const auto inner = [&](const Tensor&, const Tensor& s) {
      return std::pair{None{}, tanh(s + sum(softmax(s, {time}) * s))};
    };
    const auto outer = [&](const Tensor& x) {
      const Scan loop{.spatial_dim = other, .initial = xs, .xs = steps, .body = inner};
      return sum(scan(loop).state) * x;
    };
    return sum(scan(Scan{.spatial_dim = time, .xs = xs, .body = outer}).ys);
  };
  const auto [value, gradient] = value_and_grad(f)(xs);
  expect_all_close(run(f)(xs), value, 1e-12);
  const auto [same_value, same_gradient] = run(value_and_grad(f))(xs);
  expect_all_close(same_value, value, 1e-12);
  expect_all_close(same_gradient, gradient, 1e-12);
}

TEST_P(CouplingBodies, CapturesReadFirstByAnInnerConditionHaveGradients) {
  // The finished entries' view of w is made where the inner condition reads it; the outer body
  // returns it.
  const Dim time("time", tensor({1, 0}, {batch}));
  const Tensor w = tensor({.5, .2}, {batch}, f64), steps = tensor({.3}, {time}, f64);
  const auto f = [&](const Tensor& w) {
    const auto body = [&](const Tensor& x) {
      scan(Scan{.cond_dims = {batch},
                .initial = x,
                .cond = [&](Tensor) { return w < 0.0; },
                .body =
                    [](Tensor s) {
                      return std::pair{None{}, s * s};
                    }});
      return w;
    };
    return sum(square(scan(Scan{.spatial_dim = time, .xs = steps, .body = body}).ys));
  };
  expect_values(run(grad(f))(w), {1, 0});
}

TEST_P(CouplingBodies, RowsThatAreMadeOfOtherDims) {
  const Dim longer("longer", 4);
  expect_as_eager([&](const Tensor& x, const Tensor& s) {
    const Tensor first = sum(x, x.dim("time"));
    const Tensor moved = pad(first, first.dim("batch"), 2, 0, 0.5, longer);
    return sum(square(moved)) * s + slice(moved, longer, 1, 3, first.dim("batch"));
  });
}

TEST_P(CouplingBodies, SlicesAlongLengthsOverEntriesAreStackedAsTheBodySeesThem) {
  const Dim time("time", tensor({0, 1}, {batch})), other("other", tensor({1, 0}, {batch}));
  const auto f = [](const Tensor& x) {
    const auto body = [](const Tensor& x) { return x; };
    return sum(square(scan(Scan{.spatial_dim = x.dim("time"), .xs = x, .body = body}).ys));
  };
  const Tensor x = tensor({{1.}}, {time, other}, f64);
  expect_values(run(f)(x), f(x).to_vector<double>());
}

TEST_P(CouplingBodies, ResidualsOfAnInnerScanHaveDimsOfTheirIteration) {
  const Dim part("part", 2);
  const auto f = [](const std::pair<Tensor, Tensor>& xw, const Tensor& most) {
    const auto& [x, w] = xw;
    const auto body = [&](const Tensor& x) {
      const auto step = [&](const Tensor& s) { return std::pair{None{}, tanh(s + w * x)}; };
      const auto always = [](const Tensor&) { return scalar(true); };
      return scan(Scan{.spatial_dim = Dim("steps"),
                       .cond_dims = Dims{},
                       .initial = x,
                       .cond = always,
                       .body = step,
                       .max_seq_len = most})
          .state;
    };
    return sum(square(scan(Scan{.spatial_dim = x.dim("time"), .xs = x, .body = body}).ys));
  };
  // x has no entries: the loop has as many steps as the longest entry.
  const Tensor x = tensor({.5, -.25, .75, .3}, {part, time}, f64), w = scalar(0.7, f64);
  for (const int most : {2, 0}) {
    const auto [dx, dw] = grad(f)(std::pair{x, w}, scalar(most));
    const auto [same_dx, same_dw] = run(grad(f))(std::pair{x, w}, scalar(most));
    expect_all_close(mask_padding(same_dx), mask_padding(dx), 1e-12);
    expect_all_close(same_dw, dw, 1e-12);
  }
}

// The array's elements have time, which finished entries see unchanged. This must hold for a
// carried array, for a captured one that is returned, and for one that is not read.
TEST_P(CouplingBodies, DimOfArrayElementsStaysIfTheArrayIsNotCarried) {
  const Dim entry("entry", 3), wide("wide", tensor({0, 0, 1}, {entry}));
  const auto f = [&](const Tensor& x, const Tensor& most) {
    const Dim time = x.dim("wide");
    const TensorArray captured(TensorType(f64, {time}), {.size = 0});
    using State = std::pair<Tensor, TensorArray>;
    const auto made =
        scan(Scan{.spatial_dim = Dim("steps"),
                  .cond_dims = {entry},
                  .cond_before_body = false,
                  .initial = State{x, captured},
                  .cond = [&](const State&) { return ones({entry}, boolean); },
                  .body =
                      [&](const State&) {
                        return std::pair{None{}, State{full({time}, 0.5, f64), captured}};
                      },
                  .max_seq_len = most});
    return made.state.first;
  };
  const Tensor x = zeros({wide}, f64), most = tensor({1, 0, 0}, {entry});
  expect_values(f(x, most), {0.5});
  expect_values(run(f)(x, most), {0.5});
}

TEST_P(CouplingBodies, AScanAlongACapturedDimOverTheDimOfAnArgument) {
  const Dim entry("entry", 2), wide("wide", tensor({1, 0}, {entry}));
  const Tensor x = tensor({0.3}, {wide}, f64), given = ones({entry}, f64);
  const auto f = [&](const Tensor& given) {
    const Tensor captured = exp(x);
    const auto body = [&](const Tensor& x) {
      return sum(captured * full({wide}, 2.0, f64) * x, wide);
    };
    return sum(scan(Scan{.spatial_dim = wide, .xs = x, .body = body}).ys) * sum(given);
  };
  expect_all_close(run(f)(given), f(given), 1e-13);
}

// Another dim of the outside with a length per entry must not let padding show.
TEST_P(CouplingBodies, PaddingOfAnotherDimOfTheBatchDoesNotShow) {
  const Dim batch("batch", 2), time("time", tensor({2, 1}, {batch})),
      inner("inner", tensor({2, 1}, {batch}));
  const Tensor x =
      full({time, batch}, 0.5, f64) + cast(range(time), f64) + cast(range(batch), f64) * 0.25;
  const auto f = [&](const Tensor& x) {
    const auto body = [&](const Tensor& x, const Tensor& h) {
      const Tensor steps = sum(cast(range(inner), f64), inner);
      const Tensor next = h * 0.5 + sum(x) + steps * 0.1;
      return std::pair{next, next};
    };
    return scan(Scan{.spatial_dim = x.dim("time"),
                     .initial = zeros({batch}, f64) + 0.1,
                     .xs = x,
                     .body = body})
        .ys;
  };
  const auto loss = [&](const Tensor& x) { return sum(square(f(x))); };
  // The finished entry sees the other one's values: 1.5 twice.
  expect_values(sum(run(f)(x), time), {5.2, 1.4});
  expect_all_close(run(grad(loss))(x), grad(loss)(x), 1e-12);
}

}  // namespace
}  // namespace reel
