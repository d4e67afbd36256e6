// while_loop with Dims as leaves of the state, which change from iteration to iteration.
#include "reel/tests/gradients.h"
#include "reel/tests/modes.h"

namespace reel {
namespace {

using LoopDimsTest = InEveryMode;
REEL_IN_EVERY_MODE(LoopDimsTest);

struct History {
  Tensor step, h;
  Dim d;
};

/// Appends the columns of x, one by one, to a history that starts empty.
template <class Start>
auto append_columns(Start start) {
  return [start](const Tensor& x, const Tensor& count) {
    const Dim batch = x.dims()[0], column = x.dims()[1];
    return while_loop([&](const History& s) { return s.step < count; },
                      [&](const History& s) {
                        auto [h, d] = cum_concat(gather(x, s.step, column), s.h, s.d);
                        return History{s.step + 1, h, d};
                      },
                      start(batch, x.dtype()));
  };
}
History static_start(const Dim& batch, DType dtype) {
  const Dim d("hist", 0);
  return {scalar(0), zeros({batch, d}, dtype), d};
}
History dynamic_start(const Dim& batch, DType dtype) {
  const Dim d("hist", scalar(0));
  return {scalar(0), zeros({batch, d}, dtype), d};
}
History ragged_start(const Dim& batch, DType dtype) {
  const Dim d("hist", zeros({batch}, i32));
  return {scalar(0), zeros({batch, d}, dtype), d};
}

TEST_P(LoopDimsTest, AStateMayGrowWithItsDim) {
  const Dim batch("batch", 3), column("column", 3);
  const Tensor x = tensor({1., 2., 3., 4., 5., 6., 7., 8., 9.}, {batch, column});
  const auto check = [&](const auto& start) {
    const auto loop = run(append_columns(start));
    const History s = loop(x, scalar(3));
    EXPECT_EQ(s.h.dims(), (Dims{batch, s.d}));
    EXPECT_EQ(s.d.name(), "hist");
    expect_values(s.h, {1, 2, 3, 4, 5, 6, 7, 8, 9});
    expect_values(sum(s.h, s.d), {6, 15, 24});
    expect_values(max(s.d.lengths()), {3});
    EXPECT_EQ(loop(x, scalar(0)).d.size(), 0);
    expect_values(loop(x, scalar(1)).h, {1, 4, 7});
    EXPECT_EQ(loop.trace_count(), 1);
  };
  check(static_start);
  check(dynamic_start);
  check(ragged_start);
}

TEST_P(LoopDimsTest, GradientsOfAnyOrderGoThroughAGrowingState) {
  const Dim batch("batch", 2), column("column", 3);
  const Tensor x = tensor({.1, .2, .3, .4, .5, .6}, {batch, column}, f64);
  const auto check = [&](const auto& start) {
    const auto loss = [loop = append_columns(start)](const Tensor& x) {
      const History s = loop(x * x, scalar(3));
      return sum(s.h * s.h * s.h);
    };
    const auto f = run(grad(loss));
    expect_gradient_of(loss, x, f(x));
    const auto norm = [&](const Tensor& x) { return sum(square(grad(loss)(x))); };
    expect_gradient_of(norm, x, run(grad(norm))(x), 1e-6);
  };
  check(static_start);
  check(dynamic_start);
  check(ragged_start);
}

/// Every iteration reads the whole history and writes all of it anew.
TEST_P(LoopDimsTest, GradientOfABodyThatReadsItsHistory) {
  const Dim batch("batch", 2);
  const auto loss = [&](const std::pair<Tensor, Tensor>& xw) {
    const auto& [x, w] = xw;
    const History s = while_loop([](const History& s) { return s.step < 3; },
                                 [&](const History& s) {
                                   const Tensor next = tanh(w * x + sum(s.h * s.h, s.d));
                                   auto [h, d] = cum_concat(next, tanh(s.h * w), s.d);
                                   return History{s.step + 1, h, d};
                                 },
                                 static_start(batch, f64));
    return sum(square(s.h));
  };
  const std::pair xw{tensor({.3, -.7}, {batch}, f64), tensor({.5, .9}, {batch}, f64)};
  expect_gradient_of(loss, xw, run(grad(loss))(xw));
  const auto norm = [&](const std::pair<Tensor, Tensor>& xw) {
    const auto [dx, dw] = grad(loss)(xw);
    return sum(square(dx)) + sum(square(dw));
  };
  expect_gradient_of(norm, xw, run(grad(norm))(xw), 1e-6);
}

TEST_P(LoopDimsTest, AStateMayShrinkAndItsDimBeMadeOfNothingOld) {
  const Dim batch("batch", 2), wide("wide", 5);
  const auto loss = [&](const Tensor& x) {
    const Dim start = x.dims()[1];
    const History s = while_loop([](const History& s) { return s.step < 3; },
                                 [&](const History& s) {
                                   const Tensor h = slice(square(s.h), s.d, 1);
                                   return History{s.step + 1, h, h.dims()[1]};
                                 },
                                 History{scalar(0), x, start});
    return sum(s.h);
  };
  const Tensor x = tensor({.1, .2, .3, .4, .5, .6, .7, .8, .9, 1.}, {batch, wide}, f64);
  expect_values(run(loss)(x), {std::pow(.4, 8) + std::pow(.5, 8) + std::pow(.9, 8) + 1}, 1e-12);
  expect_gradient_of(loss, x, run(grad(loss))(x));
}

struct WithFeature {
  Tensor h;
  Dim feature;
};

TEST_P(LoopDimsTest, ADimThatNeverChangesStaysTheSame) {
  const Dim batch("batch", 2), feature("feature", 3);
  const Tensor w = tensor({1., 2., 3.}, {feature});
  const auto f = run([&](const Tensor& h) {
    return while_loop([](const WithFeature& s) { return sum(s.h) < 100; },
                      [&](const WithFeature& s) {
                        return WithFeature{s.h * w * s.feature.size(), s.feature};
                      },
                      WithFeature{h, h.dims()[1]});
  });
  const WithFeature s = f(ones({batch, feature}));
  EXPECT_EQ(s.feature, feature);
  EXPECT_EQ(s.h.dims(), (Dims{batch, feature}));
  expect_values(s.h, {9, 36, 81, 9, 36, 81});
}

/// A changing number of beams, each with a history of its own length.
struct Beams {
  Tensor h;
  Dim beam, d;
};

TEST_P(LoopDimsTest, LengthsOfADimMayRunOverAnotherThatChanges) {
  const Dim batch("batch", 2), start("beam", 1);
  const auto loss = [&](const Tensor& x) {
    const Dim d("hist", zeros({batch, start}, i32));
    const Beams s =
        while_loop([](const Beams& s) { return max(s.d.lengths()) < 3; },
                   [&](const Beams& s) {
                     // Doubles the beams; the second half repeats the first.
                     const Dim more = s.beam * 2;
                     const Tensor from = mod(range(more), s.beam.lengths());
                     const Dim copies("hist", gather(s.d.lengths(), from, s.beam));
                     const Tensor h = rename(gather(s.h, from, s.beam), s.d, copies);
                     auto [next, d] = cum_concat(expand(x, {batch, more}) * 2, h * h, copies);
                     return Beams{next, more, d};
                   },
                   Beams{zeros({batch, start, d}, f64), start, d});
    return sum(s.h);
  };
  const Tensor x = tensor({.5, .7}, {batch}, f64);
  expect_values(run(loss)(x), {8 * (2.4 + 1 + 1.96 + 1 + std::pow(1.4, 4))}, 1e-9);
  expect_gradient_of(loss, x, run(grad(loss))(x));
}

TEST_P(LoopDimsTest, TwoDimsMaySwapPlacesAndGrow) {
  struct Two {
    Tensor step, a, b;
    Dim of_a, of_b;
  };
  const Dim batch("batch", 2);
  const auto loss = [&](const Tensor& x) {
    const Dim a("a", 1), b("b", 2);
    const Two s = while_loop([](const Two& s) { return s.step < 3; },
                             [&](const Two& s) {
                               auto [h, d] = cum_concat(x * sum(s.b, s.of_b), s.a, s.of_a);
                               return Two{s.step + 1, s.b * 2, h, s.of_b, d};
                             },
                             Two{scalar(0), expand(x, {batch, a}), expand(x, {batch, b}), a, b});
    return sum(square(s.a)) + sum(square(s.b)) * 2 + cast(s.of_a.lengths(), f64);
  };
  const Tensor x = tensor({.3, .5}, {batch}, f64);
  expect_gradient_of(loss, x, run(grad(loss))(x), 1e-6);
  const auto norm = [&](const Tensor& x) { return sum(square(grad(loss)(x))); };
  expect_gradient_of(norm, x, run(grad(norm))(x), 1e-5);
}

TEST_P(LoopDimsTest, AnInnerLoopGrowsTheHistoryOfTheOuterOne) {
  const Dim batch("batch", 2);
  const auto loss = [&](const Tensor& x) {
    const Dim d("hist", 1);
    const History s =
        while_loop([](const History& s) { return s.step < 4; },
                   [&](const History& s) {
                     return while_loop([&](const History& t) { return t.step < s.step + 2; },
                                       [&](const History& t) {
                                         auto [h, d] = cum_concat(sum(t.h, t.d) * x, t.h * x, t.d);
                                         return History{t.step + 1, h, d};
                                       },
                                       s);
                   },
                   History{scalar(0), expand(x, {batch, d}), d});
    return sum(square(s.h));
  };
  const Tensor x = tensor({.3, .5}, {batch}, f64);
  expect_gradient_of(loss, x, run(grad(loss))(x), 1e-6);
  const auto norm = [&](const Tensor& x) { return sum(square(grad(loss)(x))); };
  expect_gradient_of(norm, x, run(grad(norm))(x), 1e-5);
}

TEST_P(LoopDimsTest, AJittedStepTakesAHistoryThatGrowsFromCallToCall) {
  const Dim batch("batch", 2);
  const auto two_steps = run([](const History& s, const Tensor& x) {
    return while_loop([&](const History& t) { return t.step < s.step + 2; },
                      [&](const History& t) {
                        auto [h, d] = cum_concat(x, t.h, t.d);
                        return History{t.step + 1, h, d};
                      },
                      s);
  });
  History s = dynamic_start(batch, f32);
  for (int i = 1; i < 4; ++i) s = two_steps(s, full({batch}, i));
  expect_values(s.h, {1, 1, 2, 2, 3, 3, 1, 1, 2, 2, 3, 3});
  EXPECT_EQ(two_steps.trace_count(), 1);
}

/// Only the Dim of the result is used, and none of its tensors.
TEST_P(LoopDimsTest, TheDimOfAHistoryMayBeAllThatIsUsed) {
  const Dim batch("batch", 2), column("column", 3);
  const auto f = run([](const Tensor& x, const Tensor& count) {
    const Dim d = append_columns(static_start)(x, count).d;
    return range(d) + d.lengths();
  });
  expect_values(f(ones({batch, column}), scalar(3)), {3, 4, 5});
  expect_values(f(ones({batch, column}), scalar(0)), {});
}

// ---- Errors -------------------------------------------------------------------------------------

struct Twice {
  Tensor h;
  Dim first, second;
};

TEST_P(LoopDimsTest, Case105_ADimInTwoSlots) {
  const Dim batch("batch", 2);
  const auto f = run([&](const Tensor& x) {
    return while_loop([](const Twice&) { return scalar(false); }, [](const Twice& s) { return s; },
                      Twice{x, x.dims()[0], x.dims()[0]}, {.name = "search"})
        .h;
  });
  EXPECT_EQ(message_of<StructureError>([&] { f(ones({batch})); }),
            "while_loop \"search\": Dim batch=2 is in the state twice, as state.first and "
            "state.second; a Dim in the state may change, so let one leaf hold it");
}

TEST_P(LoopDimsTest, Case106_ATensorAndItsDimChangeTogether) {
  const Dim batch("batch", 2);
  const auto loop = [&](bool grows, bool says) {
    return run([=](const Tensor& x) {
      const Dim hist("hist", 0);
      return while_loop([](const History& s) { return s.step < 2; },
                        [&](const History& s) {
                          auto [h, d] = cum_concat(x, s.h, s.d);
                          return History{s.step + 1, grows ? h : s.h, says ? d : s.d};
                        },
                        History{scalar(0), zeros({x.dims()[0], hist}), hist}, {.name = "search"})
          .h;
    });
  };
  EXPECT_EQ(message_of<ShapeError>([&] { loop(true, false)(ones({batch})); }),
            "while_loop \"search\": the state returned by the body differs from the state it was "
            "given\n  state.h: f32[batch=2,hist=0] going in, f32[batch=2,hist+1=1] coming out "
            "(dims differ)\nReturn every leaf with the type it had on entry. state.d was returned "
            "unchanged: return its new Dim there if tensors that have hist=0 change it.");
  const std::string text = message_of<ShapeError>([&] { loop(false, true)(ones({batch})); });
  EXPECT_EQ(
      text,
      "while_loop \"search\": the state returned by the body differs from the state it was given\n "
      " state.h: f32[batch=2,hist=0] going in, f32[batch=2,hist=0] coming out (dims differ: "
      "expected f32[batch=2,hist+1=1])\nReturn every leaf with the type it had on entry. state.d "
      "was returned as hist+1=1, so tensors that had hist=0 have the returned Dim instead.");
}

struct Collected {
  Tensor step;
  TensorArray all;
  Tensor h;
  Dim d;
};

TEST_P(LoopDimsTest, ErrorOfAnArrayWhoseElementsHaveADimThatChanges) {
  const Dim batch("batch", 2);
  const auto f = run([](const Tensor& x) {
    const Dim batch = x.dims()[0], hist("hist", 0);
    return while_loop([](const Collected& s) { return s.step < 2; },
                      [&](const Collected& s) {
                        auto [h, d] = cum_concat(x, s.h, s.d);
                        return Collected{s.step + 1, s.all.push_back(s.h), h, d};
                      },
                      Collected{scalar(0), TensorArray(TensorType(f32, {batch, hist})),
                                zeros({batch, hist}), hist})
        .h;
  });
  EXPECT_EQ(
      message_of<ShapeError>([&] { f(ones({batch})); }),
      "while_loop \"while\": the state returned by the body differs from the state it was given\n  "
      "state.all: list of f32[batch=2,hist=0] going in, list of f32[batch=2,hist=0] coming out "
      "(dims differ)\nReturn every leaf with the type it had on entry. state.d was returned as "
      "hist+1=1, so tensors that had hist=0 have the returned Dim instead. An array keeps elements "
      "of one type, so a Dim of theirs cannot change; keep values that grow in a tensor.");
}

TEST_P(LoopDimsTest, ErrorOfAPlainSizeThatChanges) {
  using State = std::tuple<Tensor, Dim>;
  const auto f = run([](const Tensor& x) {
    return std::get<0>(while_loop([](const State& s) { return std::get<0>(s) < 2; },
                                  [](const State& s) {
                                    return State{std::get<0>(s) + 1, Dim(4)};
                                  },
                                  State{x, Dim(3)}));
  });
  EXPECT_EQ(message_of<ShapeError>([&] { f(scalar(0)); }),
            "while_loop \"while\": the state returned by the body differs from the state it was "
            "given\n"
            "  state.1: Dim 3 going in, Dim 4 coming out (dims differ)\n"
            "Return every leaf with the type it had on entry. state.1 may change only if it starts "
            "as a Dim with a name and a size.");
}

TEST_P(LoopDimsTest, ErrorOfALengthPerEntryWhereThereWasOneSize) {
  const Dim batch("batch", 2);
  const auto f = run([](const Tensor& x) {
    const Dim hist("hist", 0);
    return while_loop([](const History& s) { return s.step < 2; },
                      [&](const History& s) {
                        const Dim d("hist", range(x.dims()[0]));
                        return History{s.step + 1, zeros({x.dims()[0], d}), d};
                      },
                      History{scalar(0), zeros({x.dims()[0], hist}), hist})
        .h;
  });
  EXPECT_EQ(message_of<ShapeError>([&] { f(ones({batch})); }),
            "while_loop \"while\": the state returned by the body differs from the state it was "
            "given\n"
            "  state.d: Dim hist=0 going in, Dim hist[batch=2] coming out (dims differ)\n"
            "Return every leaf with the type it had on entry. state.d may change, but its lengths "
            "run over the same dims in every iteration; start from Dim(\"hist\", lengths) with "
            "lengths over them.");
}

}  // namespace
}  // namespace reel
