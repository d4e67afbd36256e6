// Uses of RETURNN's loops as small programs: patterns P1 to P23. P2 and P19 are in
// scan_test.cpp, P4, P5 and P23 in entries_test.cpp, P9 in dims_test.cpp,
// P10 in decoder_test.cpp, P11 and P13 to P15 in search_test.cpp.
#include <array>
#include <map>
#include <tuple>

#include "reel/tests/cases/returnn/returnn.h"

namespace reel {
namespace {

class ReturnnPatterns : public ReturnnCase {
 protected:
  const Dim in{"in", 2}, hidden{"hidden", 3}, hidden_out{"hidden", 3};
  const Tensor input_weight = numbers({in, hidden}, 1);

  static Tensor numbers(const Dims& dims, std::uint64_t seed) {
    manual_seed(seed);
    return random_uniform(dims, -1, 1, f64);
  }
  Tensor frames(double padding) const {
    return mask_padding(numbers({batch, time, in}, 3), padding);
  }
  /// Computes tanh(projected + s·W): one step of P1 and P3.
  Tensor step(const Tensor& w, const Tensor& projected, const Tensor& s) const {
    return tanh(projected + rename(matmul(s, w, hidden), hidden_out, hidden));
  }
  Tensor over(const Tensor& w, const Tensor& projected, const Tensor& start) const {
    return scan(Scan{.spatial_dim = projected.dim("time"),
                     .initial = start,
                     .xs = projected,
                     .body =
                         [&](const Tensor& x, const Tensor& s) {
                           const Tensor next = step(w, x, s);
                           return std::pair{next, next};
                         }})
        .ys;
  }
};
REEL_IN_EVERY_MODE(ReturnnPatterns);

TEST_P(ReturnnPatterns, P1_InputProjectionOutsideTheLoop) {
  const Tensor start = zeros({batch, hidden}, f64), w = numbers({hidden, hidden_out}, 2);
  const auto outside = [&](const std::pair<Tensor, Tensor>& ux) {
    return sum(square(over(w, matmul(ux.second, ux.first, in), start)));
  };
  const auto inside = [&](const std::pair<Tensor, Tensor>& ux) {
    const auto result = scan(Scan{.spatial_dim = ux.second.dim("time"),
                                  .initial = start,
                                  .xs = ux.second,
                                  .body = [&](const Tensor& x, const Tensor& s) {
                                    const Tensor next = step(w, matmul(x, ux.first, in), s);
                                    return std::pair{next, next};
                                  }});
    return sum(square(result.ys));
  };
  for (const double padding : kPaddings) {
    const std::pair at{input_weight, frames(padding)};
    const auto [a, da] = run(value_and_grad(outside))(at);
    const auto [b, db] = run(value_and_grad(inside))(at);
    expect_all_close(a, b, 1e-12);
    expect_all_close(da.first, db.first, 1e-12);
    expect_all_close(mask_padding(da.second), mask_padding(db.second), 1e-12);
  }
}

TEST_P(ReturnnPatterns, P3_OneStepOrAllOfThem) {
  const Tensor w = numbers({hidden, hidden_out}, 2), x = numbers({batch, hidden}, 4);
  const Dim once("time", 1);
  const Tensor one = run([&](const Tensor& x) { return step(w, x, zeros_like(x)); })(x);
  const Tensor all =
      run([&](const Tensor& x) { return over(w, stack({x}, once), zeros_like(x)); })(x);
  expect_same_bits(reshape(all, one.dims()), one);
}

TEST_P(ReturnnPatterns, P6_UnusedOutputChangesNoGradient) {
  const auto loss = [&](const Tensor& x) {
    const auto [ys, last, dim] = scan(Scan{
        .spatial_dim = x.dim("time"),
        .initial = zeros({batch}, f64),
        .xs = x,
        .body =
            [](const Tensor& x, const Tensor& s) {
              return std::pair{std::map<std::string, Tensor>{{"sum", s + x}, {"weights", log(x)}},
                               s + x};
            },
    });
    return sum(ys.at("sum"));
  };
  for (const double padding : kPaddings)
    expect_values(checked_gradient(loss, x2(padding, f64)), {3, 2, 1, 2, 1, 0, 1, 0, 0});
}

TEST_P(ReturnnPatterns, P7_AFinalStateThatGoesOn) {
  const auto sums = [](const Tensor& x, const Tensor& start) {
    return scan(Scan{.spatial_dim = x.dim("time"),
                     .initial = start,
                     .xs = x,
                     .body =
                         [](const Tensor& x, const Tensor& s) {
                           return std::pair{None{}, 0.5 * s + x};
                         }})
        .state;
  };
  const auto whole = [&](const Tensor& x) { return sum(square(sums(x, zeros({batch}, f64)))); };
  const auto over_chunks = [&](const Tensor& x) {
    const Dim time = x.dim("time");
    const Tensor half = sums(slice(x, time, 0, 2), zeros({batch}, f64));
    return sum(square(sums(slice(x, time, 2), half)));
  };
  for (const double padding : kPaddings) {
    const Tensor x = x2(padding, f64);
    expect_all_close(run(over_chunks)(x), run(whole)(x), 1e-12);
    expect_all_close(checked_gradient(over_chunks, x), checked_gradient(whole, x), 1e-9);
  }
}

TEST_P(ReturnnPatterns, P8_AScanRunsAlongAnExtendedDim) {
  const auto loss = [&](const Tensor& x) {
    const Dim longer = x.dim("time") + 1;
    const auto [ys, last, dim] = scan(Scan{
        .spatial_dim = longer,
        .initial = zeros({batch}, f64),
        .xs = pad(x, x.dim("time"), 0, 1, 10, longer),
        .body =
            [](const Tensor& x, const Tensor& s) {
              return std::pair{s * x, s + x};
            },
    });
    EXPECT_TRUE(dim == longer);
    return std::tuple{sum(ys, longer), last, dim.lengths()};
  };
  for (const double padding : kPaddings) {
    const auto [ys, last, lengths] = run(loss)(x2(padding, f64));
    expect_values(lengths, {4, 3, 2});
    expect_values(last, {16, 19, 17});
    expect_values(ys, {2 + 9 + 60, 20 + 90, 70});
    checked_gradient([&](const Tensor& x) { return sum(square(std::get<0>(loss(x)))); },
                     x2(padding, f64), 1e-5);
  }
}

/// The state that traces a search back: in each step a token, and the beam that each beam came
/// from.
struct Backtrack {
  Tensor t, beam;
  TensorArray found;
};

TEST_P(ReturnnPatterns, P12_BacktrackingThroughTwoArrays) {
  const Dim beam("beam", 2), steps("steps", 3);
  const auto trace_back = run([&](const Tensor& tokens, const Tensor& from) {
    const TensorArray token_list = TensorArray::unstack(tokens, steps),
                      from_list = TensorArray::unstack(from, steps);
    const Backtrack last = while_loop(
        [](const Backtrack& s) { return s.t >= 0; },
        [&](const Backtrack& s) {
          return Backtrack{s.t - 1, gather(from_list[s.t], s.beam, beam),
                           s.found.push_back(gather(token_list[s.t], s.beam, beam))};
        },
        Backtrack{token_list.size() - 1, zeros({batch}, i32), TensorArray({i32, {batch}})});
    return reverse(last.found.stack(steps), steps);  // without lengths: all steps
  });
  const Tensor tokens =
      tensor({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18}, {steps, batch, beam});
  const Tensor from =
      tensor({0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 1, 0, 1, 1, 0, 0, 0}, {steps, batch, beam});
  // Entry 0: 13 at beam 0, from 0: 7, from 1: 2. Entry 1: 15, from 1: 10, from 0: 3. Entry 2: 17,
  // from 0: 11, from 1: 6.
  expect_values(trace_back(tokens, from), {2, 3, 6, 7, 10, 11, 13, 15, 17});
}

TEST_P(ReturnnPatterns, P16_AListOfStepsOntoADimWithLengths) {
  const auto f = run([&](const Tensor& lengths) {
    TensorArray list({f32, {batch}});
    for (int t = 0; t < 3; ++t) list = list.push_back(full({batch}, t + 1.));
    const Dim out("out", lengths);
    const Tensor all = list.stack(out);
    return std::pair{sum(all, out), pack(all, {batch, out})};
  });
  const auto [sums, packed] = f(tensor({3, 2, 1}, {batch}));
  expect_values(sums, {6, 3, 1});
  expect_values(packed, {1, 2, 3, 1, 2, 1});
  EXPECT_EQ(message_of<ShapeError>([&] {
              f(tensor({2, 2, 1}, {batch}));
            }),
            "TensorArray stack: dim out[batch=3] has size 2, but the array has 3 elements");
}

TEST_P(ReturnnPatterns, P17_EmissionsIntoABufferAtAPositionOfTheirOwn) {
  // Frames of tokens, with 0 for none: each entry appends the tokens that it emits.
  const Dim room("room", 4);
  struct State {
    Tensor t, position, buffer;
  };
  const auto decode = run([&](const Tensor& emitted) {
    const Dim time = emitted.dim("time");
    const Tensor lengths = time.lengths();
    const State last =
        while_loop([&](const State& s) { return any(s.t < lengths); },
                   [&](const State& s) {
                     const Tensor token = gather(emitted, s.t, time, {.clip = true});
                     const Tensor writes = (s.t < lengths) && (token != 0);
                     const Tensor here = expand(range(room), {batch, room}) == s.position;
                     return State{s.t + 1, s.position + cast(writes, i32),
                                  where(here && writes, expand(token, {batch, room}), s.buffer)};
                   },
                   State{zeros({batch}, i32), zeros({batch}, i32), zeros({batch, room}, i32)});
    return std::pair{last.buffer, last.position};
  });
  const Tensor tokens = tensor({5, 0, 7, 0, 8, 99, 9, 99, 99}, {batch, time});
  const auto [buffer, sizes] = decode(tokens);
  expect_values(buffer, {5, 7, 0, 0, 8, 0, 0, 0, 9, 0, 0, 0});
  expect_values(sizes, {2, 1, 1});
}

class ReturnnChain : public ReturnnCase {
 protected:
  const Dim state{"state", 2}, next{"state", 2};
  /// There is no transition from 1 to 0: log 0.
  const Tensor transitions = tensor({-.5, -1.2, -kInf, -.1}, {state, next}, f64);
  const std::vector<double> emissions{-.3, -.9, -.2, -1.5, -2., -.4, -.6, -.7, -.8,
                                      -.1, -3., -3., -1.,  -.5, -3., -3., -3., -3.};

