// Loops after the tests of JAX, Dr.Jit and RETURNN: values, and the ends of entries.
#include <array>
#include <limits>

#include "reel/tests/gradients.h"
#include "reel/tests/modes.h"

namespace reel {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

using MoreLoops = InEveryMode;
REEL_IN_EVERY_MODE(MoreLoops);

/// The body of a cumulative sum.
constexpr auto kSumUp = [](const Tensor& x, const Tensor& s) { return std::pair{s + x, s + x}; };

TEST_P(MoreLoops, J1_AWhileLoopCountsFromItsStart) {
  const auto count = run([](const Tensor& start) {
    return std::get<1>(while_loop([](Tensor pos, Tensor) { return pos < 10; },
                                  [](Tensor pos, Tensor count) {
                                    return std::tuple{pos + 1, count + 1};
                                  },
                                  std::tuple{start, 0}));
  });
  expect_values(count(scalar(2)), {8});
  expect_values(count(scalar(3)), {7});
}

TEST_P(MoreLoops, J2_StateOfManyMembers) {
  using State = std::vector<Tensor>;
  const auto add_up = run([](const State& s) {
    return while_loop([](const State& s) { return s[0] < 2; },
                      [](const State& s) {
                        State next;
                        for (const Tensor& member : s) next.push_back(member + 1);
                        return next;
                      },
                      s);
  });
  const State last = add_up(State(256, scalar(0)));
  ASSERT_EQ(last.size(), 256u);
  for (const Tensor& member : last) expect_values(member, {2});
}

TEST_P(MoreLoops, J3_InnerTripCountChanges) {
  const auto nested = run([](const Tensor& n) {
    return while_loop([&](Tensor i, Tensor) { return i < n; },
                      [](Tensor i, Tensor total) {
                        const auto [j, sum] = while_loop([&](Tensor j, Tensor) { return j <= i; },
                                                         [](Tensor j, Tensor sum) {
                                                           return std::tuple{j + 1, sum + 1};
                                                         },
                                                         std::tuple{0, total});
                        return std::tuple{i + 1, sum};
                      },
                      std::tuple{0, 0});
  });
  for (const auto& [n, total] : {std::pair{2, 3}, {3, 6}, {4, 10}}) {
    const auto [i, sum] = nested(scalar(n));
    expect_values(i, {double(n)});
    expect_values(sum, {double(total)});
  }
  EXPECT_EQ(nested.trace_count(), 1);
}

TEST_P(MoreLoops, J4_ClosesOverLimitAndIncrement) {
  int calls = 0;
  const auto count = run([&](const Tensor& start, const Tensor& limit, const Tensor& increment) {
    ++calls;
    return std::get<1>(while_loop([&](Tensor pos, Tensor) { return pos < limit; },
                                  [&](Tensor pos, Tensor count) {
                                    return std::tuple{pos + 1, count + increment};
                                  },
                                  std::tuple{start, 0}));
  });
  expect_values(count(scalar(2), scalar(10), scalar(1)), {8});
  expect_values(count(scalar(3), scalar(10), scalar(1)), {7});
  expect_values(count(scalar(3), scalar(5), scalar(10)), {20});
  EXPECT_EQ(count.trace_count(), 1);
  EXPECT_EQ(calls, is_eager() ? 3 : 1);
}

struct Nothing {};
struct WithNothing {
  Tensor i;
  Nothing nothing;
  Tensor sum;
};

TEST_P(MoreLoops, J16_StateWithAnEmptyMember) {
  const auto sum_first = run([](const Tensor& x, const Tensor& n) {
    return while_loop([&](const WithNothing& s) { return s.i < n; },
                      [&](const WithNothing& s) {
                        return WithNothing{s.i + 1, {}, s.sum + gather(x, s.i, 0)};
                      },
                      WithNothing{scalar(0), {}, scalar(0.0)})
        .sum;
  });
  const Tensor x = tensor({1., 2., 4., 8.});
  expect_values(sum_first(x, scalar(3)), {7});
  expect_values(sum_first(x, scalar(0)), {0});
}

TEST_P(MoreLoops, J17_LengthWithoutXs) {
  const auto count = run([](const Tensor& start) {
    const auto [ys, last, dim] =
        scan(Scan{.spatial_dim = 10, .initial = start, .body = [](const Tensor& s) {
                    return std::pair{s, s + 1};
                  }});
    return std::pair{ys, last};
  });
  const auto [ys, last] = count(scalar(0));
  expect_values(ys, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
  expect_values(last, {10});
}

TEST_P(MoreLoops, J18_LengthWithoutYs) {
  const auto count = run([](const Tensor& start) {
    return scan(Scan{.spatial_dim = 20,
                     .initial = start,
                     .body =
                         [](const Tensor& s) {
                           return std::pair{None{}, s + 1};
                         }})
        .state;
  });
  expect_values(count(scalar(0)), {20});
}

TEST_P(MoreLoops, J19_J20_ScansSumUpInBothDirections) {
  const Tensor x = tensor({3, 1, 4, 1, 5, 9});
  for (const bool backwards : {false, true}) {
    const auto sums = run([=](const Tensor& x) {
      return scan(Scan{.initial = scalar(0), .xs = x, .body = kSumUp, .reverse = backwards}).ys;
    });
    if (backwards)
      expect_values(sums(x), {23, 20, 19, 15, 14, 9});
    else
      expect_values(sums(x), {3, 4, 8, 9, 14, 23});
  }
}

TEST_P(MoreLoops, J24_AScanOverNothingReturnsItsInitialState) {
  const auto sums = [](const Tensor& s, const Tensor& x) {
    const auto [ys, last, dim] = scan(Scan{.initial = s, .xs = x, .body = kSumUp});
    return std::pair{last, ys};
  };
  const auto [last, ys] = run(sums)(scalar(0.0), zeros({0}));
  expect_values(last, {0});
  EXPECT_EQ(str(ys.type()), "f32[0]");
  const auto loss = [sums](const Tensor& s, const Tensor& x) {
    const auto [last, ys] = sums(s, x);
    return last + sum(ys);
  };
  expect_values(run(grad(loss))(scalar(0.0), zeros({0})), {1});
}

TEST_P(MoreLoops, J25_MapOverNumbersAndOverNothing) {
  const auto squares =
      run([](const Tensor& x) { return map([](const Tensor& x) { return x * x; }, x); });
  expect_values(squares(range(10)), {0, 1, 4, 9, 16, 25, 36, 49, 64, 81});
  const Tensor none = squares(range(0));
  EXPECT_EQ(str(none.type()), "i32[0]");
}

TEST_P(MoreLoops, J46_PrintsOncePerIterationUnderAGradient) {
  const auto cube = run(grad([](const Tensor& v) {
    return while_loop([](Tensor v) { return v < 100; }, [](Tensor v) { return print(v, "v") * v; },
                      v);
  }));
  testing::internal::CaptureStdout();
  expect_values(cube(scalar(2.0)), {8 * 128});
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "v: f32[] 2.0\nv: f32[] 4.0\nv: f32[] 16.0\n");
}

TEST_P(MoreLoops, D1_EntriesFinishOneByOne) {
  struct State {
    Tensor i, z;
  };
  const Dim lane("lane", 7);
  const auto f = run([](const Tensor& i) {
    return scan(Scan{.cond_dims = i.dims(),
                     .initial = State{i, zeros_like(i)},
                     .cond = [](const State& s) { return s.i < 5; },
                     .body =
                         [](const State& s) {
                           return std::pair{None{}, State{s.i + 1, s.i + 1 + 4}};
                         }})
        .state;
  });
  const State last = f(range(lane));
  expect_values(last.i, {5, 5, 5, 5, 5, 5, 6});
  expect_values(last.z, {9, 9, 9, 9, 9, 0, 0});
}

TEST_P(MoreLoops, D6_UnchangedStateKeepsItsStorage) {
  const auto f = run([](const Tensor& n, const Tensor& kept) {
    return fori_loop(
               0, n,
               [](const Tensor& i, const std::pair<Tensor, Tensor>& s) {
                 return std::pair{s.first + sum(s.second) * cast(i, f32), s.second};
               },
               std::pair{scalar(1.0), kept})
        .second;
  });
  const Tensor kept = tensor({1., 2., 3.});
  for (const int n : {0, 3}) EXPECT_EQ(f(scalar(n), kept).data<float>(), kept.data<float>());
  // With a gradient as well: its cotangent passes through unchanged.
  const auto g = run(value_and_grad([](const Tensor& kept) {
    const auto last = fori_loop(
        0, 3, [](const Tensor&, const Tensor& s) { return s; }, kept);
    return std::pair{sum(last * tensor({4., 5., 6.})), last};
  }));
  const auto [value, gradient] = g(kept);
  EXPECT_EQ(value.second.data<float>(), kept.data<float>());
  expect_values(gradient, {4, 5, 6});
}

TEST_P(MoreLoops, D7_OneTensorTwiceInTheState) {
  using State = std::array<Tensor, 3>;
  const auto f = [](const Tensor& x) {
    const State last = fori_loop(
        0, 3,
        [](const Tensor&, const State& s) {
          const Tensor u = s[0] * s[1] + s[2];
          return State{u, u, s[0]};
        },
        State{x, x, x});
    return last[0] + 2.0 * last[1] + 3.0 * last[2];
  };
  const auto by_hand = [](const Tensor& x) {
    const Tensor a = x * x + x, b = a * a + x, c = b * b + a;
    return 3.0 * c + 3.0 * b;
  };
  const Tensor x = scalar(0.7, f64);
  expect_all_close(run(f)(x), by_hand(x), 1e-14);
  expect_all_close(run(grad(f))(x), grad(by_hand)(x), 1e-13);
  expect_all_close(run(grad(grad(f)))(x), grad(grad(by_hand))(x), 1e-12);
}

TEST_P(MoreLoops, D15_EntriesThatNeverRunReturnTheInitialState) {
  const Dim lane("lane", 4);
  const auto f = [](const Tensor& y) {
    const auto [ys, last, dim] = scan(Scan{.cond_dims = y.dims(),
                                           .initial = y,
                                           .cond = [](const Tensor& y) { return y < 0.0; },
                                           .body =
                                               [](const Tensor& y) {
                                                 return std::pair{y, log(y - 9.0)};
                                               }});
    return std::pair{sum(last * tensor({1., 2., 3., 4.}, {y.dims()[0]})) + sum(ys), last};
  };
  const Tensor y = tensor({1., 2., 3., 4.}, {lane});
  const auto [value, gradient] = run(value_and_grad(f))(y);
  expect_values(value.second, {1, 2, 3, 4});
  expect_values(gradient, {1, 2, 3, 4});
}

TEST_P(MoreLoops, T3_TwoScansOfOneLength) {
  const auto independent = run([](const Tensor& x, const Tensor& y) {
    const auto a = scan(Scan{.initial = scalar(0.0), .xs = x, .body = kSumUp});
    const auto b = scan(Scan{.initial = scalar(1.0), .xs = y, .body = [](Tensor y, Tensor p) {
                               return std::pair{p * y, p * y};
                             }});
    return std::tuple{a.ys, b.ys, a.state, b.state};
  });
  const auto [sums, products, s, p] = independent(tensor({1., 2., 3.}), tensor({4., 5., 6.}));
  expect_values(sums, {1, 3, 6});
  expect_values(products, {4, 20, 120});
  expect_values(s, {6});
  expect_values(p, {120});
  // The second scan takes the first one's last state and all its outputs.
  const auto feeding = run([](const Tensor& x) {
    const auto a = scan(Scan{.initial = scalar(0.0), .xs = x, .body = kSumUp});
    const auto b = scan(Scan{.initial = a.state, .xs = a.ys, .body = kSumUp});
    return std::pair{b.ys, b.state};
  });
  const auto [ys, last] = feeding(tensor({1., 2., 3.}));
  expect_values(ys, {7, 10, 16});
  expect_values(last, {16});
}

TEST_P(MoreLoops, R1_EachEntryFinishesByTheCondition) {
  const Dim batch("batch", 4);
  for (const bool before : {true, false}) {
    const auto count_to = run([=](const Tensor& seq_len) {
      const auto [ys, last, dim] = scan(Scan{.spatial_dim = Dim("time"),
                                             .cond_dims = seq_len.dims(),
                                             .cond_before_body = before,
                                             .initial = zeros_like(seq_len),
                                             .cond = [&](const Tensor& i) { return i < seq_len; },
                                             .body =
                                                 [](const Tensor& i) {
                                                   return std::pair{i + 1, i + 1};
                                                 }});
      return std::tuple{ys, last, dim.lengths()};
    });
    const auto [ys, last, lengths] = count_to(tensor({2, 0, 3, 1}, {batch}));
    // With the condition after the body, every entry runs at least once.
    const double least = before ? 0 : 1;
    expect_values(lengths, {2, least, 3, 1});
    expect_values(last, {2, least, 3, 1});
    expect_values(ys, {1, least, 1, 1, 2, 0, 2, 0, 0, 0, 3, 0});
    if (!before) continue;
    const auto [none, stays, zero] = count_to(zeros({batch}, i32));
    EXPECT_EQ(none.numel(), 0);
    expect_values(stays, {0, 0, 0, 0});
    expect_values(zero, {0, 0, 0, 0});
  }
}

TEST_P(MoreLoops, R3_PaddingOfXsChangesNoBits) {
  const Dim batch("batch", 3), time("time", tensor({3, 1, 0}, {batch}));
  using In = std::pair<Tensor, Tensor>;
  const auto loss = [](const In& in) {
    const auto [ys, last, dim] = scan(Scan{.spatial_dim = in.first.dim("time"),
                                           .initial = zeros({in.first.dim("batch")}, f64),
                                           .xs = in.first,
                                           .body = [&](const Tensor& x, const Tensor& s) {
                                             const Tensor next = tanh(s * in.second) + x * x;
                                             return std::pair{next * in.second, next};
                                           }});
    return std::pair{sum(ys) + sum(square(last)), std::pair{ys, last}};
  };
  const auto f = run(value_and_grad(loss));
  const auto with_padding = [&](double p) {
    return f(In{tensor({.1, .2, .3, .4, p, p, p, p, p}, {batch, time}, f64), scalar(.8, f64)});
  };
  const auto [value, gradient] = with_padding(0);
  for (const double padding : {1e30, -1e300, kNan, std::numeric_limits<double>::infinity()}) {
    const auto [other_value, other_gradient] = with_padding(padding);
    expect_same_bits(other_value.first, value.first);
    expect_same_bits(other_value.second.first, value.second.first);
    expect_same_bits(other_value.second.second, value.second.second);
    expect_same_bits(mask_padding(other_gradient.first), mask_padding(gradient.first));
    expect_same_bits(other_gradient.second, gradient.second);
  }
  expect_values(value.second.second, {std::tanh(.8 * (std::tanh(.8 * .01) + .04)) + .09, .16, 0},
                1e-12);
}

TEST_P(MoreLoops, R4_BoundEndsALoopWithoutEnd) {
  const auto endless = run([](const Tensor& start, const Tensor& most) {
    const auto [ys, last, dim] = scan(Scan{.cond_dims = {},
                                           .initial = start,
                                           .cond = [](const Tensor& s) { return s > -1; },
                                           .body =
                                               [](const Tensor& s) {
                                                 return std::pair{s, s + 1};
                                               },
                                           .max_seq_len = most});
    return std::tuple{ys, last, dim.lengths()};
  });
  const auto [ys, last, length] = endless(scalar(5), scalar(4));
  expect_values(ys, {5, 6, 7, 8});
  expect_values(last, {9});
  expect_values(length, {4});
}

TEST_P(MoreLoops, L1_AMillionIterationsWithAGradient) {
  const auto f = [](const Tensor& x) {
    return std::get<1>(while_loop([](Tensor i, Tensor) { return i < 1000000; },
                                  [&](Tensor i, Tensor s) {
                                    return std::tuple{i + 1, s * 0.999 + x};
                                  },
                                  std::tuple{0, x}));
  };
  expect_values(run(f)(scalar(1.0, f64)), {1000}, 1e-9);
  expect_values(run(grad(f))(scalar(1.0, f64)), {1000}, 1e-9);
}

// An iteration has three ops, and the gradient reads the state: 8 MB in all.
TEST_P(MoreLoops, L1_AMillionIterationsUnderABudget) {
  constexpr int kSteps = 1'000'000;
  double expected = 1, s = 1;
  for (int k = 0; k < kSteps; ++k) {
    expected = expected * (0.999 - 2e-7 * s) + 1;
    s = s * (0.999 - 1e-7 * s) + 1;
  }
  for (const std::int64_t budget : {64 << 20, 64 << 10}) {
    if (budget < 1 << 20 && GetParam() != RunMode::plan) continue;  // takes twice as long
    const auto f = [budget](const Tensor& x) {
      return std::get<1>(while_loop([](Tensor i, Tensor) { return i < kSteps; },
                                    [&](Tensor i, Tensor s) {
                                      return std::tuple{i + 1, s * (0.999 - 1e-7 * s) + x};
                                    },
                                    std::tuple{0, x}, {.checkpoint = Checkpoint::budget(budget)}));
    };
    const auto gradient = run(grad(f));
    const std::int64_t before = memory().all.current;
    reset_peak_memory();
    expect_values(gradient(scalar(1.0, f64)), {expected}, 1e-9);
    EXPECT_LE(memory().all.peak - before, budget);
  }
}

}  // namespace
}  // namespace reel
