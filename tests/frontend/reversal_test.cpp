// Gradients that went wrong once: each was found by holding eager mode, traces and calls of jitted
// functions under a tape against each other, and each failed before it was mended.
#include <functional>
#include <limits>

#include "reel/tests/modes.h"

namespace reel {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

class ReversalTest : public ::testing::Test {
 protected:
  const Dim batch{"batch", 3};
  const Dim time{"time", tensor({3, 2, 1}, {batch})};
  const Tensor x = tensor({.5, -.3, .8, 1.2, .4, kNan, -.7, kNan, kNan}, {batch, time}, f64);
  const Tensor s0 = tensor({.1, .2, .3}, {batch}, f64);
  const Tensor w = scalar(0.9, f64);

  using In = std::vector<Tensor>;
  using Fn = std::function<Tensor(const In&)>;

  static In valid(In gradients) {
    for (Tensor& g : gradients) g = mask_padding(g);
    return gradients;
  }
  /// First and second gradients agree in all forms: eager, traced, and through a jitted function
  /// under a tape.
  static void expect_all_forms_agree(const Fn& f, const In& in) {
    const auto twice = [](const auto& first) {
      return [first](const In& x) {
        Tensor total = scalar(0.0, f64);
        for (const Tensor& g : first(x)) total = total + sum(square(mask_padding(g)));
        return total;
      };
    };
    const In first = valid(grad(f)(in)), second = valid(grad(twice(grad(f)))(in));
    const auto compare = [&](const In& got, const In& expected) {
      for (std::size_t i = 0; i < expected.size(); ++i)
        expect_all_close(mask_padding(got[i]), expected[i], 1e-12);
    };
    compare(jit(grad(f))(in), first);
    compare(grad(jit(f))(in), first);
    compare(jit(grad(twice(grad(f))))(in), second);
    compare(grad(twice(grad(jit(f))))(in), second);
    compare(grad(jit(twice(grad(f))))(in), second);
    // Central differences of the value, at valid entries.
    for (std::size_t i = 0; i < in.size(); ++i) {
      const std::vector<double> at = values_of(in[i]),
                                is_valid = values_of(mask_padding(ones_like(in[i])));
      for (std::size_t k = 0; k < at.size(); ++k) {
        if (!is_valid[k]) continue;
        const auto moved = [&](double by) {
          In y = in;
          std::vector<double> values = at;
          values[k] += by;
          y[i] = in[i].rank() ? tensor(values, in[i].dims()) : scalar(values[0], f64);
          return f(y).item<double>();
        };
        EXPECT_NEAR(values_of(first[i])[k], (moved(1e-6) - moved(-1e-6)) / 2e-6, 1e-6)
            << "input " << i << ", entry " << k;
      }
    }
  }
};

TEST_F(ReversalTest, EndedEntriesInTheReverseOfAReverseLoop) {
  for (const bool backwards : {false, true})
    expect_all_forms_agree(
        [&](const In& in) {
          auto [ys, last, dim] = scan(Scan{
              .spatial_dim = time,
              .initial = in[1],
              .xs = in[0],
              .body =
                  [&](Tensor x, Tensor s) {
                    Tensor next = tanh(s * in[2] + x);
                    return std::pair{next * x, next};
                  },
              .reverse = backwards,
          });
          return sum(square(ys)) + sum(last * in[1]);
        },
        {x, s0, w});
}

TEST_F(ReversalTest, BodyThatCouplesEntries) {
  expect_all_forms_agree(
      [&](const In& in) {
        auto [ys, last, dim] = scan(Scan{
            .spatial_dim = in[0].dim("time"),
            .initial = in[1],
            .xs = in[0],
            .body =
                [&](Tensor x, Tensor s) {
                  return std::pair{s * x, s + mean(x, batch)};
                },
        });
        return sum(square(ys)) + sum(last) * 0.5;
      },
      {x, s0});
}

TEST_F(ReversalTest, EntriesEndedByACondition) {
  expect_all_forms_agree(
      [&](const In& in) {
        auto [ys, last, dim] = scan(Scan{
            .cond_dims = {batch},
            .initial = in[0],
            .cond = [](Tensor s) { return s < 1.0; },
            .body =
                [&](Tensor s) {
                  return std::pair{s * in[1], s * in[1] + 0.3};
                },
        });
        return sum(square(ys)) + sum(square(last));
      },
      {s0, w});
}

TEST_F(ReversalTest, KnownLengthWithACondition) {
  expect_all_forms_agree(
      [&](const In& in) {
        auto [ys, last, dim] = scan(Scan{
            .spatial_dim = time,
            .cond_dims = {batch},
            .initial = in[1],
            .xs = in[0],
            .cond = [](Tensor s) { return s < 1.1; },
            .body =
                [&](Tensor x, Tensor s) {
                  return std::pair{s * x, s + square(x) * in[2]};
                },
        });
        return sum(square(ys)) + sum(square(last));
      },
      {x, s0, w});
}

TEST_F(ReversalTest, RaggedScanInsideARaggedScan) {
  const Dim inner("inner", tensor({1, 3, 2}, {batch}));
  const Tensor table = tensor({.3, kNan, kNan, .2, -.4, .6, .9, .1, kNan}, {batch, inner}, f64);
  expect_all_forms_agree(
      [&](const In& in) {
        auto [ys, last, dim] = scan(Scan{
            .spatial_dim = time,
            .initial = in[1],
            .xs = in[0],
            .body =
                [&](Tensor x, Tensor s) {
                  auto [zs, z, unused] = scan(Scan{
                      .spatial_dim = inner,
                      .initial = s,
                      .xs = in[2],
                      .body =
                          [&](Tensor t, Tensor s) {
                            return std::pair{s * t, tanh(s + t * x)};
                          },
                  });
                  return std::pair{sum(zs, inner), z};
                },
        });
        return sum(square(ys)) + sum(last);
      },
      {x, s0, table});
}

TEST_F(ReversalTest, ScanOfUnknownLengthInsideAScan) {
  expect_all_forms_agree(
      [&](const In& in) {
        const auto inner = [&](const Tensor& x, const Tensor& s) {
          return scan(Scan{
              .cond_dims = {batch},
              .initial = s,
              .cond = [](const Tensor& q) { return q < 1.0; },
              .body =
                  [&](const Tensor& q) {
                    return std::pair{q * x, q * in[2] + 0.3 + abs(x)};
                  },
              .max_seq_len = 5,
          });
        };
        auto [ys, last, dim] = scan(Scan{
            .spatial_dim = time,
            .initial = in[1],
            .xs = in[0],
            .body =
                [&](const Tensor& x, const Tensor& s) {
                  auto [qs, q, steps] = inner(x, s);
                  return std::pair{sum(qs, steps), q - 0.8};
                },
        });
        return sum(square(ys)) + sum(last);
      },
      {x, s0, scalar(.8, f64)});
}

TEST_F(ReversalTest, DimMadeInABodyThatIsDifferentiatedTwice) {
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
                           const Tensor y = reshape(mask_padding(s), {all});
                           return reshape(y * y + 0.5, s.dims());
                         }),
                         {x});
}