  Tensor scores(double padding) const {
    return mask_padding(tensor(emissions, {batch, time, state}), padding);
  }
  /// Returns the score of an entry's path: its emissions and the transitions between them.
  double score(int entry, const std::vector<int>& path) const {
    const double table[2][2] = {{-.5, -1.2}, {-kInf, -.1}};
    double result = 0;
    for (std::size_t t = 0; t < path.size(); ++t)
      result += emissions[(entry * 3 + t) * 2 + path[t]] + (t ? table[path[t - 1]][path[t]] : 0);
    return result;
  }
  template <class Fn>
  static void each_path(int length, Fn&& fn) {
    for (int code = 0; code < 1 << length; ++code) {
      std::vector<int> path;
      for (int t = 0; t < length; ++t) path.push_back(code >> t & 1);
      fn(path);
    }
  }
};
REEL_IN_EVERY_MODE(ReturnnChain);

TEST_P(ReturnnChain, P18_ForwardScoresAndPosteriorsByTheirGradient) {
  const auto log_sum = [&](const Tensor& e) {
    // The first frame has no transition: every state costs nothing to start in.
    const Dim time = e.dim("time");
    const auto result = scan(Scan{
        .spatial_dim = time,
        .initial = std::pair{zeros({batch, state}, f64), scalar(0)},
        .xs = e,
        .body =
            [&](const Tensor& e, const std::pair<Tensor, Tensor>& s) {
              const Tensor moved =
                  rename(logsumexp(expand(s.first, {batch, state, next}) + transitions, state),
                         next, state);
              const Tensor a = where(s.second > 0, moved, zeros_like(moved)) + e;
              return std::pair{None{}, std::pair{a, s.second + 1}};
            },
    });
    return logsumexp(result.state.first, state);
  };
  const int lengths[] = {3, 2, 1};
  for (const double padding : kPaddings) {
    std::vector<double> totals, posteriors(18, 0);
    for (int b = 0; b < 3; ++b) {
      double total = 0;
      each_path(lengths[b], [&](const auto& path) { total += std::exp(score(b, path)); });
      totals.push_back(std::log(total));
      each_path(lengths[b], [&](const auto& path) {
        for (int t = 0; t < lengths[b]; ++t)
          posteriors[(b * 3 + t) * 2 + path[t]] += std::exp(score(b, path)) / total;
      });
    }
    expect_values(run(log_sum)(scores(padding)), totals, 1e-12);
    expect_values(
        checked_gradient([&](const Tensor& e) { return sum(log_sum(e)); }, scores(padding)),
        posteriors, 1e-12);
  }
}

TEST_P(ReturnnChain, P18_BestPathByBackpointersAndAReverseLoop) {
  const auto best = run([&](const Tensor& e) {
    const Dim time = e.dim("time");
    const auto [back, last, dim] = scan(Scan{
        .spatial_dim = time,
        .initial = std::pair{zeros({batch, state}, f64), scalar(0)},
        .xs = e,
        .body =
            [&](const Tensor& e, const std::pair<Tensor, Tensor>& s) {
              const Tensor ways = expand(s.first, {batch, state, next}) + transitions;
              const Tensor moved = rename(max(ways, state), next, state);
              const Tensor a = where(s.second > 0, moved, zeros_like(moved)) + e;
              return std::pair{rename(argmax(ways, state), next, state),
                               std::pair{a, s.second + 1}};
            },
    });
    return scan(Scan{
                    .spatial_dim = time,
                    .initial = argmax(last.first, state),
                    .xs = back,
                    .body =
                        [&](const Tensor& back, const Tensor& s) {
                          return std::pair{s, gather(back, s, state)};
                        },
                    .reverse = true,
                })
        .ys;
  });
  std::vector<double> expected(9, 0);
  const int lengths[] = {3, 2, 1};
  for (int b = 0; b < 3; ++b) {
    double highest = -kInf;
    each_path(lengths[b], [&](const auto& path) {
      if (score(b, path) <= highest) return;
      highest = score(b, path);
      for (int t = 0; t < lengths[b]; ++t) expected[b * 3 + t] = path[t];
    });
  }
  for (const double padding : kPaddings)
    expect_in_order(best(scores(padding)), {batch, time}, expected);
}

TEST_P(ReturnnPatterns, P20_AStateAsLargeAsTheData) {
  // Masks frames, one mask after the other; each entry draws its own start.
  const Dim masks("masks", 2);
  const auto masked = [&](const Tensor& x, const Tensor& starts) {
    const Dim time = x.dim("time");
    const Tensor positions = expand(range(time), {batch, time});
    return scan(Scan{.spatial_dim = masks,
                     .initial = x,
                     .xs = starts,
                     .body =
                         [&](const Tensor& start, const Tensor& x) {
                           return std::pair{None{}, where(positions == start, zeros_like(x), x)};
                         }})
        .state;
  };
  const Tensor starts = tensor({0, 2, 1, 1, 5, 0}, {batch, masks});
  for (const double padding : kPaddings) {
    expect_in_order(run(masked)(x2(padding), starts), {batch, time}, {0, 2, 0, 4, 0, 0, 0, 0, 0});
    expect_values(checked_gradient([&](const Tensor& x) { return sum(square(masked(x, starts))); },
                                   x2(padding, f64)),
                  {0, 4, 0, 8, 0, 0, 0, 0, 0});
  }
}

TEST_P(ReturnnPatterns, P21_TheEndOfASentenceInOrOut) {
  // max_seq_len is the input's length times a factor. Without the end, lengths are one less.
  const auto decode = run([&](const Tensor& x) {
    const Dim time = x.dim("time");
    const auto [ys, last, dim] = scan(Scan{
        .cond_dims = {batch},
        .cond_before_body = false,
        .initial = cast(sum(x, time), i32),
        .cond = [](const Tensor& s) { return s > 0; },
        .body =
            [](const Tensor& s) {
              return std::pair{s - 3, s - 3};
            },
        .max_seq_len = time.lengths() * 2,
    });
    const Tensor finished = last <= 0;
    return std::pair{dim.lengths(), dim.lengths() - cast(finished, i32)};
  });
  for (const double padding : kPaddings) {
    const auto [with, without] = decode(x2(padding));  // 6, 9, 7 in steps of 3; at most 6, 4, 2
    expect_values(with, {2, 3, 2});
    expect_values(without, {1, 2, 2});
  }
}

TEST_P(ReturnnPatterns, P22_ASlowStateThatStepsOnlyWhereAMaskHolds) {
  struct State {
    Tensor fast, slow;
  };
  const auto loss = [&](const std::pair<Tensor, Tensor>& xw) {
    const auto [ys, last, dim] = scan(Scan{
        .spatial_dim = xw.first.dim("time"),
        .initial = State{zeros({batch}, f64), zeros({batch}, f64)},
        .xs = std::pair{xw.first, cast(xw.first, i32) % 2 == 1},
        .body =
            [&](const std::pair<Tensor, Tensor>& x, const State& s) {
              const Tensor fast = tanh(s.fast * xw.second + x.first + s.slow);
              const Tensor slow = where(x.second, s.slow * xw.second + fast, s.slow);
              return std::pair{fast, State{fast, slow}};
            },
    });
    return sum(square(ys)) + sum(last.slow);
  };
  double expected = 0;
  const double rows[3][3] = {{1, 2, 3}, {4, 5, 0}, {7, 0, 0}};
  for (int b = 0; b < 3; ++b) {
    double fast = 0, slow = 0;
    for (int t = 0; t < 3 - b; ++t) {
      fast = std::tanh(fast * .7 + rows[b][t] + slow);
      if (int(rows[b][t]) % 2) slow = slow * .7 + fast;
      expected += fast * fast;
    }
    expected += slow;
  }
  for (const double padding : kPaddings) {
    const std::pair at{x2(padding, f64), scalar(0.7, f64)};
    expect_values(run(loss)(at), {expected}, 1e-12);
    // Differences must not change which frames are odd, so only w is moved.
    const auto by_weight = [&](const Tensor& w) { return loss({x2(padding, f64), w}); };
    checked_gradient(by_weight, scalar(0.7, f64));
  }
}

}  // namespace
}  // namespace reel
