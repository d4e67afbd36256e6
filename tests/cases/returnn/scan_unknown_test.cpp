// scan of unknown length, as RETURNN's users need it: rows 48 to 72.
#include "reel/tests/cases/returnn/returnn.h"

namespace reel {
namespace {

using ReturnnScanUnknown = ReturnnCase;
REEL_IN_EVERY_MODE(ReturnnScanUnknown);

/// Counts from 0 by 1 while below each entry's target, and emits 10 times the count.
struct Counted {
  Tensor ys, last, sizes;
};
Counted count_to(const Tensor& targets, bool before = true,
                 std::optional<IterationCount> most = {}) {
  const Dim batch = targets.dim("batch");
  const auto [ys, last, dim] = scan(Scan{
      .cond_dims = {batch},
      .cond_before_body = before,
      .initial = zeros({batch}, i32),
      .cond = [&](const Tensor& s) { return s < targets; },
      .body =
          [](const Tensor& s) {
            return std::pair{s * 10, s + 1};
          },
      .max_seq_len = most,
  });
  return {transpose(ys, {dim, batch}), last, dim.lengths()};
}

TEST_P(ReturnnScanUnknown, Case48_D1_EntriesFinishByAConditionBeforeTheBody) {
  const auto [ys, last, sizes] =
      run([](const Tensor& targets) { return count_to(targets); })(tensor({0, 1, 3}, {batch}));
  expect_values(ys, {0, 0, 0, 0, 0, 10, 0, 0, 20});
  expect_values(last, {0, 1, 3});
  expect_values(sizes, {0, 1, 3});
  EXPECT_EQ(sizes.type(), TensorType(i32, {batch}));
}

TEST_P(ReturnnScanUnknown, Case49_EntriesFinishByAConditionAfterTheBody) {
  const auto f = run([](const Tensor& targets) { return count_to(targets, false); });
  const auto [ys, last, sizes] = f(tensor({0, 1, 3}, {batch}));
  expect_values(ys, {0, 0, 0, 0, 0, 10, 0, 0, 20});
  expect_values(last, {1, 1, 3});
  expect_values(sizes, {1, 1, 3});
}

TEST_P(ReturnnScanUnknown, Case51_MaxSeqLenBoundsAllEntries) {
  const auto check = [&](const Counted& counted) {
    expect_values(counted.last, {2, 1, 2});
    expect_values(counted.sizes, {2, 1, 2});
    expect_values(counted.ys, {0, 0, 0, 10, 0, 10});
  };
  const Tensor targets = tensor({5, 1, 3}, {batch});
  check(run([](const Tensor& t) { return count_to(t, true, 2); })(targets));
  const auto bounded = [](const Tensor& t, const Tensor& most) { return count_to(t, true, most); };
  check(run(bounded)(targets, scalar(2)));
  check(run(bounded)(targets, scalar(2, i64)));
}

TEST_P(ReturnnScanUnknown, Case52_MaxSeqLenOfZeroRunsNoIteration) {
  for (const int most : {0, -1})
    for (const bool before : {true, false}) {
      int bodies = 0;
      const auto f = run([&](const Tensor& start) {
        const auto [ys, last, dim] = scan(Scan{
            .cond_dims = {batch},
            .cond_before_body = before,
            .initial = start,
            .cond = [](const Tensor& s) { return s < 3.0; },
            .body =
                [&](const Tensor& s) {
                  if (!is_tracing()) ++bodies;
                  return std::pair{s, s + 1.0};
                },
            .max_seq_len = most,
        });
        return std::tuple{ys, last, dim.lengths(), sum(ys) + sum(last * 2.0)};
      });
      const auto [ys, last, sizes, loss] = f(zeros({batch}));
      EXPECT_EQ(ys.shape(), (std::vector<std::int64_t>{0, 3}));
      expect_values(last, {0, 0, 0});
      expect_values(sizes, {0, 0, 0});
      EXPECT_EQ(bodies, 0);
    }
}

TEST_P(ReturnnScanUnknown, Case53_D4_MaxSeqLenBoundsEachEntry) {
  const auto f = run([](const Tensor& t, const Tensor& most) { return count_to(t, true, most); });
  const auto [ys, last, sizes] = f(tensor({5, 1, 3}, {batch}), tensor({1, 2, 3}, {batch}));
  expect_values(sizes, {1, 1, 3});
  expect_values(last, {1, 1, 3});
  expect_values(ys, {0, 0, 0, 0, 0, 10, 0, 0, 20});
}

TEST_P(ReturnnScanUnknown, Case53_D4_MaxSeqLenMayLackDimsOfTheCondition) {
  const Dim beam("beam", 2);
  const auto f = run([&](const Tensor& targets, const Tensor& most) {
    const auto [ys, last, dim] = scan(Scan{
        .cond_dims = {batch, beam},
        .initial = zeros({batch, beam}, i32),
        .cond = [&](const Tensor& s) { return s < targets; },
        .body =
            [](const Tensor& s) {
              return std::pair{None{}, s + 1};
            },
        .max_seq_len = most,
    });
    return std::pair{last, dim.lengths()};
  });
  const Tensor targets = tensor({5, 1, 3, 0, 2, 7}, {batch, beam});
  const auto [by_batch, sizes] = f(targets, tensor({2, 9, 1}, {batch}));
  expect_values(by_batch, {2, 1, 3, 0, 1, 1});
  expect_values(sizes, {2, 1, 3, 0, 1, 1});
  expect_values(f(targets, tensor({4, 1}, {beam})).first, {4, 1, 3, 0, 2, 1});
}

TEST_P(ReturnnScanUnknown, Case56_ScanWithAScalarConditionEqualsAWhileLoop) {
  const auto f = run([](const Tensor& s) {
    const auto [ys, last, dim] = scan(Scan{
        .cond_dims = {},
        .initial = s,
        .cond = [](const Tensor& s) { return s < 3; },
        .body =
            [](const Tensor& s) {
              return std::pair{s, s + 1};
            },
    });
    const Tensor looped =
        while_loop([](const Tensor& s) { return s < 3; }, [](const Tensor& s) { return s + 1; }, s);
    return std::tuple{ys, last, dim.lengths(), looped};
  });
  const auto [ys, last, size, looped] = f(scalar(0));
  expect_values(ys, {0, 1, 2});
  expect_values(last, {3});
  expect_values(looped, {3});
  expect_values(size, {3});
  EXPECT_EQ(size.rank(), 0);
}

TEST_P(ReturnnScanUnknown, Case66_YsWithoutEntriesHaveOneLength) {
  struct State {
    Tensor left, step;
  };
  const auto f = run([&](const Tensor& left) {
    const auto [ys, last, dim] = scan(Scan{
        .cond_dims = {left.dim("batch")},
        .initial = State{left, scalar(0)},
        .cond = [](const State& s) { return s.left > 0; },
        .body =
            [](const State& s) {
              return std::pair{s.step, State{s.left - 1, s.step + 1}};
            },
    });
    return std::tuple{ys, last.left, last.step};
  });
  const auto [ys, left, step] = f(tensor({3, 2, 1}, {batch}));
  expect_values(ys, {0, 1, 2});
  EXPECT_EQ(ys.rank(), 1);
  EXPECT_EQ(ys.dim(0).name(), "scan_dim");
  expect_values(left, {0, 0, 0});
  expect_values(step, {3});
}

TEST_P(ReturnnScanUnknown, Case68_NewDimHasTheLengthsOfTheEntries) {
  // 1 is followed by 2, 3, and 0, which ends an entry and belongs to it.
  const Dim vocabulary("vocabulary", 4);
  const Tensor next = tensor({0, 2, 3, 0}, {vocabulary});
  const auto f = run([&](const Tensor& first) {
    const Dim batch = first.dim("batch");
    const auto [ys, last, dim] = scan(Scan{
        .cond_dims = {batch},
        .cond_before_body = false,
        .initial = first,
        .cond = [](const Tensor& token) { return token != 0; },
        .body =
            [&](const Tensor& token) {
              const Tensor following = gather(next, token, vocabulary);
              return std::pair{following, following};
            },
    });
    return std::tuple{sum(ys, dim), pack(ys, {batch, dim}), mask(dim)};
  });
  const auto [sums, packed, valid] = f(tensor({1, 3, 2}, {batch}));
  expect_values(sums, {5, 0, 3});
  expect_values(packed, {2, 3, 0, 0, 3, 0});
  expect_values(valid, {1, 1, 1, 1, 0, 0, 1, 1, 0});
}

TEST_P(ReturnnScanUnknown, Case69_D20_NewDimsOfTwoScansDiffer) {
  const auto f = run([](const Tensor& targets) {
    const Dim batch = targets.dim("batch");
    const auto once = [&] {
      return scan(Scan{
                      .cond_dims = {batch},
                      .initial = zeros({batch}, i32),
                      .cond = [&](const Tensor& s) { return s < targets; },
                      .body =
                          [](const Tensor& s) {
                            return std::pair{s, s + 1};
                          },
                  })
          .ys;
    };
    return once() + once();
  });
  EXPECT_EQ(message_of<ShapeError>([&] {
              f(tensor({0, 1, 3}, {batch}));
            }),
            "add: dims differ: lhs i32[scan_dim[batch=3],batch=3] lacks scan_dim[batch=3], rhs "
            "i32[scan_dim[batch=3],batch=3] lacks scan_dim[batch=3]; each lacks a dim of the "
            "other, but one operand must have all dims of the result: give it the missing ones "
            "with expand; the two called scan_dim are not one Dim: use one Dim for both, as "
            "x.dim(\"scan_dim\") gives it");
}

TEST_P(ReturnnScanUnknown, Case70_D7_ConditionNeedsNoCopyByTheUser) {
  // cond passes the tensor that it computed; the user need not copy it.
  const auto f = run([](const Tensor& t) { return count_to(t); });
  expect_values(f(tensor({0, 1, 3}, {batch})).sizes, {0, 1, 3});
}

TEST_P(ReturnnScanUnknown, Case71_D24_EmptyBatchHasEmptyResultsAndGradients) {
  const Dim nobody("batch", 0);
  for (const bool before : {true, false}) {
    const auto f = run([&](const Tensor& t) { return count_to(t, before); });
    const auto [ys, last, sizes] = f(zeros({nobody}, i32));
    EXPECT_EQ(ys.shape(), (std::vector<std::int64_t>{0, 0}));
    EXPECT_EQ(last.shape(), (std::vector<std::int64_t>{0}));
    EXPECT_EQ(sizes.shape(), (std::vector<std::int64_t>{0}));
  }
  // Along a known dim over an empty batch, with gradients.
  const Dim time("time", zeros({nobody}, i32));
  const auto total = [](const Tensor& x) {
    const Dim batch = x.dim("batch");
    const auto [ys, last, dim] = scan(Scan{
        .spatial_dim = x.dim("time"),
        .initial = zeros({batch}),
        .xs = x,
        .body =
            [](const Tensor& x, const Tensor& s) {
              return std::pair{x, s + x};
            },
    });
    return sum(ys) + sum(last);
  };
  const auto [value, gradient] = run(value_and_grad(total))(zeros({nobody, time}));
  expect_values(value, {0});
  EXPECT_EQ(gradient.shape(), (std::vector<std::int64_t>{0, 0}));
}

TEST_P(ReturnnScanUnknown, Case72_ReturnTensorArraysLeavesYsUnstacked) {
  const auto f = run([](const Tensor& targets) {
    const Dim batch = targets.dim("batch");
    const auto [array, last, dim] = scan(Scan{
        .cond_dims = {batch},
        .initial = zeros({batch}, i32),
        .cond = [&](const Tensor& s) { return s < targets; },
        .body =
            [](const Tensor& s) {
              return std::pair{s * 10, s + 1};
            },
        .return_tensor_arrays = std::true_type{},
    });
    static_assert(std::is_same_v<std::decay_t<decltype(array)>, TensorArray>);
    return std::tuple{array.size(), array[-1], array[1], dim.lengths()};
  });
  const auto [size, end, second, sizes] = f(tensor({0, 1, 3}, {batch}));
  expect_values(size, {3});
  expect_values(end, {0, 0, 20});
  expect_values(second, {0, 0, 10});
  expect_values(sizes, {0, 1, 3});
}

// The rule behind the rows: an entry's result and gradient are the same as with a while loop on the
// entry alone (D1, D2, D3).

struct Newton {
  Tensor guess, change;
};

/// s <- s - (s² - a) / 2s until the relative change is below 1e-3. Each entry takes its own number
/// of steps. One step more would divide by values that do not exist.
std::pair<Tensor, Tensor> roots(const Tensor& a) {
  const Dim batch = a.dim("batch");
  const auto [ys, last, dim] = scan(Scan{
      .cond_dims = {batch},
      .cond_before_body = false,
      .initial = Newton{a, zeros_like(a)},
      .cond = [](const Newton& s) { return abs(s.change) > 1e-3; },
      .body =
          [&](const Newton& s) {
            const Tensor change = (square(s.guess) - a) / (2.0 * s.guess);
            return std::pair{s.guess, Newton{s.guess - change, change}};
          },
  });
  return {last.guess, dim.lengths()};
}

TEST_P(ReturnnScanUnknown, D1_NewtonGivesTheIterateThatConverged) {
  const Tensor a = tensor({1.0001, 2., 900.}, {batch}, f64);
  const auto [last, sizes] = run(roots)(a);
  const auto alone = [&](double a) {
    double s = a, change = 1;
    int steps = 0;
    while (steps == 0 || std::abs(change) > 1e-3) {
      change = (s * s - a) / (2 * s);
      s -= change;
      ++steps;
    }
    return std::pair{s, double(steps)};
  };
  std::vector<double> expected, steps;
  for (const double x : {1.0001, 2., 900.}) {
    expected.push_back(alone(x).first);
    steps.push_back(alone(x).second);
  }
  expect_values(last, expected, 1e-13);
  expect_values(sizes, steps);
  checked_gradient([](const Tensor& a) { return sum(square(roots(a).first)); }, a, 1e-5);
}

TEST_P(ReturnnScanUnknown, D1_GreatestCommonDivisors) {
  struct Pair {
    Tensor a, b;
  };
  const auto gcd = run([](const Tensor& a, const Tensor& b) {
    return scan(Scan{
                    .cond_dims = {a.dim("batch")},
                    .initial = Pair{a, b},
                    .cond = [](const Pair& s) { return s.b != 0; },
                    .body =
                        [](const Pair& s) {
                          return std::pair{None{}, Pair{s.b, s.a % s.b}};
                        },
                })
        .state.a;
  });
  expect_values(gcd(tensor({48, 7, 5}, {batch}), tensor({18, 2, 0}, {batch})), {6, 1, 5});
}

TEST_P(ReturnnScanUnknown, D1_GreedyDecodingKeepsTheEndOfASentence) {
  // A chain of tokens per entry; 0 ends it, and is in ys and in the state.
  const Dim vocabulary("vocabulary", 5);
  const Tensor next = tensor({0, 2, 4, 0, 3}, {vocabulary});  // 1 2 4 3 0
  const auto decode = run([&](const Tensor& first) {
    const Dim batch = first.dim("batch");
    const auto [ys, last, dim] = scan(Scan{
        .spatial_dim = Dim("out"),
        .cond_dims = {batch},
        .cond_before_body = false,
        .initial = first,
        .cond = [](const Tensor& token) { return token != 0; },
        .body =
            [&](const Tensor& token) {
              const Tensor following = gather(next, token, vocabulary);
              return std::pair{following, following};
            },
        .max_seq_len = max(first, 0) * 10,
    });
    EXPECT_EQ(dim.name(), "out");
    return std::tuple{transpose(ys, {batch, dim}), last, dim.lengths()};
  });
  const auto [ys, last, sizes] = decode(tensor({1, 3, 4}, {batch}));
  expect_values(ys, {2, 4, 3, 0, 0, 0, 0, 0, 3, 0, 0, 0});
  expect_values(sizes, {4, 1, 2});
  expect_values(last, {0, 0, 0});
}

TEST_P(ReturnnScanUnknown, D3_FinishedEntriesThatWouldDivideByZeroMakeNoNaN) {
  // s counts down to 0. One step more would be 1/0, and its gradient NaN for the shared w.
  const auto f = [&](const std::pair<Tensor, Tensor>& sw) {
    const auto [s0, w] = sw;
    const auto [ys, last, dim] = scan(Scan{
        .cond_dims = {batch},
        .initial = s0,
        .cond = [](const Tensor& s) { return s > 0.5; },
        .body =
            [&, w = w](const Tensor& s) {
              return std::pair{w / s, s - 1.0};
            },
    });
    return sum(ys) + sum(last * w);
  };
  const std::pair at{tensor({3., 1., 0.}, {batch}, f64), scalar(2.0, f64)};
  const auto [value, gradient] = run(value_and_grad(f))(at);
  expect_values(value, {2 * (1 + 1. / 2 + 1. / 3 + 1)}, 1e-12);
  expect_values(gradient.second, {1 + 1. / 2 + 1. / 3 + 1}, 1e-12);
  expect_values(gradient.first, {2 - 2 * (1. / 9 + 1. / 4 + 1), 2 - 2., 2}, 1e-12);
}

// D10: a state leaf that has only some of the cond dims runs until the last of its entries has
// finished.
TEST_P(ReturnnScanUnknown, D10_LeafOverSomeOfTheCondDims) {
  const Dim beam("beam", 2);
  struct State {
    Tensor left, by_batch, shared;
  };
  const auto f = run([&](const Tensor& left) {
    const auto [ys, last, dim] = scan(Scan{
        .cond_dims = {batch, beam},
        .initial = State{left, zeros({batch}), scalar(0.0)},
        .cond = [](const State& s) { return s.left > 0; },
        .body =
            [](const State& s) {
              const State next{s.left - 1, s.by_batch + 1.0, s.shared + 1.0};
              return std::pair{next.by_batch, next};
            },
    });
    return std::tuple{last.left, last.by_batch, last.shared, ys, dim.lengths()};
  });
  const auto [left, by_batch, shared, ys, sizes] = f(tensor({1, 3, 0, 2, 0, 0}, {batch, beam}));
  expect_values(left, {0, 0, 0, 0, 0, 0});
  expect_values(by_batch, {3, 2, 0});
  expect_values(shared, {3});
  expect_values(ys, {1, 1, 0, 2, 2, 0, 3, 0, 0});
  expect_values(sizes, {1, 3, 0, 2, 0, 0});
}

TEST_P(ReturnnScanUnknown, D13_Case113_ANameForTheNewDimMayBeUsedTwice) {
  const Dim out("out");
  const auto f = run([&](const Tensor& targets) {
    const auto once = [&](const Tensor& t) {
      return scan(Scan{.spatial_dim = out,
                       .cond_dims = {batch},
                       .initial = zeros({batch}, i32),
                       .cond = [&](const Tensor& s) { return s < t; },
                       .body =
                           [](const Tensor& s) {
                             return std::pair{s, s + 1};
                           }})
          .dim;
    };
    const Dim a = once(targets), b = once(targets + 1);
    EXPECT_FALSE(a == b);
    return std::pair{a.lengths(), b.lengths()};
  });
  const auto [a, b] = f(tensor({0, 1, 3}, {batch}));
  expect_values(a, {0, 1, 3});
  expect_values(b, {1, 2, 4});
  EXPECT_TRUE(out.is_undefined());
}

TEST_P(ReturnnScanUnknown, D25_KnownLengthWithCondAndMaxSeqLen) {
  for (const double padding : kPaddings) {
    const auto f = run([&](const Tensor& x, const Tensor& most) {
      const auto [ys, last, dim] = scan(Scan{
          .spatial_dim = x.dim("time"),
          .cond_dims = {batch},
          .initial = zeros({batch}),
          .xs = x,
          .cond = [](const None&, const Tensor& s) { return s < 3.0; },
          .body =
              [](const Tensor& x, const Tensor& s) {
                return std::pair{x, s + x};
              },
          .max_seq_len = most,
      });
      EXPECT_FALSE(dim == x.dim("time"));
      return std::tuple{last, dim.lengths(), transpose(ys, {batch, dim})};
    });
    const auto [last, sizes, ys] = f(x2(padding), scalar(9));
    expect_values(last, {3, 4, 7});
    expect_values(sizes, {2, 1, 1});
    expect_values(ys, {1, 2, 4, 0, 7, 0});
    const auto [cut, cut_sizes, cut_ys] = f(x2(padding), tensor({1, 9, 0}, {batch}));
    expect_values(cut, {1, 4, 0});
    expect_values(cut_sizes, {1, 1, 0});
    expect_values(cut_ys, {1, 4, 0});
  }
}

}  // namespace
}  // namespace reel
