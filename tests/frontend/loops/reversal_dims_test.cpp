// Reversal tests as in reversal_test.cpp, with dims made in a body, or sizes known only at run
// time.
#include "reel/tests/frontend/loops/reversal.h"

namespace reel {
namespace {

using ReversalDimsTest = ReversalTest;

TEST_F(ReversalDimsTest, DimMadeInABodyThatIsDifferentiatedTwice) {
  const auto twice = [](const auto& step) {
    return [step](const In& in) {
      auto [i, s] = while_loop([](Tensor i, Tensor) { return i < 2; },
                               [&](Tensor i, Tensor s) {
                                 return std::tuple{i + 1, step(s, s.dim("time"))};
                               },
                               std::tuple{0, in[0]});
      return sum(square(s)) * 0.01;
    };
  };
  expect_all_forms_agree(twice([](const Tensor& s, const Dim& time) {
                           const Dim picked("picked", sum(time.lengths()));
                           const Tensor y = gather(s, range(picked) * 0, time);
                           return s * sum(y * y + 1, picked) * 0.1;
                         }),
                         {x});
  expect_all_forms_agree(twice([](const Tensor& s, const Dim& time) {
                           const Dim all("all", sum(time.lengths()) + 3);
                           const Tensor y = reshape(s, {all});
                           return reshape(y * y + 0.5, s.dims());
                         }),
                         {x});
}

TEST_F(ReversalDimsTest, DimMadeInTheFunctionAndUsedInTheBody) {
  const Dim feature("feature", 2);
  const Tensor start = tensor({.1, .2, .3, .4, .5, .6}, {batch, feature}, f64);
  expect_all_forms_agree(
      [&](const In& in) {
        const Dim other("other", 2);
        auto [ys, last, dim] = scan(Scan{
            .spatial_dim = time,
            .initial = in[1],
            .xs = in[0],
            .body =
                [&](Tensor x, Tensor s) {
                  const Tensor gram = matmul(s, rename(s, feature, other), batch);
                  const Tensor next = rename(matmul(s, gram, feature), other, feature) * 0.3 + x;
                  return std::pair{None{}, next};
                },
        });
        return sum(square(last));
      },
      {x, start});
}

TEST_F(ReversalDimsTest, DimBornInABodyThatOnlyTheReverseMentions) {
  const auto check = [this](const auto& step) {
    const auto loss = [step](const Tensor& x) {
      return sum(square(std::get<1>(while_loop([](const Tensor& i, const Tensor&) { return i < 2; },
                                               [step](const Tensor& i, const Tensor& s) {
                                                 return std::tuple{i + 1, step(s)};
                                               },
                                               std::tuple{scalar(0), x}))));
    };
    const auto second = [loss](const Tensor& x) {
      return grad([&](const Tensor& x) { return sum(grad(loss)(x) * x); })(x);
    };
    expect_all_close(mask_padding(jit(grad(loss))(x)), mask_padding(grad(loss)(x)), 1e-12);
    expect_all_close(mask_padding(jit(second)(x)), mask_padding(second(x)), 1e-12);
  };
  // The gradient reads the dim itself, but no tensor with the dim.
  check([](const Tensor& s) {
    const Dim t = s.dim("time");
    const Tensor y = pad(s, t, 1, 0, 1);
    return slice(y * 2, y.dim("time"), 0, -1, t);
  });
  check([](const Tensor& s) {
    return split_dim(merge_dims(s, s.dims(), {.counts_padding = true}) * 2, 0, s.dims());
  });
  check([](const Tensor& s) {
    const Tensor p = pack(s, s.dims());
    return unpack(p * p + 1, 0, s.dims());
  });
}

TEST_F(ReversalDimsTest, DimOfABranchsLoopThatAnInnerLoopMentions) {
  const Dim in("in", 2);
  const auto f = [&](const In& x) {
    const auto step = [&](const Tensor& i, const Tensor& s) {
      const auto terms = scan(Scan{.spatial_dim = in,
                                   .initial = scalar(0),
                                   .xs = x[0],
                                   .body =
                                       [&](Tensor, Tensor n) {
                                         return std::pair{i, n + 1};
                                       },
                                   .max_seq_len = i + 1});
      const auto more = [&](const Tensor& n) {
        return n + cast(sum(ones_like(expand(s, {terms.dim, in}))), i32);
      };
      const Tensor count =
          while_loop([](const Tensor& n) { return n < 3; }, more, sum(terms.ys) * 0);
      return std::tuple{i + 1, s * cast(count, f64) * 0.1 + x[0]};
    };
    return cond(
        sum(x[0]) > 100.0, [&] { return sum(x[0]); },
        [&] {
          const auto last = while_loop([](const Tensor& i, const Tensor&) { return i < 2; }, step,
                                       std::tuple{0, x[0]});
          return sum(square(std::get<1>(last)));
        });
  };
  expect_all_forms_agree(f, {tensor({.5, -.3}, {in}, f64)});
}

TEST_F(ReversalDimsTest, ElementsOfListsHaveTheDimsThatAreKnownOutside) {
  // An inner loop saves a list of elements with a dim of their own and a dim of the outside.
  const auto f = [&](const In& in) {
    const Dim steps = scan(Scan{.spatial_dim = Dim("steps"),
                                .cond_dims = {batch},
                                .initial = scalar(0., f64),
                                .cond = [&](Tensor) { return range(batch) < 2; },
                                .body =
                                    [](Tensor s) {
                                      return std::pair{None{}, s};
                                    },
                                .max_seq_len = scalar(2, i32)})
                          .dim;
    const auto inner = [&] {
      return scan(Scan{.cond_dims = {batch},
                       .initial = full({steps}, 1., f64),
                       .cond = [&](Tensor) { return range(batch) < 1; },
                       .body =
                           [&](Tensor s) {
                             return std::pair{None{}, tanh(s + in[0])};
                           },
                       .max_seq_len = scalar(3, i32)})
          .state;
    };
    const auto outer = scan(Scan{.initial = None{},
                                 .cond = [](None) { return full({}, true, boolean); },
                                 .body =
                                     [&](None) {
                                       return std::pair{inner(), None{}};
                                     },
                                 .max_seq_len = scalar(2, i32)});
    return sum(square(outer.ys));
  };
  expect_all_forms_agree(f, {w});
}

TEST_F(ReversalDimsTest, GradientsAgreeIfOnlyALoopThatNeverRunsReadsResiduals) {
  // The inner loop saves residuals for a number of iterations known only at run time. Its result is
  // read only in a third loop, which does not run.
  const auto f = [](const In& in) {
    using State = std::pair<Tensor, Tensor>;
    const auto some = [](const Tensor& steps, const Tensor& s) {
      const auto later = [&](Tensor) { return steps > 0; };
      const auto body = [](Tensor s) { return std::pair{None{}, tanh(s)}; };
      return scan(Scan{.cond_dims = {},
                       .initial = s / (1.5 + square(s)),
                       .cond = later,
                       .body = body,
                       .max_seq_len = scalar(2, i32)})
          .state;
    };
    const auto body = [&](const State& s) { return State{s.first + 1, some(s.first, s.second)}; };
    const State start{scalar(0, i32), in[0]};
    const State last = while_loop([](const State& s) { return s.first < 2; }, body, start);
    const auto never = [&](Tensor s) { return sum(s) > 100.0; };
    return sum(sin(while_loop(
        never, [&](Tensor) { return last.second; }, in[0])));
  };
  expect_all_forms_agree(f, {tensor({.1, .2}, {2}, f64)});
}

TEST_F(ReversalDimsTest, GradientsAgreeIfNoSecondCotangentReachesResidualsWithOwnDims) {
  // Each iteration makes the dim anew.
  const auto f = [&](const In& in) {
    using State = std::pair<Tensor, Tensor>;
    const auto body = [&](const State& s) {
      const auto inner = scan(Scan{.spatial_dim = Dim("steps"),
                                   .cond_dims = {batch},
                                   .initial = None{},
                                   .cond = [&](None) { return range(batch) < 2; },
                                   .body =
                                       [&](None) {
                                         return std::pair{in[0], None{}};
                                       },
                                   .max_seq_len = scalar(2, i32)});
      return State{s.first + 1, max(inner.ys, inner.dim)};
    };
    const State start{scalar(0, i32), scalar(0., f64)};
    return sum(sin(while_loop([](const State& s) { return s.first < 2; }, body, start).second));
  };
  expect_all_forms_agree(f, {w});
}

TEST_F(ReversalDimsTest, GradientsAgreeIfNoSecondCotangentReachesResiduals) {
  // The number of the inner loop's iterations, and of its residuals, is known only at run time. The
  // residuals are read only through max, which passes no second gradients.
  const auto f = [](const In& in) {
    using State = std::pair<Tensor, Tensor>;
    const auto body = [](const State& s) {
      const auto add_largest = [](Tensor s) { return std::pair{None{}, s + max(s, 1, Keep::yes)}; };
      const auto inner = scan(Scan{.initial = s.second,
                                   .cond = [](Tensor) { return full({}, true, boolean); },
                                   .body = add_largest,
                                   .max_seq_len = s.first});
      return State{s.first + 1, inner.state};
    };
    const auto always = [](const State&) { return true; };
    const State start{scalar(0, i32), in[0]};
    return sum(sin(while_loop(always, body, start, {.maximum_iterations = 3}).second));
  };
  expect_all_forms_agree(f, {tensor({.1, .2, .4, .3}, {2, 2}, f64)});
}

TEST_F(ReversalDimsTest, GradientsAgreeIfResidualsOfFinishedEntriesChangeSize) {
  // The residuals of the innermost scan are longer in every iteration of the loop around it. They
  // have a dim that finished entries of the outermost loop see with other lengths.
  const Dim own("own", tensor({1, 2, 1}, {batch}));
  const auto f = [&](const In& in) {
    const auto replace = [&](const Tensor& i, const Tensor& s) {
      const auto body = [&](const Tensor& s) { return std::pair{None{}, tanh(s) * s * in[1]}; };
      return scan(Scan{.spatial_dim = Dim("steps"),
                       .cond_dims = {batch},
                       .initial = s,
                       .cond = [&](const Tensor& s) { return sum(s, s.dim("own")) < 9.0; },
                       .body = body,
                       .max_seq_len = i})
          .state;
    };
    const auto step = [&](const Tensor& x, const Tensor& s) {
      return std::pair{None{}, fori_loop(0, 3, replace, s) + x};
    };
    return sum(
        square(scan(Scan{.spatial_dim = time, .initial = in[0], .xs = x, .body = step}).state));
  };
  expect_all_forms_agree(f, {tensor({.5, kNan, .8, 1.2, .4, kNan}, {batch, own}, f64), w});
}

TEST_F(ReversalDimsTest, UnknownSizesInLoopsThatDoNotRun) {
  // The number of rows is known only at run time, and only the first loop has an iteration.
  const auto f = [](const In& in) {
    const auto rows = scan(Scan{.xs = ones({3}),
                                .body = [&](Tensor) { return in[0]; },
                                .max_seq_len = scalar(2, i32)})
                          .ys;
    const auto never = [&](Tensor) { return sum(in[0]) > 100.0; };
    const auto squares = [&](const Tensor& x) {
      const auto body = [](Tensor s) { return std::pair{None{}, s * s}; };
      return scan(Scan{.cond_dims = {}, .initial = x, .cond = never, .body = body}).state;
    };
    const auto captured = while_loop(
        never, [&](Tensor) { return squares(rows); }, rows);
    const auto body = [&](Tensor x, Tensor s) { return std::pair{squares(x), s}; };
    const auto sliced = scan(Scan{
        .initial = scalar(0., f64), .xs = stack({rows, rows}, 0), .cond = never, .body = body});
    return sum(sin(captured)) + sum(sliced.ys);
  };
  expect_all_forms_agree(f, {w});
}

TEST_F(ReversalDimsTest, SlicesThatTheLoopDoesNotReach) {
  // The cotangents of unread slices are zero, and must not be divided by residuals that were never
  // saved.
  const auto f = [](const In& in) {
    const auto body = [](Tensor x, Tensor s) { return std::pair{None{}, s + log(1.5 + sin(x))}; };
    const auto until = [&](Tensor s) { return max(s) < 0.75; };
    const Scan loop{.initial = in[1], .xs = in[0], .cond = until, .body = body};
    return sum(sin(scan(loop).state));
  };
  const Tensor xs = tensor({.1, .2, .3, .4}, {4}, f64);
  expect_all_forms_agree(f, {xs, tensor({0., -.1}, {2}, f64)});
  expect_all_forms_agree(f, {xs, tensor({1., -.1}, {2}, f64)});
}

TEST_F(ReversalDimsTest, LoopsOverComputedDims) {
  expect_all_forms_agree(
      [](const In& in) {
        const Dim t = in[0].dim("time");
        const auto [i, s] = while_loop([](const Tensor& i, const Tensor&) { return i < 2; },
                                       [t](const Tensor& i, const Tensor& s) {
                                         const Tensor y = slice(s, t + 1, 1, {}, t);
                                         return std::tuple{i + 1, pad(y * y, t, 1, 0, 1, t + 1)};
                                       },
                                       std::tuple{scalar(0), pad(in[0], t, 0, 1, 0, t + 1)});
        return sum(square(s));
      },
      {x});
  expect_all_forms_agree(
      [](const In& in) {
        const Dim longer = in[0].dim("time") + 1;
        const auto [ys, last, dim] = scan(Scan{
            .spatial_dim = longer,
            .initial = in[1],
            .xs = pad(in[0], in[0].dim("time"), 1, 0, 0.5, longer),
            .body =
                [](const Tensor& x, const Tensor& s) {
                  return std::pair{s * x + x, s + x};
                },
        });
        return sum(ys) + sum(square(last));
      },
      {x, s0});
  expect_all_forms_agree(
      [](const In& in) {
        const Dim t = in[0].dim("time"), twice = t + t;
        const Tensor y = concat({in[0], square(in[0])}, t, twice);
        return sum(square(slice(y, twice, -1, {}, -2, ceildiv(twice, 2))));
      },
      {x});
}

}  // namespace
}  // namespace reel
