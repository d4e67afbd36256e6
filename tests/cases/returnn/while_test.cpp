// while_loop as RETURNN's users need it: rows 1 to 14.
#include "reel/tests/cases/returnn/returnn.h"

namespace reel {
namespace {

using ReturnnWhile = ReturnnCase;
REEL_IN_EVERY_MODE(ReturnnWhile);

TEST_P(ReturnnWhile, Case1_LoopCountsToTheLongestEntry) {
  const auto count = run([](const Tensor& x) {
    const Tensor extent = max(x.dim("time").lengths(), 0);
    return while_loop([&](const Tensor& i) { return i < extent; },
                      [](const Tensor& i) { return i + 1; }, 0);
  });
  for (const double padding : kPaddings) expect_values(count(x1(padding)), {3});
}

TEST_P(ReturnnWhile, Case2_LoopIteratesTwoStates) {
  const auto decay = [](const Tensor& x) {
    return std::get<1>(while_loop([](const Tensor& i, const Tensor&) { return i < 2; },
                                  [](const Tensor& i, const Tensor& s) {
                                    return std::tuple{i + 1, s * 0.9};
                                  },
                                  std::tuple{0, x}));
  };
  const Tensor x = tensor({1., 10.}, {}, f64);
  expect_values(run(decay)(x), {0.81, 8.1}, 1e-12);
  expect_values(checked_gradient([&](const Tensor& x) { return sum(decay(x)); }, x), {.81, .81},
                1e-12);
}

TEST_P(ReturnnWhile, Case4_LoopWithoutIterationsReturnsTheInitialState) {
  int bodies = 0;
  const auto never = [&](const Tensor& s) {
    return while_loop([](const Tensor& s) { return s < 0; },
                      [&](const Tensor& s) { return ++bodies, s * s; }, s);
  };
  expect_values(run(never)(scalar(7.0)), {7});
  expect_values(run(grad(never))(scalar(7.0)), {1});
  if (is_eager()) {
    EXPECT_EQ(bodies, 0);
  }
}

TEST_P(ReturnnWhile, Case5_PowerByALoopHasThreeDerivatives) {
  const auto cube = [](const Tensor& w) {
    const auto [i, s] = while_loop([](const Tensor& i, const Tensor&) { return i < 3; },
                                   [&](const Tensor& i, const Tensor& s) {
                                     return std::tuple{i + 1, s * w};
                                   },
                                   std::tuple{scalar(0), ones({}, w.dtype())});
    return s;
  };
  const Tensor w = scalar(2.0, f64);
  expect_values(run(cube)(w), {8});
  expect_values(checked_gradient(cube, w), {12}, 1e-12);
  expect_values(run(grad(grad(cube)))(w), {12}, 1e-12);
  expect_values(run(grad(grad(grad(cube))))(w), {6}, 1e-12);
}

TEST_P(ReturnnWhile, Case6_ConditionRunsOnceMoreThanTheBody) {
  int conds = 0, bodies = 0;
  run([&](const Tensor& s) {
    return while_loop([&](const Tensor& s) { return ++conds, s < 3; },
                      [&](const Tensor& s) { return ++bodies, s + 1; }, s);
  })(scalar(0));
  EXPECT_EQ(conds, is_eager() ? 4 : 1);
  EXPECT_EQ(bodies, is_eager() ? 3 : 1);
}

TEST_P(ReturnnWhile, Case7_OneTraceServesAllTripCounts) {
  int conds = 0, bodies = 0;
  const auto counted = run([&](const Tensor& n) {
    return while_loop([&](const Tensor& i) { return ++conds, i < n; },
                      [&](const Tensor& i) { return ++bodies, i + 1; }, 0);
  });
  for (const int n : {0, 3, 5}) expect_values(counted(scalar(n)), {double(n)});
  EXPECT_EQ(counted.trace_count(), 1);
  EXPECT_EQ(conds, is_eager() ? 1 + 4 + 6 : 1);
  EXPECT_EQ(bodies, is_eager() ? 0 + 3 + 5 : 1);
}

TEST_P(ReturnnWhile, Case8_MapStatesMatchByKey) {
  using Dict = std::map<std::string, Tensor>;
  const auto loop = run([](const Tensor& a, const Tensor& b) {
    return while_loop([](const Dict& s) { return s.at("a") < 3.0; },
                      [](const Dict& s) {
                        return Dict{{"b", s.at("b") * 2.0}, {"a", s.at("a") + 1.0}};
                      },
                      Dict{{"a", a}, {"b", b}});
  });
  const Dict last = loop(scalar(0.0), scalar(1.0));
  expect_values(last.at("a"), {3});
  expect_values(last.at("b"), {8});
}

TEST_P(ReturnnWhile, Case9_StateMayHoldNone) {
  const auto loop = run([](const Tensor& i) {
    return while_loop([](const Tensor& i, const None&) { return i < 3; },
                      [](const Tensor& i, const None& none) {
                        return std::tuple{i + 1, none};
                      },
                      std::tuple{i, None{}});
  });
  const auto [last, none] = loop(scalar(0));
  expect_values(last, {3});
  static_assert(std::is_same_v<std::decay_t<decltype(none)>, None>);
}

TEST_P(ReturnnWhile, Case14_CapturedParameterHasItsGradient) {
  const auto total = [](const std::pair<Tensor, Tensor>& wx) {
    const auto [w, x] = wx;
    const auto [i, s] = while_loop([](const Tensor& i, const Tensor&) { return i < 3; },
                                   [&, w = w, x = x](const Tensor& i, const Tensor& s) {
                                     return std::tuple{i + 1, s + w * x};
                                   },
                                   std::tuple{scalar(0), zeros_like(x)});
    return sum(s);
  };
  const std::pair at{tensor({2., 3.}, {}, f64), tensor({5., 7.}, {}, f64)};
  const auto [dw, dx] = checked_gradient(total, at);
  expect_values(dw, {15, 21}, 1e-12);
  expect_values(dx, {6, 9}, 1e-12);
}

// Further requirements beside the rows.

TEST_P(ReturnnWhile, SectionOneStateMayBeOneLeafOrNested) {
  struct Inner {
    std::vector<Tensor> layers;
    std::optional<Tensor> extra;
    None nothing;
  };
  struct State {
    std::array<Tensor, 2> pair{};
    Inner inner;
    int tag = 0;
  };
  const auto loop = run([](const Tensor& x) {
    return while_loop([](const State& s) { return sum(s.pair[0]) < 10.0; },
                      [](const State& s) {
                        State next = s;
                        next.pair = {s.pair[0] + s.pair[1], s.pair[1]};
                        for (Tensor& layer : next.inner.layers) layer = layer * 2.0;
                        return next;
                      },
                      State{{x, x}, {{x, x}, x, {}}, 5});
  });
  const State last = loop(tensor({1., 2.}));
  expect_values(last.pair[0], {4, 8});
  expect_values(last.inner.layers[1], {8, 16});
  expect_values(*last.inner.extra, {1, 2});
  EXPECT_EQ(last.tag, 5);
}

// §1.6: random numbers are drawn anew in every iteration.
TEST_P(ReturnnWhile, SectionOneRandomOpsDrawAnewInEveryIteration) {
  const auto draws = run([](const Tensor& i) {
    const auto [n, array] = while_loop([](const Tensor& i, const TensorArray&) { return i < 3; },
                                       [](const Tensor& i, const TensorArray& a) {
                                         return std::tuple{i + 1, a.push_back(random_uniform({}))};
                                       },
                                       std::tuple{i, TensorArray({f32, {}})});
    return array.stack();
  });
  const std::vector<double> values = values_of(draws(scalar(0)));
  EXPECT_NE(values[0], values[1]);
  EXPECT_NE(values[1], values[2]);
}

// D9: a body may return dims in another order; they are put back into the order on entry.
TEST_P(ReturnnWhile, D9_DimsOfAStateKeepTheirOrder) {
  const Dim feature("feature", 2);
  const auto loop = run([&](const Tensor& s) {
    return std::get<1>(while_loop([](const Tensor& i, const Tensor&) { return i < 3; },
                                  [&](const Tensor& i, const Tensor& s) {
                                    EXPECT_EQ(s.dims(), (Dims{batch, feature}));
                                    return std::tuple{i + 1, transpose(s * 2.0, {feature, batch})};
                                  },
                                  std::tuple{scalar(0), s}));
  });
  const Tensor last = loop(tensor({1., 2., 3., 4., 5., 6.}, {batch, feature}));
  EXPECT_EQ(last.dims(), (Dims{batch, feature}));
  expect_values(last, {8, 16, 24, 32, 40, 48});
}

}  // namespace
}  // namespace reel
