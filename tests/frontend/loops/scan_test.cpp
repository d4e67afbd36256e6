// scan in every mode: plain tensors, arrays, bits. tests/cases/ has most of its contract.
#include <limits>

#include "reel/tests/modes.h"

namespace reel {
namespace {

using ScanTest = InEveryMode;
REEL_IN_EVERY_MODE(ScanTest);

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

class Ragged {
 public:
  const Dim batch{"batch", 3};
  const Dim time{"time", tensor({3, 2, 1}, {batch})};
  Tensor x() const { return tensor({1., 2., 3., 4., 5., kNan, 7., kNan, kNan}, {batch, time}); }
};

TEST_P(ScanTest,
       FinishedEntriesMakeNoNaNInGradients) {  // with a shared parameter and a captured tensor
  const Ragged r;
  const Tensor scale = tensor({1., 2., 3.}, {r.batch});
  const auto loss = [&](std::pair<Tensor, Tensor> xw) {
    return sum(scan(Scan{
                        .spatial_dim = r.time,
                        .initial = ones({r.batch}),
                        .xs = xw.first,
                        .body =
                            [&](Tensor x, Tensor s) {
                              return std::pair{None{}, s * xw.second / (x * scale)};
                            },
                    })
                   .state,
               r.batch);
  };
  const Tensor holes = tensor({1., 2., 4., 4., 5., 0., 7., 0., 0.}, {r.batch, r.time});
  const auto [dx, dw] = run(grad(loss))(std::pair{holes, scalar(1.0)});
  expect_values(dx, {-.125, -.0625, -.03125, -.0125 / 4, -.01 / 4, 0, -1. / 49 / 3, 0, 0});
  expect_values(dw, {3 * .125 + 2 * .05 / 4 + 1. / 7 / 3});
}

TEST_P(ScanTest, PlainTensorsAlongTheFirstAxis) {
  const auto f = run([](Tensor x) {
    auto [ys, last, dim] = scan(Scan{.initial = 0.0, .xs = x, .body = [](Tensor x, Tensor s) {
                                       return std::pair{s + x, s + x};
                                     }});
    return std::tuple{ys, last};
  });
  const auto [sums, total] = f(tensor({3., 1., 4., 1., 5., 9.}));
  expect_values(sums, {3, 4, 8, 9, 14, 23});
  expect_values(total, {23});
  const auto product = [](Tensor x) {
    return scan(Scan{.initial = 1.0,
                     .xs = x,
                     .body =
                         [](Tensor x, Tensor s) {
                           return std::pair{None{}, s * x};
                         }})
        .state;
  };
  expect_values(run(grad(product))(tensor({2., 3., 4.})), {12, 8, 6});
  expect_values(
      run(grad([&](Tensor x) { return sum(square(grad(product)(x))); }))(tensor({2., 3., 4.})),
      {2 * (8 * 4 + 6 * 3), 2 * (12 * 4 + 6 * 2), 2 * (12 * 3 + 8 * 2)});
}

TEST_P(ScanTest, TensorArraysInsteadOfAStack) {
  const Ragged r;
  const auto f = [&](Tensor x) {
    TensorArray array = scan(Scan{
                                 .spatial_dim = r.time,
                                 .initial = zeros({r.batch}),
                                 .xs = x,
                                 .body =
                                     [](Tensor x, Tensor s) {
                                       return std::pair{s + x, s + x};
                                     },
                                 .return_tensor_arrays = std::true_type{},
                             })
                            .ys;
    return sum(array[-1] + array[1], r.batch);
  };
  expect_values(run(f)(r.x()), {6 + 3 + 9});
  expect_values(run(grad(f))(r.x()), {2, 2, 1, 1, 1, 0, 0, 0, 0});
}

TEST_P(ScanTest, OneTraceServesAllLengthsAndPaddingNeverMatters) {
  const Dim batch("batch", 3);
  const auto energy = [&](Tensor w, Tensor frames) {
    auto [hs, last, dim] = scan(Scan{
        .spatial_dim = frames.dim("time"),
        .initial = zeros({batch}),
        .xs = frames,
        .body =
            [&](Tensor x, Tensor h) {
              Tensor next = tanh(w * h + x);
              return std::pair{next, next};
            },
    });
    return mean(square(hs), {batch, dim}) + sum(last, batch);
  };
  const auto both = run(value_and_grad(energy));
  for (const std::vector<int>& lengths : {std::vector<int>{4, 2, 1}, {7, 7, 3}, {1, 0, 1}}) {
    const Dim time("time", tensor(lengths, {batch}));
    const Tensor x = random_normal({batch, time});
    const Tensor dirty = where(mask(time), x, scalar(kNan));
    const auto [value, gradient] = both(scalar(0.5), x);
    const auto [dirty_value, dirty_gradient] = both(scalar(0.5), dirty);
    expect_same_bits(dirty_value, value);
    expect_same_bits(dirty_gradient, gradient);
    // One entry at a time gives the same.
    double total = 0, count = 0, last = 0;
    for (int b = 0; b < 3; ++b) {
      double h = 0;
      for (int t = 0; t < lengths[b]; ++t) {
        h = std::tanh(0.5 * h + values_of(x)[b * time.size() + t]);
        total += h * h;
        ++count;
      }
      last += h;
    }
    expect_values(value, {total / count + last});
  }
  EXPECT_EQ(both.trace_count(), 1);
}

TEST(ScanBits, StateThatIsUsedTwiceAndStackedHasTheSameGradientTraced) {
  const Dim batch("batch", 300), time("time", 3);
  const Tensor x = random_normal({time, batch}), w = random_normal({batch});
  const auto loss = [&](const Tensor& w) {
    const auto step = [&](const Tensor& x, const Tensor& h) {
      const Tensor next = sin(h) * w + cos(h) + x;
      return std::pair{next, next};
    };
    const auto result = scan(Scan{.spatial_dim = time, .initial = w, .xs = x, .body = step});
    return sum(square(result.ys)) + sum(result.state * w) + sum(sin(result.state));
  };
  expect_same_bits(jit(grad(loss))(w), grad(loss)(w));
}

// ---- Named dims in a body over plain steps ------------------------------------------------------

TEST_P(ScanTest, NamedTensorsInTheBodyOfAMapOverPlainTensors) {
  const Dim in("in", 3), out("out", 2);
  const Tensor w = tensor({.1, .2, .3, .4, .5, .6}, {in, out}, f64);
  const auto products = [&](const Tensor& w, const Tensor& x) {
    return sum(map(
        [&](const Tensor& x) {
          const Tensor y = matmul(w, w * x, in);
          return sum(softmax(y, {out}) * y) + sum(gather(w, scalar(1), in));
        },
        x));
  };
  const Tensor x = tensor({1., 2., 3.}, Dims{}, f64);
  const auto f = [&](const std::pair<Tensor, Tensor>& p) { return products(p.first, p.second); };
  const auto [value, gradient] = run(value_and_grad(f))(std::pair{w, x});
  double expected = 0;
  for (const double step : {1., 2., 3.})
    expected += products(w, tensor({step}, Dims{}, f64)).item<double>();
  expect_values(value, {expected}, 1e-12);
  const auto at = [&](double by) { return products(w, x + by).item<double>(); };
  expect_values(sum(gradient.second), {(at(1e-6) - at(-1e-6)) / 2e-6}, 1e-6);
  const auto wider = [&](double by) { return products(w + by, x).item<double>(); };
  expect_values(sum(gradient.first), {(wider(1e-6) - wider(-1e-6)) / 2e-6}, 1e-6);
}

TEST_P(ScanTest, NamedStateOverPlainSteps) {
  const Dim z("z", 2);
  const auto f = [&](const Tensor& x) {
    const auto [ys, last, dim] =
        scan(Scan{.initial = ones({z}), .xs = x, .body = [](const Tensor& x, const Tensor& s) {
                    return std::pair{sum(s), s * x};
                  }});
    return std::pair{ys, sum(last)};
  };
  const Tensor x = tensor({2., 3., 4.});
  const auto [ys, last] = run(f)(x);
  expect_values(ys, {2, 4, 12});
  expect_values(last, {48});
  const auto gradient = run(grad([&](const Tensor& x) { return f(x).second + sum(f(x).first); }));
  expect_values(gradient(x), {24 + 2 + 6, 16 + 4, 12});
}

TEST_P(ScanTest, YsAreNamedAsTheDimTheyAreStackedAlong) {
  const Dim b("b", 2), time("time", 3);
  EXPECT_EQ(message_of<ShapeError>([&] {
              run([&](const Tensor& x) {
                return map([&](const Tensor& v) { return v * ones({b}); }, x, {.name = "m"});
              })(ones({3}));
            }),
            "map \"m\": ys are stacked along a dim without a name, but not all y have plain "
            "sizes\n  y: f32[b=2], whose dims are named\nName spatial_dim and the scanned axes, as "
            "in Dim(\"time\", 3).");
  EXPECT_EQ(message_of<ShapeError>([&] {
              run([&](const Tensor& x) {
                const auto body = [&](const Tensor& s) {
                  return std::pair{std::pair{s, s * ones({2})}, s + 1.0};
                };
                return scan(Scan{.spatial_dim = time, .initial = x, .body = body}).ys.second;
              })(scalar(1.0));
            }),
            "scan \"scan\": ys are stacked along a dim with a name, time=3, but not all y have "
            "named dims\n  y.1: f32[2], whose dims have no names\nGive every axis of y a Dim with "
            "a name, or let xs, state and spatial_dim have none.");
}

TEST_P(ScanTest, YDecidesWhetherTheStackOfAScalarStateIsNamed) {
  const Dim z("z", 2);
  const auto decode = [](const Tensor& y) {
    return [y](const Tensor& token) {
      const auto [ys, last, dim] = scan(Scan{.cond_dims = {},
                                             .initial = token,
                                             .cond = [](const Tensor& s) { return s < 3.0; },
                                             .body =
                                                 [&](const Tensor& s) {
                                                   return std::pair{s * y, s + 1.0};
                                                 },
                                             .max_seq_len = 9});
      return ys;
    };
  };
  const Tensor plain = run(decode(ones({2})))(scalar(1.0)),
               named = run(decode(ones({z})))(scalar(1.0)),
               none = run(decode(ones({2})))(scalar(5.0));
  EXPECT_EQ(plain.dims(), (Dims{2, 2}));
  expect_values(plain, {1, 1, 2, 2});
  EXPECT_TRUE(named.type().is_named());
  expect_values(named, {1, 1, 2, 2});
  EXPECT_EQ(none.dims(), (Dims{0, 2}));
  EXPECT_EQ(run(decode(scalar(1.0)))(scalar(1.0)).dims()[0].name(), "scan_dim");
  expect_values(run(grad([&](const Tensor& x) { return sum(decode(ones({2}))(x)); }))(scalar(1.0)),
                {4});
}

TEST_P(ScanTest, ASizeOfYThatAnIterationChangesIsAnErrorThatSaysWhich) {
  const auto f = [](const Tensor& x) {
    const auto grown = [&](const Tensor& times) {
      return while_loop([](const Tensor&) { return true; },
                        [](const Tensor& m) {
                          return concat({m, m}, 0);
                        },
                        x,
                        {.shape_invariants = {PartialShape{unknown}}, .maximum_iterations = times});
    };
    return map(grown, range(3), {.name = "grow"});
  };
  const std::string text = message_of<ShapeError>([&] { run(f)(ones({1})); });
  EXPECT_NE(text.find("map \"grow\""), std::string::npos) << text;
  EXPECT_NE(text.find("iteration 1"), std::string::npos) << text;
  EXPECT_NE(text.find("f32[2]"), std::string::npos) << text;
  EXPECT_NE(text.find("f32[1]"), std::string::npos) << text;
}

TEST_P(ScanTest, OneConditionForEntriesWithLengthsOfTheirOwn) {
  const Ragged r;
  const auto f = [&](const Tensor& x) {
    return scan(Scan{.spatial_dim = r.time,
                     .cond_dims = {},
                     .initial = zeros({r.batch}),
                     .xs = x,
                     .cond = [](const Tensor& s) { return sum(s) < 12.0; },
                     .body =
                         [](const Tensor& x, const Tensor& s) {
                           return std::pair{None{}, s + x};
                         }})
        .state;
  };
  // The sum 1 + 4 + 7 = 12 ends the loop for all entries.
  expect_values(run(f)(r.x()), {1, 4, 7});
  const auto without = [&](const Tensor& x) {
    return scan(Scan{.spatial_dim = r.time,
                     .initial = zeros({r.batch}),
                     .xs = x,
                     .cond = [](const Tensor& s) { return sum(s) < 12.0; },
                     .body =
                         [](const Tensor& x, const Tensor& s) {
                           return std::pair{None{}, s + x};
                         }})
        .state;
  };
  EXPECT_EQ(
      message_of<ArgumentError>([&] { run(without)(r.x()); }),
      "scan \"scan\": cond returns boolean[], but entries end over [batch=3]; return "
      "boolean[batch=3], or say in cond_dims which dims it has: {} for one condition for all");
  const auto alone = [&](const Tensor& x) {
    return scan(Scan{.spatial_dim = r.time,
                     .cond_dims = {},
                     .initial = zeros({r.batch}),
                     .xs = x,
                     .body =
                         [](const Tensor& x, const Tensor& s) {
                           return std::pair{None{}, s + x};
                         }})
        .state;
  };
  EXPECT_EQ(message_of<ArgumentError>([&] { run(alone)(r.x()); }),
            "scan \"scan\": cond_dims is given, but no cond; give both, or neither");
}

TEST_P(ScanTest, SharedStateKeepsElementsThatNoRunningEntryShows) {
  const Dim batch("batch", 3);
  const Dim time("time", tensor({0, 2, 1}, {batch})), other("other", tensor({1, 1, 3}, {batch}));
  const Tensor x = tensor({.3, .2}, {time}, f64), steps = zeros({batch, other}, f64);
  const auto f = [&](const Tensor& x, double factor) {
    const auto body = [factor](const Tensor& y, const Tensor& s) {
      return std::pair{None{}, s * factor + mean(y) * 0.0};
    };
    return scan(Scan{.spatial_dim = other, .initial = x, .xs = steps, .body = body}).state;
  };
  const auto twice = [&](const Tensor& x) { return f(x, 2.0); };
  // From the second step on only entry 2 is running, and its part has one element.
  expect_values(run(twice)(x), {8 * .3, 2 * .2}, 1e-12);
  expect_values(run(grad([&](const Tensor& x) { return sum(square(twice(x))) * 0.5; }))(x),
                {64 * .3, 4 * .2}, 1e-12);
  expect_values(run([&](const Tensor& x) { return f(x, 1.0); })(x), {.3, .2}, 1e-12);
}

TEST_P(ScanTest, CountsThatAreNone) {
  const auto count = [](const IterationCount& most) {
    return [most](const Tensor& x) {
      return scan(Scan{.cond_dims = {},
                       .initial = x,
                       .cond = [](const Tensor& s) { return s < 9; },
                       .body =
                           [](const Tensor& s) {
                             return std::pair{None{}, s + 1};
                           },
                       .max_seq_len = most})
          .state;
    };
  };
  expect_values(run(count(std::numeric_limits<std::size_t>::max()))(scalar(2)), {9});
  EXPECT_EQ(message_of<ArgumentError>([&] { run(count(Tensor()))(scalar(2)); }),
            "scan \"scan\": max_seq_len is an empty Tensor; give a number, or leave it out");
  EXPECT_EQ(message_of<ArgumentError>([&] {
              run([](const Tensor& x) {
                return fori_loop(
                    0, Tensor(), [](const Tensor&, const Tensor& s) { return s + 1; }, x);
              })(scalar(2));
            }),
            "fori_loop \"fori_loop\": upper is an empty Tensor; give a number, or leave it out");
}

}  // namespace
}  // namespace reel