TEST_F(ReversalTest, ArraysOfScan) {
  expect_all_forms_agree(
      [&](const In& in) {
        auto [ys, last, dim] = scan(Scan{
            .spatial_dim = time,
            .initial = in[1],
            .xs = in[0],
            .body =
                [](Tensor x, Tensor s) {
                  return std::pair{std::tuple{s * x, x}, s + x};
                },
            .return_tensor_arrays = std::true_type{},
        });
        const TensorArray p = std::get<0>(ys), q = std::get<1>(ys);
        return sum(p[-1] * q[0] + p[1]) + sum(square(p[1])) + sum(last);
      },
      {x, s0});
}

TEST_F(ReversalTest, ElementThatIsReadIsTheTensorThatWasPushed) {
  expect_all_forms_agree(
      [](const In& in) {
        const TensorArray array = TensorArray({f64, {}}).push_back(in[0]).push_back(in[0] * in[0]);
        return square(array[1]) + array[0] * 3.0;
      },
      {w});
}

TEST_F(ReversalTest, ResultThatIsAnArgumentOrStandsTwice) {
  const auto f = jit([](Tensor x) {
    const Tensor y = x * 2.0;
    return std::tuple{y, y, x};
  });
  Tape tape;
  const Tensor v = scalar(3.0);
  tape.watch(v);
  const auto [p, q, r] = f(v);
  expect_values(tape.gradient(p * p + q * 3.0 + r * v, v), {36});
}

