// cond as RETURNN's users need it: parameters in both branches, untaken branches, and Dims that
// branches make.
#include "reel/tests/gradients.h"
#include "reel/tests/modes.h"

namespace reel {
namespace {

using ReturnnCond = InEveryMode;
REEL_IN_EVERY_MODE(ReturnnCond);

struct Params {
  Tensor even, odd, shared;
};

Tensor choose(const Params& p, const Tensor& x) {
  const Dim time = x.dims()[1];
  return cond(
      mod(time.lengths(), 2) < 1, [&] { return x * p.even * p.shared; },
      [&] { return x * p.odd + p.shared; });
}

TEST_P(ReturnnCond, Case94_TakenBranchGivesValueAndGradient) {
  const Dim batch("batch", 2);
  const Params p{scalar(2., f64), scalar(10., f64), scalar(3., f64)};
  const auto f = run(choose);
  const auto loss = [](const Params& p, const Tensor& x) { return sum(choose(p, x)); };
  const auto gradient = run(grad(loss));
  for (const int size : {5, 6}) {
    const Dim time("time", scalar(size));
    const Tensor x = ones({batch, time}, f64);
    expect_values(f(p, x), std::vector<double>(2 * size, size % 2 ? 13 : 6));
    const Params dp = gradient(p, x);
    expect_values(dp.even, {size % 2 ? 0. : 36});
    expect_values(dp.odd, {size % 2 ? 10. : 0});
    expect_values(dp.shared, {size % 2 ? 10. : 24});
  }
  EXPECT_EQ(f.trace_count(), 1);
}

TEST_P(ReturnnCond, Case94_TwoCondsAddGradientsOfASharedParameter) {
  const auto twice = [](const Tensor& w, const std::pair<Tensor, Tensor>& preds) {
    Tensor x = w;
    for (const Tensor& pred : {preds.first, preds.second})
      x = cond(
          pred, [&] { return x * w; }, [&] { return x + w; });
    return x;
  };
  const auto f = run(grad(twice));
  const Tensor w = scalar(3., f64), yes = scalar(true), no = scalar(false);
  expect_values(f(w, std::pair{yes, yes}), {27});
  expect_values(f(w, std::pair{yes, no}), {7});
  expect_values(f(w, std::pair{no, yes}), {12});
  expect_values(f(w, std::pair{no, no}), {3});
}

TEST_P(ReturnnCond, Case95_OnlyTheTakenBranchRuns) {
  const auto f = run([](const Tensor& p, const Tensor& x) {
    return cond(
        p, [&] { return print(x, "yes"); }, [&] { return print(x * 2, "no"); });
  });
  for (const bool taken : {true, false, true}) {
    testing::internal::CaptureStdout();
    f(scalar(taken), scalar(1.0));
    EXPECT_EQ(testing::internal::GetCapturedStdout(),
              taken ? "yes: f32[] 1.0\n" : "no: f32[] 2.0\n");
  }
}

TEST(ReturnnEagerCond, Case95_TheOtherBranchIsNotCalled) {
  int yes = 0, no = 0;
  cond(
      scalar(true), [&] { return scalar(++yes); }, [&] { return scalar(++no); });
  EXPECT_EQ(yes, 1);
  EXPECT_EQ(no, 0);
}

TEST_P(ReturnnCond, Case96_ANumberOfCppIsDecidedAtOnce) {
  const auto f = run([](const Tensor& x) {
    return cond(
        false, [&] { return zeros({5}); }, [&] { return x; });
  });
  expect_values(f(tensor({1., 2.})), {1, 2});
}

TEST_P(ReturnnCond, Case97_UntakenBranchMakesNoNaNInGradients) {
  const auto f = [](const std::pair<Tensor, Tensor>& xy) {
    const auto& [x, y] = xy;
    return cond(
        x > 0.0, [&] { return x * x; }, [&] { return x / y + log(y) * sqrt(y); });
  };
  const std::pair at{scalar(3., f64), scalar(0., f64)};
  expect_values(run(f)(at), {9});
  const auto [dx, dy] = run(grad(f))(at);
  expect_values(dx, {6});
  EXPECT_EQ(std::signbit(dy.item<double>()), false);
  expect_values(dy, {0});
  const auto second = [&](const std::pair<Tensor, Tensor>& xy) { return sum(grad(f)(xy).first); };
  const auto [dxx, dxy] = run(grad(second))(at);
  expect_values(dxx, {2});
  expect_values(dxy, {0});
}

// ---- Dims from branches (RETURNN issue 1237) ----------------------------------------------------

struct Sequence {
  Tensor x;
  Dim time;
};

/// Returns the positive elements of each row, squared, or all elements without the first.
Sequence shortened(const Tensor& pred, const Tensor& x) {
  const Dim batch = x.dims()[0], time = x.dims()[1];
  return cond(
      pred,
      [&] {
        const Tensor y = pack(x * x, x > 0, {time});
        return Sequence{y, y.dims()[1]};
      },
      [&] {
        const Tensor y = slice(x * 3, time, 1);
        return Sequence{y, y.dims()[1]};
      });
}

TEST_P(ReturnnCond, BranchesMayEachMakeADim) {
  const Dim batch("batch", 2), time("time", tensor({3, 2}, {batch}));
  const Tensor x = tensor(std::vector<double>{1, -2, 3, 4, -5, 9}, {batch, time}, f64);
  const auto f = run(shortened);
  const auto [a, of_a] = f(scalar(true), x);
  expect_values(of_a.lengths(), {2, 1});
  EXPECT_EQ(a.dims(), (Dims{batch, of_a}));
  expect_values(mask_padding(a), {1, 9, 16, 0});
  const auto [b, of_b] = f(scalar(false), x);
  expect_values(of_b.lengths(), {2, 1});
  EXPECT_EQ(b.dims(), (Dims{batch, of_b}));
  expect_values(mask_padding(b), {-6, 9, -15, 0});
  EXPECT_EQ(f.trace_count(), 1);

  for (const bool pred : {true, false}) {
    const auto loss = [&](const Tensor& x) {
      const auto [y, dim] = shortened(scalar(pred), x);
      return sum(sum(y * y, dim) * cast(dim.lengths(), f64));
    };
    const Tensor valid = mask_padding(x);
    const Tensor dx = run(grad(loss))(valid);
    expect_gradient_of(loss, valid, dx, 1e-6);
    const auto norm = [&](const Tensor& x) { return sum(square(grad(loss)(x))); };
    expect_gradient_of(norm, valid, run(grad(norm))(valid), 1e-5);
    const double nan = std::numeric_limits<double>::quiet_NaN();
    expect_all_close(mask_padding(run(grad(loss))(mask_padding(x, nan))), dx, 1e-12);
  }
}

TEST_P(ReturnnCond, ADimFromOutsideMayMeetAnother) {
  const Dim batch("batch", 2), time("time", 3);
  const auto f = [&](const Tensor& pred, const Tensor& x) {
    const Dim time = x.dims()[1];
    return cond(
        pred,
        [&] {
          return Sequence{x * x, time};
        },
        [&] {
          auto [y, longer] = cum_concat(sum(x, time), x, time);
          return Sequence{y, longer};
        });
  };
  const Tensor x = tensor({1., 2., 3., 4., 5., 6.}, {batch, time}, f64);
  expect_values(run(f)(scalar(true), x).x, {1, 4, 9, 16, 25, 36});
  expect_values(run(f)(scalar(false), x).x, {1, 2, 3, 6, 4, 5, 6, 15});
  for (const bool pred : {true, false}) {
    const auto loss = [&](const Tensor& x) {
      const Sequence s = f(scalar(pred), x);
      return sum(square(sum(s.x, s.time)));
    };
    expect_gradient_of(loss, x, run(grad(loss))(x), 1e-6);
  }
}

TEST_P(ReturnnCond, ADimThatBothBranchesReturnStaysTheSame) {
  const Dim batch("batch", 2), time("time", 3);
  const auto f = run([](const Tensor& pred, const Tensor& x) {
    const Dim time = x.dims()[1];
    const Sequence s = cond(
        pred,
        [&] {
          return Sequence{x * x, time};
        },
        [&] {
          return Sequence{x * 2, time};
        });
    return Sequence{s.x + x, s.time};
  });
  const Sequence s = f(scalar(false), ones({batch, time}));
  EXPECT_EQ(s.time, time);
  expect_values(s.x, {3, 3, 3, 3, 3, 3});
}

/// Dims that the branches make need no leaf of their own in the result.
TEST_P(ReturnnCond, ATensorAloneMayHaveADimThatBothBranchesMake) {
  const auto f = [](const Tensor& pred, const Tensor& x) {
    const Dim time = x.dims()[0];
    return sum(cond(
        pred, [&] { return pack(x * x, x > 0, {time}); }, [&] { return slice(x, time, 1); }));
  };
  const Tensor x = tensor({1., -2., 3.}, {Dim("time", scalar(3))}, f64);
  expect_values(run(f)(scalar(true), x), {10});
  expect_values(run(f)(scalar(false), x), {1});
  const auto loss = [&](const Tensor& x) { return f(scalar(true), x); };
  expect_values(run(grad(loss))(x), {2, 0, 6});
}

TEST_P(ReturnnCond, LoopsWithDimsThatChangeInBothBranches) {
  const Dim batch("batch", 2);
  const auto grow = [](const Tensor& x, int steps) {
    const Dim hist("hist", 0);
    return while_loop([=](const Sequence& s) { return s.time.lengths() < steps; },
                      [&](const Sequence& s) {
                        auto [h, d] = cum_concat(x * x, s.x * 2, s.time);
                        return Sequence{h, d};
                      },
                      Sequence{zeros({x.dims()[0], hist}, f64), hist});
  };
  const auto f = [&](const Tensor& pred, const Tensor& x) {
    return cond(
        pred, [&] { return grow(x, 2); }, [&] { return grow(x * 3, 3); });
  };
  const Tensor x = tensor({1., 2.}, {batch}, f64);
  expect_values(run(f)(scalar(true), x).x, {2, 1, 8, 4});
  expect_values(run(f)(scalar(false), x).x, {36, 18, 9, 144, 72, 36});
  for (const bool pred : {true, false}) {
    const auto loss = [&](const Tensor& x) {
      const Sequence s = f(scalar(pred), x);
      return sum(square(s.x));
    };
    expect_gradient_of(loss, x, run(grad(loss))(x), 1e-5);
  }
}

TEST_P(ReturnnCond, ABranchInALoopDecidesWhetherAHistoryGrows) {
  const Dim batch("batch", 2);
  const auto f = [](const Tensor& x) {
    const Dim hist("hist", 0);
    return std::get<1>(
        while_loop([](const std::tuple<Tensor, Sequence>& s) { return std::get<0>(s) < 5; },
                   [&](const std::tuple<Tensor, Sequence>& state) {
                     const auto& [i, s] = state;
                     return std::tuple{i + 1, cond(
                                                  mod(i, 2) < 1,
                                                  [&] {
                                                    auto [h, d] = cum_concat(x, s.x * x, s.time);
                                                    return Sequence{h, d};
                                                  },
                                                  [&] { return s; })};
                   },
                   std::tuple{scalar(0), Sequence{zeros({x.dims()[0], hist}, f64), hist}}));
  };
  const Tensor x = tensor({2., 3.}, {batch}, f64);
  const Sequence s = run(f)(x);
  EXPECT_EQ(s.time.size(), 3);
  expect_values(s.x, {8, 4, 2, 27, 9, 3});
  const auto loss = [&](const Tensor& x) { return sum(square(f(x).x)); };
  expect_gradient_of(loss, x, run(grad(loss))(x), 1e-5);
}

// ---- Errors -------------------------------------------------------------------------------------

TEST(ReturnnTracedCond, Case122_BranchesThatDiffer) {
  const Dim a("a", 3), b("b", 3);
  const auto both = [](auto yes, auto no) {
    return jit([=](const Tensor& p) { return cond(p, yes, no); });
  };
  EXPECT_EQ(message_of<ShapeError>([&] {
              both([&] { return zeros({a}); }, [&] { return zeros({b}); })(scalar(true));
            }),
            "cond: the branches return different types\n"
            "  result: f32[a=3] if true, f32[b=3] if false (dims differ)\n"
            "Return the same type from both. Where a dim differs on purpose, return the Dim as "
            "well: the result then has a new one.");
  EXPECT_EQ(
      message_of<ShapeError>(
          [&] { both([] { return zeros({2}); }, [] { return zeros({3}); })(scalar(true)); }),
      "cond: the branches return different types\n"
      "  result: f32[2] if true, f32[3] if false (dims differ)\nReturn the same type from both.");
  EXPECT_EQ(message_of<DTypeError>([&] {
              both([&] { return zeros({a}); }, [&] { return zeros({a}, i32); })(scalar(true));
            }),
            "cond: the branches return different types\n"
            "  result: f32[a=3] if true, i32[a=3] if false (dtypes differ)\nReturn the same type "
            "from both.");
  const auto sized = [](int n) { return [=] { return std::vector<Tensor>(n, scalar(1.0)); }; };
  EXPECT_EQ(message_of<StructureError>([&] { both(sized(1), sized(2))(scalar(true)); }),
            "cond: the branches return different types\n"
            "  result.1: nothing if true, f32[] if false\n"
            "Return the same type from both.");
  const Dim batch("batch", 2);
  EXPECT_EQ(message_of<ShapeError>([&] {
              both(
                  [&] {
                    return Sequence{zeros({batch, a}), a};
                  },
                  [&] {
                    const Dim t("t", tensor({1, 2}, {batch}));
                    return Sequence{zeros({batch, t}), t};
                  })(scalar(true));
            }),
            "cond: the branches return different types\n"
            "  result.x: f32[batch=2,a=3] if true, f32[batch=2,t[batch=2]] if false (dims differ)\n"
            "  result.time: Dim a=3 if true, Dim t[batch=2] if false (dims differ)\n"
            "Return the same type from both. Where a dim differs on purpose, return the Dim as "
            "well: the result then has a new one.");
}

}  // namespace
}  // namespace reel
