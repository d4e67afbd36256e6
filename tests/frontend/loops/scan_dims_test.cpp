// Dims as leaves of a scan's state while entries finish one by one; ys with dims made in the body.
#include "reel/tests/gradients.h"
#include "reel/tests/modes.h"

namespace reel {
namespace {

using ScanDimsTest = InEveryMode;
REEL_IN_EVERY_MODE(ScanDimsTest);

struct History {
  Tensor step, h;
  Dim d;
};

/// A finished entry also sees the lengths of a running one, so that it cannot cause 0/0.
TEST_P(ScanDimsTest, FinishedEntriesReadTheLengthsOfARunningOne) {
  const Dim batch("batch", 3), time("time", tensor({2, 0, 3}, {batch}));
  const auto loss = [&](const std::pair<Tensor, Tensor>& xw) {
    const auto& [x, w] = xw;
    const Dim batch = x.dims()[0], time = x.dims()[1], hist("hist", zeros({batch}, i32));
    const auto [ys, s, dim] =
        scan(Scan{.spatial_dim = time,
                  .initial = History{zeros({batch}, f64), zeros({batch, hist}, f64), hist},
                  .xs = x,
                  .body = [&](const Tensor& x, const History& s) {
                    auto [h, d] = cum_concat(x, s.h, s.d);
                    // Divides by a length that is zero for an entry that never ran.
                    const Tensor mean = sum(h * w, d) / cast(d.lengths(), f64);
                    return std::pair{mean / x, History{s.step + mean, h, d}};
                  }});
    return sum(ys) + sum(s.step) + sum(square(s.h));
  };
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Tensor w = full({Dim("one", 1)}, .5, f64);
  const auto with_padding = [&](double p) {
    return std::pair{tensor(std::vector<double>{1, 2, p, p, p, p, 4, 5, 6}, {batch, time}),
                     sum(w, -1)};
  };
  const auto [dx, dw] = run(grad(loss))(with_padding(0));
  const auto x_only = [&](const Tensor& x) { return loss(std::pair{x, sum(w, -1)}); };
  expect_gradient_of(x_only, with_padding(0).first, dx, 1e-6);
  const auto [nx, nw] = run(grad(loss))(with_padding(nan));
  expect_all_close(mask_padding(nx), dx, 1e-12);
  expect_all_close(nw, dw, 1e-12);
}

TEST_P(ScanDimsTest, AScanThatRunsBackwardsGrowsAHistory) {
  const Dim batch("batch", 2), time("time", tensor({3, 1}, {batch}));
  const Tensor x = tensor(std::vector<double>{1, 2, 3, 4, 0, 0}, {batch, time});
  const auto f = [](const Tensor& x) {
    const Dim hist("hist", zeros({x.dims()[0]}, i32));
    return scan(Scan{.spatial_dim = x.dims()[1],
                     .initial = History{scalar(0), zeros({x.dims()[0], hist}, f64), hist},
                     .xs = x,
                     .body =
                         [](const Tensor& x, const History& s) {
                           auto [h, d] = cum_concat(x, s.h * 2, s.d);
                           return std::pair{sum(h, d), History{s.step + 1, h, d}};
                         },
                     .reverse = true});
  };
  const auto [ys, s, dim] = run(f)(x);
  expect_values(mask_padding(s.h), {12, 4, 1, 4, 0, 0});
  expect_values(transpose(ys, {batch, dim}), {17, 8, 3, 4, 0, 0});
  expect_values(s.step, {3});
  const auto loss = [&](const Tensor& x) { return sum(square(f(x).state.h)) + sum(f(x).ys); };
  expect_gradient_of(loss, x, run(grad(loss))(x), 1e-6);
}

TEST(TracedScanDimsTest, GradientsHaveTheBitsOfEagerMode) {
  const Dim batch("batch", 3), time("time", tensor({4, 2, 3}, {batch}));
  manual_seed(5);
  const Tensor x = mask_padding(random_normal({batch, time})), w = random_normal({batch});
  const auto check = [&](auto make_hist) {
    const auto loss = [&](const std::pair<Tensor, Tensor>& xw) {
      const auto& [x, w] = xw;
      const Dim hist = make_hist();
      const auto [ys, s, dim] =
          scan(Scan{.spatial_dim = time,
                    .initial = History{zeros({batch}), zeros({batch, hist}), hist},
                    .xs = x,
                    .body = [&](const Tensor& x, const History& s) {
                      auto [h, d] = cum_concat(tanh(x * w + s.step), s.h * w, s.d);
                      const Tensor y = sum(h * softmax(h, d), d);
                      return std::pair{y, History{y * w, h, d}};
                    }});
      return sum(square(ys)) + sum(s.step);
    };
    const std::pair xw{x, w};
    const auto [dx, dw] = grad(loss)(xw);
    const auto [tx, tw] = jit(grad(loss))(xw);
    expect_same_bits(dx, tx);
    expect_same_bits(dw, tw);
  };
  check([] { return Dim("hist", 0); });
  check([&] { return Dim("hist", zeros({batch}, i32)); });
}

TEST_P(ScanDimsTest, NoEntryAndNoIteration) {
  const Dim batch("batch", 2);
  const auto f = run([](const Tensor& x) {
    const Dim hist("hist", zeros({x.dims()[0]}, i32));
    return scan(Scan{.spatial_dim = x.dims()[1],
                     .initial = History{scalar(0), ones({x.dims()[0], hist}), hist},
                     .xs = x,
                     .body = [](const Tensor& x, const History& s) {
                       auto [h, d] = cum_concat(x, s.h, s.d);
                       return std::pair{sum(h, d), History{s.step + 1, h, d}};
                     }});
  });
  const Dim none("time", tensor({0, 0}, {batch})), some("time", tensor({0, 2}, {batch}));
  EXPECT_EQ(f(zeros({batch, none})).state.h.shape(), (std::vector<std::int64_t>{2, 0}));
  const auto [ys, s, dim] = f(ones({batch, some}));
  expect_values(s.d.lengths(), {0, 2});
  expect_values(mask_padding(s.h), {0, 0, 1, 1});
}

TEST_P(ScanDimsTest, AStaticDimThatTheBodyOfAScanMakesIsOneDimOfTheResult) {
  const auto f = run([](const Tensor& x) {
    return scan(Scan{.spatial_dim = x.dims()[0],
                     .xs = x,
                     .body =
                         [](const Tensor& x) {
                           const Dim pair("pair", 2);
                           return stack({x, x * 10}, pair);
                         }})
        .ys;
  });
  const Dim time("time", 2);
  const Tensor ys = f(tensor({1., 2.}, {time}));
  EXPECT_EQ(ys.dims()[1].name(), "pair");
  expect_values(ys, {1, 10, 2, 20});
}

struct Beam {
  Tensor scores;
  Dim dim;
};

/// The state carries Dims from outside; y may have such a dim.
TEST_P(ScanDimsTest, YMayHaveADimFromOutsideThatTheStateCarries) {
  const Dim batch("batch", 3), time("time", 3), single("beam", 1), three("beam", 3);
  const Tensor x = tensor({1., 2., 3., 4., 5., 6., 7., 8., 9.}, {batch, time});
  const auto steps = [&](const Dim& of_y) {
    return run([&](const Tensor& x) {
      return sum(scan(Scan{.spatial_dim = time,
                           .initial = Beam{zeros({batch, single}), single},
                           .xs = x,
                           .body =
                               [&](const Tensor& x, const Beam& s) {
                                 const Tensor mean_so_far = mean(s.scores, s.dim) + x;
                                 const Tensor next = broadcast_to(mean_so_far, {batch, three}) *
                                                     cast(range(three), f32);
                                 const Tensor y = broadcast_to(mean_so_far, {batch, of_y}) *
                                                  cast(range(of_y) + 1, f32);
                                 return std::pair{y, Beam{next, three}};
                               }})
                     .ys,
                 {time, of_y});
    })(x);
  };
  expect_values(steps(three), {60, 168, 276});
  expect_values(steps(single), {10, 28, 46});
  expect_values(steps(three + 1), {100, 280, 460});
  const Tensor scores = run([&](const Tensor& x) {
    return scan(Scan{.spatial_dim = time,
                     .initial = Beam{zeros({batch, single}), single},
                     .xs = x,
                     .body =
                         [&](const Tensor&, const Beam& s) {
                           return std::pair{s.scores, Beam{zeros({batch, three}), three}};
                         }})
        .ys;
  })(x);
  expect_values(scores.dim("beam").lengths(), {1, 3, 3});
}

/// The numbers of an eager body may differ between iterations.
TEST(ScanDimsErrorTest, AFixedSizeThatDiffersIsNoLength) {
  int size = 1;
  EXPECT_EQ(
      message_of<ShapeError>([&] {
        scan(
            Scan{.spatial_dim = Dim("time", 2), .initial = scalar(0), .body = [&](const Tensor& s) {
                   return std::pair{zeros({Dim("place", ++size)}), s};
                 }});
      }),
      "scan \"scan\": y is f32[place=3], whose dim place=3 has another size in every "
      "iteration; give it lengths, as in Dim(\"place\", count), or a Dim from outside of the "
      "body\nin iteration 1 of scan \"scan\"");
}

}  // namespace
}  // namespace reel
