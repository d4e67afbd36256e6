// Reverse scans that cond or max_seq_len ends: forward scans over reversed entries.
#include <algorithm>

#include "reel/tests/gradients.h"
#include "reel/tests/modes.h"

namespace reel {
namespace {

using Rows = std::vector<std::vector<double>>;

/// The rows of ys and the final states that a loop over each reversed entry alone has.
struct Expected {
  Rows ys;
  std::vector<double> states;
};

/// One entry in plain C++: the state decays and adds x, as long as it is below the limit.
Expected entries_alone(const Rows& xs, double limit, std::size_t most, bool cond_before_body) {
  Expected result;
  for (const std::vector<double>& x : xs) {
    std::vector<double> ys;
    double s = 1;
    for (std::size_t k = 0; k < std::min(x.size(), most); ++k) {
      if ((k > 0 || cond_before_body) && !(s < limit)) break;
      s = s / 2 + x[x.size() - 1 - k];
      ys.push_back(s * s);
    }
    std::reverse(ys.begin(), ys.end());  // the order of x
    result.ys.push_back(ys);
    result.states.push_back(s);
  }
  return result;
}

class ReverseEndScanTest : public InEveryMode {
 protected:
  const Rows rows{{1, 2, 3, 4}, {}, {0.5, 7, 0.25}, {9}, {1, 1, 1, 1, 1}};
  const Tensor x = ragged(rows, {Dim("batch"), Dim("time")}, f64);
};

auto decaying(const Tensor& x, double limit, std::optional<IterationCount> most,
              bool cond_before_body = true) {
  const Dim batch = x.dim("batch");
  return scan(Scan{.spatial_dim = x.dim("time"),
                   .cond_dims = {batch},
                   .cond_before_body = cond_before_body,
                   .initial = ones({batch}, f64),
                   .xs = x,
                   .cond = [&](const Tensor& s) { return s < limit; },
                   .body =
                       [](const Tensor& x, const Tensor& s) {
                         const Tensor next = s / 2 + x;
                         return std::pair{square(next), next};
                       },
                   .max_seq_len = most,
                   .reverse = true});
}

TEST_P(ReverseEndScanTest, EveryEntryHasTheYsOfItsLastElementsInTheOrderOfX) {
  for (const double limit : {0.5, 3.0, 4.5, 100.0})
    for (const bool before : {true, false})
      for (const std::int64_t most : {0, 1, 3, 99}) {
        const auto result = run([&](const Tensor& x) {
          const auto [ys, state, dim] = decaying(x, limit, most, before);
          return std::tuple{transpose(ys, {x.dim("batch"), dim}), state, dim.lengths()};
        })(x);
        const Expected expected =
            entries_alone(rows, limit, static_cast<std::size_t>(most), before);
        EXPECT_EQ(rows_of<double>(std::get<0>(result)), expected.ys) << limit << ' ' << most;
        expect_values(std::get<1>(result), expected.states, 1e-12);
        std::vector<double> lengths;
        for (const auto& row : expected.ys) lengths.push_back(static_cast<double>(row.size()));
        expect_values(std::get<2>(result), lengths);
      }
}

TEST_P(ReverseEndScanTest, MaxSeqLenAlone) {
  const auto f = [&](const Tensor& x, const IterationCount& most) {
    const auto [ys, state, dim] = scan(Scan{.spatial_dim = x.dim("time"),
                                            .initial = ones({x.dim("batch")}, f64),
                                            .xs = x,
                                            .body =
                                                [](const Tensor& x, const Tensor& s) {
                                                  const Tensor next = s / 2 + x;
                                                  return std::pair{square(next), next};
                                                },
                                            .max_seq_len = most,
                                            .reverse = true});
    return std::pair{transpose(ys, {x.dim("batch"), dim}), state};
  };
  const Expected two = entries_alone(rows, 1e9, 2, true);
  const auto number = run([&](const Tensor& x) { return f(x, 2); })(x);
  EXPECT_EQ(rows_of<double>(number.first), two.ys);
  expect_values(number.second, two.states, 1e-12);
  const auto tensor_bound =
      run([&](const Tensor& x, const Tensor& most) { return f(x, most); })(x, scalar(2));
  EXPECT_EQ(rows_of<double>(tensor_bound.first), two.ys);
  const Tensor own = tensor({3, 1, 1, 0, 5}, {x.dim("batch")});
  const auto by_entry =
      run([&](const Tensor& x, const Tensor& most) { return f(x, most); })(x, own);
  Rows expected;
  for (std::size_t b = 0; b < rows.size(); ++b)
    expected.push_back(
        entries_alone({rows[b]}, 1e9, static_cast<std::size_t>(own[b].item<int>()), true).ys[0]);
  EXPECT_EQ(rows_of<double>(by_entry.first), expected);
}

/// The definition: a forward scan over the reversed entries.
TEST_P(ReverseEndScanTest, HasTheGradientsOfTheForwardScanOverReversedEntries) {
  const auto forward = [](const Tensor& x, double limit) {
    const Dim batch = x.dim("batch"), time = x.dim("time");
    const auto [ys, state, dim] = scan(Scan{.spatial_dim = time,
                                            .cond_dims = {batch},
                                            .initial = ones({batch}, f64),
                                            .xs = reverse(x, time),
                                            .cond = [&](const Tensor& s) { return s < limit; },
                                            .body =
                                                [](const Tensor& x, const Tensor& s) {
                                                  const Tensor next = s / 2 + x;
                                                  return std::pair{square(next), next};
                                                }});
    return std::pair{reverse(ys, dim), state};
  };
  const auto weighted = [](const Tensor& ys, const Tensor& state) -> Tensor {
    return sum(sin(ys)) + sum(square(state));
  };
  for (const double limit : {3.0, 4.5}) {
    const auto loss = [&](const Tensor& x) {
      const auto result = decaying(x, limit, {});
      return weighted(result.ys, result.state);
    };
    const auto expected = [&](const Tensor& x) {
      const auto result = forward(x, limit);
      return weighted(result.first, result.second);
    };
    expect_all_close(mask_padding(run(grad(loss))(x)), mask_padding(grad(expected)(x)), 1e-12);
    const auto slope = [&](const Tensor& x) { return sum(square(mask_padding(grad(loss)(x)))); };
    const auto expected_slope = [&](const Tensor& x) {
      return sum(square(mask_padding(grad(expected)(x))));
    };
    expect_all_close(mask_padding(run(grad(slope))(x)), mask_padding(grad(expected_slope)(x)),
                     1e-11);
  }
  expect_gradient_of(
      [&](const Tensor& x) {
        const auto result = decaying(x, 4.7, 3);
        return weighted(result.ys, result.state);
      },
      x, mask_padding(run(grad([&](const Tensor& x) {
        const auto result = decaying(x, 4.7, 3);
        return weighted(result.ys, result.state);
      }))(x)),
      1e-6);
}

TEST_P(ReverseEndScanTest, OneConditionEndsAReverseScanOverPlainSizes) {
  const auto f = [](const Tensor& x) {
    const auto [ys, state, dim] = scan(Scan{.cond_dims = {},
                                            .initial = scalar(1., f64),
                                            .xs = x,
                                            .cond = [](const Tensor& s) { return s < 6.0; },
                                            .body =
                                                [](const Tensor& x, const Tensor& s) {
                                                  return std::pair{s + x, s + x};
                                                },
                                            .reverse = true});
    return std::pair{ys, state};
  };
  const Tensor x = tensor({4., 3., 2., 1.}, f64);
  const auto [ys, state] = run(f)(x);
  expect_values(ys, {7, 4, 2});
  expect_values(state, {7});
  const auto loss = [&](const Tensor& x) { return sum(square(f(x).first)); };
  expect_gradient_of(loss, x, run(grad(loss))(x));
}

TEST_P(ReverseEndScanTest, SharedYsArraysAndNoXs) {
  const auto shared = run([](const Tensor& x) {
    const Dim batch = x.dim("batch");
    const auto [ys, state, dim] = scan(Scan{.spatial_dim = x.dim("time"),
                                            .initial = 1,
                                            .xs = x,
                                            .body =
                                                [](const Tensor&, const Tensor& i) {
                                                  return std::pair{i, i + 1};
                                                },
                                            .max_seq_len = 2,
                                            .reverse = true});
    return transpose(ys, {batch, dim});
  })(x);
  EXPECT_EQ(rows_of<int>(shared), (std::vector<std::vector<int>>{{2, 1}, {}, {2, 1}, {1}, {2, 1}}));
  const auto arrays = run([](const Tensor& x) {
    return scan(Scan{.initial = scalar(0., f64),
                     .xs = x,
                     .body =
                         [](const Tensor& x, const Tensor& s) {
                           return std::pair{s + x, s + x};
                         },
                     .max_seq_len = 2,
                     .return_tensor_arrays = std::true_type{},
                     .reverse = true})
        .ys.stack();
  })(tensor({1., 2., 4.}, f64));
  expect_values(arrays, {6, 4});
  const auto no_xs = run([](const Tensor& s) {
    return scan(Scan{.spatial_dim = Dim(4),
                     .cond_dims = {},
                     .initial = s,
                     .cond = [](const Tensor& s) { return s < 5.0; },
                     .body =
                         [](const Tensor& s) {
                           return std::pair{s, s * 2};
                         },
                     .reverse = true})
        .ys;
  })(scalar(1., f64));
  expect_values(no_xs, {4, 2, 1});
}

TEST_P(ReverseEndScanTest, PoliciesLeaveTheGradientAsItIs) {
  const auto loss = [](const Tensor& x, const Checkpoint& checkpoint, bool swaps) {
    const Dim batch = x.dim("batch");
    return sum(scan(Scan{.spatial_dim = x.dim("time"),
                         .cond_dims = {batch},
                         .initial = ones({batch}, f64),
                         .xs = x,
                         .cond = [&](const Tensor& s) { return s < 4.5; },
                         .body =
                             [](const Tensor& x, const Tensor& s) {
                               const Tensor next = sin(s / 2) + x;
                               return std::pair{square(next), next};
                             },
                         .reverse = true,
                         .checkpoint = checkpoint,
                         .swap_memory = swaps})
                   .ys);
  };
  const Tensor expected =
      mask_padding(grad([&](const Tensor& x) { return loss(x, {}, false); })(x));
  expect_all_close(mask_padding(run(grad(
                       [&](const Tensor& x) { return loss(x, Checkpoint::every(2), false); }))(x)),
                   expected, 1e-12);
  expect_all_close(mask_padding(run(grad([&](const Tensor& x) { return loss(x, {}, true); }))(x)),
                   expected, 1e-12);
}

/// Words have letters: the lengths move with the words.
TEST_P(ReverseEndScanTest, SlicesHaveLengthsOfTheirOwn) {
  const std::vector<Rows> text{{{1, 2}, {3}, {4, 5, 6}}, {{7}}, {}};
  const Tensor x = ragged(text, {Dim("batch"), Dim("words"), Dim("letters")}, f64);
  const auto f = [](const Tensor& x) {
    const Dim batch = x.dim("batch"), letters = x.dim("letters");
    const auto [ys, state, dim] = scan(Scan{.spatial_dim = x.dim("words"),
                                            .initial = zeros({batch}, f64),
                                            .xs = x,
                                            .body =
                                                [&](const Tensor& word, const Tensor& s) {
                                                  const Tensor next = s + sum(word, letters);
                                                  return std::pair{std::pair{word, next}, next};
                                                },
                                            .max_seq_len = 2,
                                            .reverse = true});
    return std::tuple{transpose(ys.first, {batch, dim, ys.first.dim("letters")}),
                      transpose(ys.second, {batch, dim}), state};
  };
  const auto [words, sums, state] = run(f)(x);
  EXPECT_EQ(rows_of<Rows>(words), (std::vector<Rows>{{{3}, {4, 5, 6}}, {{7}}, {}}));
  EXPECT_EQ(rows_of<double>(sums), (Rows{{18, 15}, {7}, {}}));
  expect_values(state, {18, 7, 0});
}

TEST_P(ReverseEndScanTest, InsideOfALoop) {
  const auto f = [](const Tensor& x) {
    return fori_loop(
        0, 3,
        [&](const Tensor&, const Tensor& s) {
          const auto result = scan(Scan{.cond_dims = {},
                                        .initial = s,
                                        .xs = x,
                                        .cond = [](const Tensor& s) { return s < 6.0; },
                                        .body =
                                            [](const Tensor& x, const Tensor& s) {
                                              return std::pair{s * x, s + x};
                                            },
                                        .reverse = true});
          return sin(sum(result.ys)) + result.state / 8;
        },
        scalar(1., f64));
  };
  const Tensor x = tensor({4., 3., 2., 1.}, f64);
  expect_values(run(f)(x), values_of(f(x)), 1e-12);
  expect_gradient_of(f, x, run(grad(f))(x), 1e-6);
}
REEL_IN_EVERY_MODE(ReverseEndScanTest);

TEST(ReverseEndScanErrorsTest, AnUnknownLengthHasNoEnd) {
  EXPECT_EQ(message_of<ArgumentError>([] {
              return scan(Scan{.cond_dims = {},
                               .initial = scalar(1.),
                               .cond = [](const Tensor& s) { return s < 5.0; },
                               .body =
                                   [](const Tensor& s) {
                                     return std::pair{s, s * 2};
                                   },
                               .reverse = true});
            }),
            "scan \"scan\": reverse needs a known length");
}

}  // namespace
}  // namespace reel