TEST_F(ReversalTest, LoopWithoutBackPropStaysConstantUnderATape) {
  const auto f = jit([](Tensor v) {
    return while_loop([](Tensor v) { return v < 8; }, [](Tensor v) { return v * v; }, v,
                      {.back_prop = false}) *
           v;
  });
  expect_values(grad(f)(scalar(2.0)), {16});
}

TEST_F(ReversalTest, PaddingOfACapturedDimThatIsLongerThanALiveEntrys) {
  const Dim enc("enc", tensor({2, 3, 1}, {batch}));
  const Tensor memory = tensor({.5, .6, kNan, .1, .2, .3, .9, kNan, kNan}, {batch, enc}, f64);
  expect_all_forms_agree(
      [&](const In& in) {
        auto [ys, last, dim] = scan(Scan{
            .spatial_dim = time,
            .initial = in[1],
            .xs = in[0],
            .body =
                [&](Tensor x, Tensor s) {
                  const Tensor attention = softmax(in[2] * s, enc);
                  const Tensor next = sum(attention * in[2], enc) * x + s;
                  return std::pair{next, next};
                },
        });
        return sum(square(ys)) + sum(last);
      },
      {x, s0, memory});
}

TEST_F(ReversalTest, DimMadeInTheFunctionAndUsedInTheBody) {
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

TEST_F(ReversalTest, DimBornInABodyThatOnlyTheReverseMentions) {
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
  // Nothing of the dim is read on the way back but the dim itself.
  check([](const Tensor& s) {
    const Dim t = s.dim("time");
    const Tensor y = pad(s, t, 1, 0, 1);
    return slice(y * 2, y.dim("time"), 0, -1, t);
  });
  check([](const Tensor& s) { return split_dim(merge_dims(s, s.dims()) * 2, 0, s.dims()); });
  check([](const Tensor& s) {
    const Tensor p = pack(s, s.dims());
    return unpack(p * p + 1, 0, s.dims());
  });
}

TEST_F(ReversalTest, ElementsOfListsHaveTheDimsThatAreKnownOutside) {
  // A loop in a loop saves a list, of elements with a dim of their own and one of outside.
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

TEST_F(ReversalTest, SavedListThatOnlyALoopThatDoesNotRunLeadsTo) {
  // The loop in the loop saves as many steps as it takes; its result is read in a third one alone.
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

TEST_F(ReversalTest, SavedListOfElementsWithDimsOfTheirOwnThatNoSecondCotangentReaches) {
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

TEST_F(ReversalTest, SavedListThatNoSecondCotangentReaches) {
  // How many steps the inner loop takes, and so what is saved of it, is known to a run only. It is
  // read where it is largest alone, which second gradients do not come by.
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

TEST_F(ReversalTest, UnknownSizesInLoopsThatDoNotRun) {
  // How many rows there are is known to a run only; no loop but the first takes a step.
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

TEST_F(ReversalTest, SlicesThatTheLoopDoesNotReach) {
  // Their cotangents are zero, and nothing is divided by what was not saved for them.
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

TEST_F(ReversalTest, LoopsOverComputedDims) {
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

TEST_F(ReversalTest, TapeOpenedOutsideATracedBodyIsRefusedInside) {
  const auto f = jit([](Tensor v) {
    Tape tape;
    tape.watch(v);
    return while_loop([](Tensor y) { return y < 8; },
                      [&](Tensor y) { return y + tape.gradient(y * v, v); }, v);
  });
  EXPECT_EQ(message_of<TraceError>([&] { f(scalar(2.0)); }),
            "Tape: gradient is asked for a value of a body or branch that is being recorded, but "
            "the tape was opened outside "
            "it; open the tape inside, or use grad\nin iteration 0 of while_loop \"while\"");
}

}  // namespace
}  // namespace reel
