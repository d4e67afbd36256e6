// What passes leave of loops gives what eager mode gives: dims that only values say which nobody
// reads, loops over one dim in each other, lists that nobody wrote to, and how long a loop runs.
#include "reel/tests/gradients.h"
#include "reel/tests/modes.h"

namespace reel {
namespace {

using TracedLoopsTest = InEveryMode;
REEL_IN_EVERY_MODE(TracedLoopsTest);

TEST_P(TracedLoopsTest, ADimThatOnlyAnUnreadCaptureSaysIsStillKnownInside) {
  const Dim in("in", 3);
  const auto f = run([&](const Tensor& most, const Tensor& x) {
    const auto cut = scan(Scan{.spatial_dim = in,
                               .xs = x,
                               .body = [](const Tensor& x_t) { return x_t; },
                               .max_seq_len = most});
    const auto count = [&](const Tensor& n) {
      return scan(Scan{.spatial_dim = cut.dim,
                       .initial = n,
                       .xs = cut.ys,
                       .body =
                           [&](const Tensor&, const Tensor& s) {
                             return std::pair{None{}, s + most};
                           }})
          .state;
    };
    const auto always = [](const Tensor&) { return scalar(true); };
    return while_loop(always, count, scalar(0), {.maximum_iterations = 2});
  });
  expect_values(f(scalar(2), zeros({in})), {8});
  expect_values(f(scalar(0), zeros({in})), {0});
}

TEST_P(TracedLoopsTest, AStackThatNobodyReadsMakesNoDimThatIsKnownAround) {
  const Dim in("in", 3);
  const auto f = run([&](const Tensor& most, const Tensor& x) {
    const auto cut = scan(Scan{.spatial_dim = in,
                               .xs = x,
                               .body = [](const Tensor& x_t) { return x_t; },
                               .max_seq_len = most});
    const Tensor given = most * 3;
    const auto count = [&](const Tensor& n) {
      const auto body = [&](const Tensor&, const Tensor& s) { return std::pair{given, s + most}; };
      return scan(Scan{.spatial_dim = cut.dim, .initial = n, .xs = cut.ys, .body = body}).state;
    };
    const auto always = [](const Tensor&) { return scalar(true); };
    return while_loop(always, count, scalar(0), {.maximum_iterations = 2});
  });
  expect_values(f(scalar(2), zeros({in})), {8});
}

TEST_P(TracedLoopsTest, SlicesThatNobodyReadsSayHowLongALoopRuns) {
  const auto f = run([](const Tensor& most, const Tensor& x) {
    const Tensor cut =
        scan(Scan{.xs = x, .body = [](const Tensor& x_t) { return x_t; }, .max_seq_len = most}).ys;
    const auto body = [](const Tensor&) { return scalar(0.5f); };
    return scan(Scan{.xs = cut, .body = body, .max_seq_len = 2}).ys;
  });
  expect_values(f(scalar(1), zeros({3})), {0.5});
  expect_values(f(scalar(0), zeros({3})), {});
  expect_values(f(scalar(3), zeros({3})), {0.5, 0.5});
}

TEST_P(TracedLoopsTest, WhatHasTheLoopsDimStaysInside) {
  const Dim in("in", 3);
  const auto loss = [&](const Tensor& x) {
    const auto body = [&](const Tensor& x_t) { return sum(sin(x_t - x)); };
    return sum(square(scan(Scan{.spatial_dim = in, .xs = x, .body = body}).ys));
  };
  const Tensor x = tensor({0.5, -0.25, 1.}, {in}, f64);
  expect_gradient_of(loss, x, run(grad(loss))(x));
}

TEST_P(TracedLoopsTest, WhatHasLengthsOverTheLoopsDimHasNoPaddingInside) {
  const Dim batch("batch", 2), time("time", tensor({1, 2}, {batch}));
  const auto loss = [&](const Tensor& w, const Tensor& x) {
    const Dim time = x.dim("time");
    const auto body = [&](const Tensor& x_b) { return sum(exp(x_b) * w, time); };
    return sum(scan(Scan{.spatial_dim = batch, .xs = x, .body = body}).ys);
  };
  const auto slope = run([&](const Tensor& x) {
    return grad([&](const Tensor& w) { return loss(w, x); })(ones({x.dim("time")}));
  });
  expect_values(slope(zeros({batch, time})), {2, 2});
}

TEST_P(TracedLoopsTest, OfAListOfListsThatNobodyWroteToComesAnEmptyList) {
  // The gradient of a traced function: what an inner loop without iterations saves has no elements.
  const Dim batch("batch", 1), in("in", tensor({2}, {batch}));
  const auto loss = run([&](const Tensor& s, const Tensor& x) {
    const Dim in = x.dim("in");
    const auto body = [&](const Tensor& x_t, const Tensor&) {
      const auto never = [](const Tensor&) { return scalar(false); };
      const auto inner = [&](const Tensor& s) { return tanh(s + max(x, in)); };
      return std::pair{None{}, while_loop(never, inner, x_t)};
    };
    return scan(Scan{.spatial_dim = in, .initial = s, .xs = x, .body = body}).state;
  });
  const auto slope = grad([&](const Tensor& x) { return loss(scalar(0., f64), x); });
  const Tensor x = tensor({0.5, -0.25}, {in}, f64);
  expect_values(slope(x), {0, 1});
  expect_values(grad([&](const Tensor& x) { return sum(sin(slope(x))); })(x), {0, 0});
}

}  // namespace
}  // namespace reel
