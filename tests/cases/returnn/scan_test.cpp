// scan along a known length, as RETURNN's users need it: rows 15 to 47.
#include <functional>

#include "reel/tests/cases/returnn/returnn.h"

namespace reel {
namespace {

using ReturnnScan = ReturnnCase;
REEL_IN_EVERY_MODE(ReturnnScan);

/// Returns the running sum of x along its dim "time": {all sums, the last}.
std::pair<Tensor, Tensor> running_sum(const Tensor& x, const Tensor& start) {
  const auto result = scan(Scan{
      .spatial_dim = x.dim("time"),
      .initial = start,
      .xs = x,
      .body =
          [](const Tensor& x, const Tensor& s) {
            return std::pair{s + x, s + x};
          },
  });
  return {result.ys, result.state};
}

TEST_P(ReturnnScan, Case15_YsAreCumulativeSumsWithZeroPadding) {
  for (const double padding : kPaddings) {
    const Tensor x = x1(padding);
    const auto [ys, last] = run(running_sum)(x, zeros({batch}));
    EXPECT_EQ(ys.dims(), (Dims{time, batch}));
    expect_values(ys, {1, 10, 100, 3, 30, 0, 6, 0, 0});  // padding of the result is exactly 0
    expect_values(last, {6, 30, 100});
  }
}

TEST_P(ReturnnScan, Case16_ScanRunsAlongAStaticDim) {
  const Dim four("four", 4);
  const auto f = [](const Tensor& x) {
    const auto [ys, last, dim] = scan(Scan{
        .spatial_dim = x.dim("four"),
        .initial = zeros({}, x.dtype()),
        .xs = x,
        .body =
            [](const Tensor& x, const Tensor& s) {
              return std::pair{s, s + x};
            },
    });
    return std::pair{ys, last};
  };
  const Tensor x = tensor({1., 2., 3., 4.}, {four}, f64);
  const auto [ys, last] = run(f)(x);
  expect_values(ys, {0, 1, 3, 6});
  expect_values(last, {10});
  checked_gradient(
      [&](const Tensor& x) {
        const auto [ys, last] = f(x);
        return sum(square(ys)) + square(last);
      },
      x);
}

TEST_P(ReturnnScan, Case18_LengthsOfZeroRunNoIteration) {
  int bodies = 0;
  const Dim none("time", tensor({0, 0, 0}, {batch}));
  const auto f = [&](const std::pair<Tensor, Tensor>& xs) {
    const auto [ys, last, dim] = scan(Scan{
        .spatial_dim = xs.first.dim("time"),
        .initial = xs.second,
        .xs = xs.first,
        .body =
            [&](const Tensor& x, const Tensor& s) {
              if (!is_tracing()) ++bodies;
              return std::pair{x * 2.0, s + x};
            },
    });
    return std::tuple{ys, last, sum(ys) + sum(last)};
  };
  const std::pair at{zeros({batch, none}), ones({batch})};
  const auto [ys, last, total] = run(f)(at);
  EXPECT_EQ(ys.shape(), (std::vector<std::int64_t>{0, 3}));
  expect_values(last, {1, 1, 1});
  const auto [dx, ds] = run(grad([&](const auto& xs) { return std::get<2>(f(xs)); }))(at);
  EXPECT_EQ(dx.shape(), (std::vector<std::int64_t>{3, 0}));
  expect_values(ds, {1, 1, 1});
  EXPECT_EQ(bodies, 0);
}

TEST_P(ReturnnScan, Case19_P19_ScanWithoutStateMapsTheBody) {
  const auto twice = [](const Tensor& x) {
    const auto [ys, state, dim] = scan(Scan{
        .spatial_dim = x.dim("time"), .xs = x, .body = [](const Tensor& x) { return x * 2.0; }});
    static_assert(std::is_same_v<std::decay_t<decltype(state)>, None>);
    return ys;
  };
  for (const double padding : kPaddings)
    expect_values(transpose(run(twice)(x1(padding)), {batch, time}),
                  {2, 4, 6, 20, 40, 0, 200, 0, 0});
  expect_values(checked_gradient([&](const Tensor& x) { return sum(twice(x)); }, x1(kNan, f64)),
                {2, 2, 2, 2, 2, 0, 2, 0, 0});
}

TEST_P(ReturnnScan, Case20_ScanWithoutYsReturnsTheState) {
  const auto total = run([](const Tensor& x) {
    const auto [ys, state, dim] = scan(Scan{
        .spatial_dim = x.dim("time"),
        .initial = zeros({x.dim("batch")}),
        .xs = x,
        .body =
            [](const Tensor& x, const Tensor& s) {
              return std::pair{None{}, s + x};
            },
    });
    static_assert(std::is_same_v<std::decay_t<decltype(ys)>, None>);
    return state;
  });
  for (const double padding : kPaddings) expect_values(total(x1(padding)), {6, 30, 100});
}

TEST_P(ReturnnScan, Case22_D5_ScanWithoutXsRunsAlongAKnownDim) {
  const auto count = [](const Tensor& s, const Dim& time) {
    return scan(Scan{.spatial_dim = time,
                     .initial = s,
                     .body =
                         [](const Tensor& s) {
                           return std::pair{None{}, s + 1.0};
                         }})
        .state;
  };
  expect_values(run(count)(zeros({batch}), time), {3, 2, 1});
  const auto with_none = run([](const Tensor& s, const Dim& time) {
    return scan(Scan{.spatial_dim = time,
                     .initial = s,
                     .xs = None{},
                     .body =
                         [](const None&, const Tensor& s) {
                           return std::pair{s, s + 1.0};
                         }})
        .ys;
  });
  expect_values(with_none(zeros({batch}), time), {0, 0, 0, 1, 1, 0, 2, 0, 0});
  const auto with_empty = run([](const Tensor& s, const Dim& time) {
    return scan(Scan{.spatial_dim = time,
                     .initial = s,
                     .xs = std::tuple<>{},
                     .body =
                         [](const std::tuple<>&, const Tensor& s) {
                           return std::pair{None{}, s + 1.0};
                         }})
        .state;
  });
  expect_values(with_empty(zeros({batch}), time), {3, 2, 1});
}

TEST_P(ReturnnScan, Case23_ScannedDimMayBeAnyAxisOfXs) {
  const Dim feature("feature", 2);
  for (const double padding : kPaddings) {
    const auto [ys, last] = run(running_sum)(transpose(x1(padding), {time, batch}), zeros({batch}));
    expect_values(ys, {1, 10, 100, 3, 30, 0, 6, 0, 0});
    expect_values(last, {6, 30, 100});
    const Tensor wide = expand(x1(padding), {batch, feature, time}) * tensor({1., 2.}, {feature});
    const auto [zs, z] = run(running_sum)(wide, zeros({batch, feature}));
    EXPECT_EQ(zs.dims(), (Dims{time, batch, feature}));
    expect_in_order(zs, {feature, time, batch},
                    {1, 10, 100, 3, 30, 0, 6, 0, 0, 2, 20, 200, 6, 60, 0, 12, 0, 0});
    expect_values(z, {6, 12, 30, 60, 100, 200});
  }
}

struct Counter {
  Tensor c, t;
};

TEST_P(ReturnnScan, Case24_LeafWithoutEntriesCountsAllIterations) {
  const auto f = run([&](const Tensor& x) {
    return scan(Scan{
                    .spatial_dim = x.dim("time"),
                    .initial = Counter{zeros({batch}, i32), scalar(0)},
                    .xs = x,
                    .body =
                        [](const Tensor&, const Counter& s) {
                          return std::pair{None{}, Counter{s.c + 1, s.t + 1}};
                        },
                })
        .state;
  });
  for (const double padding : kPaddings) {
    const Counter last = f(x1(padding));
    expect_values(last.c, {3, 2, 1});
    expect_values(last.t, {3});
  }
}

TEST_P(ReturnnScan, Case26_ReverseScanEqualsAScanOfReversedXs) {
  const auto flipped = [&](const Tensor& x) {
    const Dim time = x.dim("time");
    const auto [ys, last] = running_sum(reverse(x, time), zeros({batch}, x.dtype()));
    return std::pair{reverse(ys, time), last};
  };
  const auto backwards = [&](const Tensor& x) {
    const auto result = scan(Scan{
        .spatial_dim = x.dim("time"),
        .initial = zeros({batch}, x.dtype()),
        .xs = x,
        .body =
            [](const Tensor& x, const Tensor& s) {
              return std::pair{s + x, s + x};
            },
        .reverse = true,
    });
    return std::pair{result.ys, result.state};
  };
  for (const double padding : kPaddings) {
    for (const auto& [ys, last] : {run(flipped)(x2(padding)), run(backwards)(x2(padding))}) {
      expect_in_order(ys, {batch, time}, {6, 5, 3, 9, 5, 0, 7, 0, 0});
      expect_values(last, {6, 9, 7});
    }
    const auto loss = [](const auto& f) {
      return [&f](const Tensor& x) {
        const auto [ys, last] = f(x);
        return sum(square(ys)) + sum(last);
      };
    };
    const Tensor a = checked_gradient(loss(flipped), x2(padding, f64)),
                 b = checked_gradient(loss(backwards), x2(padding, f64));
    expect_all_close(a, b, 1e-12);
  }
}

TEST_P(ReturnnScan, Case29_GradientOfTheFinalStateLeavesOutPadding) {
  const auto sums = [&](const std::pair<Tensor, Tensor>& xs) {
    return scan(Scan{
                    .spatial_dim = xs.first.dim("time"),
                    .initial = xs.second,
                    .xs = xs.first,
                    .body =
                        [](const Tensor& x, const Tensor& s) {
                          return std::pair{s * x, s + x * x};
                        },
                })
        .state;
  };
  for (const double padding : kPaddings) {
    const std::pair at{x2(padding, f64), zeros({batch}, f64)};
    expect_values(run(sums)(at), {14, 41, 49});
    const auto [dx, ds] = checked_gradient([&](const auto& xs) { return sum(sums(xs)); }, at);
    expect_values(dx, {2, 4, 6, 8, 10, 0, 14, 0, 0});
    expect_values(ds, {1, 1, 1});
  }
}

TEST_P(ReturnnScan, Case30_GradientOfMaskedYsLeavesOutPadding) {
  const auto masked = [&](const std::pair<Tensor, Tensor>& xs) {
    const Tensor ys = running_sum(xs.first, xs.second).first;
    return sum(where(mask(xs.first.dim("time")), ys, 0.));
  };
  for (const double padding : kPaddings) {
    const std::pair at{x2(padding, f64), zeros({batch}, f64)};
    expect_values(run(masked)(at), {30});
    const auto [dx, ds] = checked_gradient(masked, at);
    expect_values(dx, {3, 2, 1, 2, 1, 0, 1, 0, 0});
    expect_values(ds, {3, 2, 1});
  }
}

TEST_P(ReturnnScan, Case31_D2_PaddingOfYsHasNoGradient) {
  // Reads elements by position, along a static dim that does not mask the padding.
  const Dim three("three", 3);
  const auto unmasked = [&](const std::pair<Tensor, Tensor>& xs) {
    const Tensor ys = running_sum(xs.first, xs.second).first;
    return sum(gather(ys, range(three), ys.dim("time")));
  };
  for (const double padding : kPaddings) {
    const std::pair at{x2(padding, f64), zeros({batch}, f64)};
    expect_values(run(unmasked)(at), {30});
    const auto [dx, ds] = checked_gradient(unmasked, at);
    expect_values(dx, {3, 2, 1, 2, 1, 0, 1, 0, 0});
    expect_values(ds, {3, 2, 1});
  }
}

TEST_P(ReturnnScan, Case32_D3_PaddingOfXsMakesNoNaN) {
  const auto last = [&](const Tensor& x) {
    return scan(Scan{
                    .spatial_dim = x.dim("time"),
                    .initial = ones({batch}, x.dtype()),
                    .xs = x,
                    .body =
                        [](const Tensor& x, const Tensor& s) {
                          return std::pair{None{}, s * (1.0 / x)};
                        },
                })
        .state;
  };
  for (const double padding : {0., kNan, kInf}) {
    const Tensor x =
        tensor(std::vector<double>{1, 2, 4, 4, 5, padding, 7, padding, padding}, {batch, time});
    expect_values(run(last)(x), {1. / 8, 1. / 20, 1. / 7});
    const auto loss = [&](const Tensor& x) { return sum(last(x)); };
    const std::vector<double> expected{-.125, -.0625, -.03125, -.0125, -.01, 0, -1. / 49, 0, 0};
    expect_values(run(grad(loss))(x), expected);
    if (padding) expect_values(checked_gradient(loss, cast(x, f64)), expected);
  }
}

TEST_P(ReturnnScan, Case38_P2_ZoneoutMixesStatesAndDrawsInTraining) {
  const Dim hidden("hidden", 4);
  const Tensor w = full({hidden}, 0.7, f64);
  const double z = 0.15;
  const auto zoned = [&](const Tensor& x, const Tensor& is_training) {
    const auto [ys, last, dim] = scan(Scan{
        .spatial_dim = x.dim("time"),
        .initial = zeros({batch, hidden}, f64),
        .xs = x,
        .body =
            [&](const Tensor& x, const Tensor& s) {
              const Tensor next = tanh(w * s + x);
              const Tensor mixed = cond(
                  is_training,
                  [&] {
                    return where(bernoulli(z, {batch, hidden}), s, next);
                  },
                  [&] { return next * (1 - z) + s * z; });
              return std::pair{mixed, mixed};
            },
    });
    return ys;
  };
  // Evaluation: (1 - z) new + z old.
  const Tensor ys = run(zoned)(x2(kNan, f64), scalar(false));
  std::vector<double> expected;
  double s[3] = {0, 0, 0};
  const double x[3][3] = {{1, 4, 7}, {2, 5, 0}, {3, 0, 0}};
  for (int t = 0; t < 3; ++t)
    for (int b = 0; b < 3; ++b) {
      s[b] = (1 - z) * std::tanh(0.7 * s[b] + x[t][b]) + z * s[b];
      for (int h = 0; h < 4; ++h) expected.push_back(t + b < 3 ? s[b] : 0);
    }
  expect_values(ys, expected, 1e-12);
  // Training: the same seed gives the same masks in every mode, and each step draws its own.
  manual_seed(5);
  const Tensor first = run(zoned)(x2(kNan, f64), scalar(true));
  manual_seed(5);
  expect_same_bits(zoned(x2(99, f64), scalar(true)), first);
  const auto masks = run([&](const Tensor& x) {
    return scan(Scan{.spatial_dim = x.dim("time"),
                     .xs = x,
                     .body = [&](const Tensor& x) { return bernoulli(0.5, {hidden}) || x > 1e9; }})
        .ys;
  });
  const Dim longer("time", 16);
  const Tensors drawn = unstack(masks(zeros({longer, hidden})), 0);
  int differ = 0;
  for (std::size_t t = 1; t < drawn.size(); ++t)
    differ += values_of(drawn[t]) != values_of(drawn[0]);
  EXPECT_GT(differ, 8);
}

TEST_P(ReturnnScan, Case45_EachIterationDrawsItsOwnNumbers) {
  const auto draws = run([](const Tensor& x) {
    return scan(Scan{.spatial_dim = x.dim("time"),
                     .xs = x,
                     .body = [](const Tensor& x) { return x * 0. + random_uniform(x.dims()); }})
        .ys;
  });
  manual_seed(7);
  const Tensor first = draws(x2(kNan));
  manual_seed(7);
  expect_same_bits(draws(x2(99)), first);
  const std::vector<double> values = values_of(first);
  EXPECT_NE(values[0], values[3]);
  EXPECT_NE(values[3], values[6]);
}

TEST_P(ReturnnScan, Case46_ResidualsGrowLinearlyWithTheLength) {
  const Dim hidden("hidden", 512);
  const auto loss = [&](const Tensor& w, const Tensor& x) {
    return sum(scan(Scan{.spatial_dim = x.dim("time"),
                         .initial = zeros({hidden}),
                         .xs = x,
                         .body =
                             [&](const Tensor& x, const Tensor& s) {
                               return std::pair{None{}, tanh(w * s + x)};
                             }})
                   .state);
  };
  const auto gradient = run(grad(loss));
  const Tensor w = full({hidden}, 0.5);
  // Returns the peak MiB of residuals. scripts/bench growth measures times.
  const auto mebibytes_of = [&](int steps) {
    const Tensor x = full({Dim("time", steps)}, 0.1);
    reset_peak_memory();
    gradient(w, x);
    return static_cast<double>(memory().saved.peak) / (1 << 20);
  };
  gradient(w, full({Dim("time", 5)}, 0.1));
  const double small = mebibytes_of(5000), large = mebibytes_of(10000);
  EXPECT_GT(small, 1);
  EXPECT_LT(large, 2.1 * small);
  EXPECT_LT(large, 150);  // 2 KiB for each state, and a few of them per step
}

TEST_P(ReturnnScan, Case47_OneTraceServesOtherLengths) {
  int bodies = 0;
  const auto f = run([&](const Tensor& x) {
    const auto [ys, last, dim] = scan(Scan{
        .spatial_dim = x.dim("time"),
        .initial = zeros({batch}),
        .xs = x,
        .body =
            [&](const Tensor& x, const Tensor& s) {
              ++bodies;
              return std::pair{s + x, s + x};
            },
    });
    return std::pair{ys, last};
  });
  f(x1(kNan));
  const int recorded = bodies;
  const Dim other("time", tensor({1, 4, 2}, {batch}));
  for (const double p : kPaddings) {
    const Tensor x =
        tensor(std::vector<double>{1, p, p, p, 1, 2, 3, 4, 5, 6, p, p}, {batch, other}, f32);
    const auto [ys, last] = f(x);
    expect_in_order(ys, {batch, other}, {1, 0, 0, 0, 1, 3, 6, 10, 5, 11, 0, 0});
    expect_values(last, {1, 10, 11});
  }
  EXPECT_EQ(f.trace_count(), 1);
  if (!is_eager()) {
    EXPECT_EQ(bodies, recorded);
  }
}

}  // namespace
}  // namespace reel
