// Optimised loops give eager mode's results: unread dims that only values define, nested loops over
// one dim, lists that were never written, and lengths known at run time.
#include <cmath>
#include <limits>

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

TEST_P(TracedLoopsTest, UnreadStackMakesNoDimKnownOutside) {
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

TEST_P(TracedLoopsTest, UnreadSlicesDecideHowLongALoopRuns) {
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

TEST_P(TracedLoopsTest, ValuesWithTheLoopsDimStayInside) {
  const Dim in("in", 3);
  const auto loss = [&](const Tensor& x) {
    const auto body = [&](const Tensor& x_t) { return sum(sin(x_t - x)); };
    return sum(square(scan(Scan{.spatial_dim = in, .xs = x, .body = body}).ys));
  };
  const Tensor x = tensor({0.5, -0.25, 1.}, {in}, f64);
  expect_gradient_of(loss, x, run(grad(loss))(x));
}

TEST_P(TracedLoopsTest, LengthsOverTheLoopsDimAreThoseOfItsEntryInside) {
  const Dim batch("batch", 2), time("time", tensor({1, 2}, {batch}));
  const auto loss = [&](const Tensor& w, const Tensor& x) {
    const Dim time = x.dim("time");
    const auto body = [&](const Tensor& x_b) { return sum(exp(x_b) * w, time); };
    return sum(scan(Scan{.spatial_dim = batch, .xs = x, .body = body}).ys);
  };
  const auto slope = run([&](const Tensor& x) {
    return grad([&](const Tensor& w) { return loss(w, x); })(ones({x.dim("time")}));
  });
  expect_values(slope(zeros({batch, time})), {2, 1});  // one entry has one element
}

TEST_P(TracedLoopsTest, UnwrittenListOfListsGivesAnEmptyList) {
  // The gradient of a traced function: an inner loop without iterations saves an empty list.
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

TEST_P(TracedLoopsTest, ElementsOfAListAreMadeInTheLoop) {
  // The second gradient of a traced function stacks in a list only the values that are needed
  // outside.
  const Dim batch("batch", 2), part("part", 1), longer("longer", 6);
  const Dim time("time", tensor({1, 1}, {batch}));
  const auto loss = run([&](const Tensor& x) {
    const Dim time = x.dim("time");
    const Tensor padded = pad(x, batch, 2, 2, 1.25, longer);
    const auto body = [&](const Tensor&) { return mean(padded, time); };
    return sum(sin(scan(Scan{.spatial_dim = part, .xs = zeros({part}, f64), .body = body}).ys));
  });
  const Tensor x = tensor({0.5, -0.25}, {batch, time}, f64);
  const auto slope = [&](const Tensor& x) { return sum(sin(grad(loss)(x))); };
  expect_gradient_of(slope, x, grad(slope)(x));
}

TEST_P(TracedLoopsTest, ElementsOfListsMayHaveDimsOfTheirOwn) {
  // No iteration makes an element; the list's type names the dim of the recording.
  const Dim batch("batch", 0), in("in", 0);
  const auto loss = run([&](const Tensor& x, const Tensor& n) {
    const auto outer = [&](const Tensor& x_t) {
      const auto body = [](const Tensor&, const Tensor& s) {
        return std::pair{None{}, tanh(tanh(s))};
      };
      const auto always = [&](const Tensor&) { return full({in}, true, boolean); };
      return scan(Scan{.spatial_dim = batch,
                       .cond_dims = {in},
                       .initial = x_t,
                       .xs = n,
                       .cond = always,
                       .body = body})
          .state;
    };
    return sum(sin(scan(Scan{.spatial_dim = in, .xs = sum(x, batch), .body = outer}).ys));
  });
  const auto slope = [&](const Tensor& x) {
    return sum(sin(grad([&](const Tensor& x) { return loss(x, zeros({batch}, i32)); })(x)));
  };
  const Tensor x = zeros({in, batch}, f64);
  EXPECT_EQ(grad(slope)(x).type(), x.type());
}

TEST_P(TracedLoopsTest, AViewHoldsItsMemory) {
  // The gradient of a planned function: the sum over one step is a view of the terms of all steps,
  // and an output is another sum of these.
  const auto loss = run([](const Tensors& x) {
    const Tensor scaled = pow(1.5 + sin(x[0]), 2.5), square = matmul(x[2], x[2]);
    const auto body = [&](const Tensor&, const Tensor& s) {
      return std::pair{scaled + x[1], s + square};
    };
    const auto result = scan(Scan{.initial = x[3], .xs = zeros({1}), .body = body});
    return sum(0.5 * result.ys + sin(result.ys)) + sum(0.5 * result.state + sin(result.state));
  });
  const Tensors slopes =
      grad(loss)(Tensors{zeros({2, 1, 2}), zeros({2}), zeros({1}), zeros({0, 1, 1})});
  const double slope = 0.5 + std::cos(std::pow(1.5, 2.5));
  expect_all_close(slopes[0], full({2, 1, 2}, slope * 2.5 * std::pow(1.5, 1.5)));
  expect_all_close(slopes[1], full({2}, 2 * slope));
}

TEST_P(TracedLoopsTest, APlanForOtherDimsKnowsItsOwnValuesOnly) {
  // Passes leave types of values that no record makes any more.
  const Dim batch("batch", 1), in("in", 0);
  const auto slopes = run(value_and_grad([&](const Tensors& x) {
    const Tensor back = reverse(x[4], batch), larger = maximum(x[3], x[4]);
    const auto body = [&](const Tensor&, const Tensor& s) {
      const auto [count, next] = cond(
          s,
          [&] {
            return std::pair{mod(x[6] + x[5], 5), logical_xor(x[7], s)};
          },
          [&] {
            const Tensor unused = truncated_normal({in}, 0, 0.5, f32);
            return std::pair{mod(x[6] + x[5], 5), logical_xor(x[7], s)};
          });
      return std::pair{None{}, logical_xor(s, next)};
    };
    const Tensor state =
        scan(Scan{.spatial_dim = batch, .initial = x[7], .xs = larger, .body = body}).state;
    return sum(0.5 * back + sin(back)) + sum(0.5 * x[1] + sin(x[1])) + cast(state, f32);
  }));
  for (const int size : {2, 2, 3, 3}) {
    const Dim n("n", scalar(size)), time("time", tensor({size}, {batch}));
    const auto [value, slope] =
        slopes(Tensors{zeros({batch, time}), zeros({n}), zeros({time, in}), zeros({n, batch}),
                       zeros({batch}), scalar(0), zeros({time, batch}, i32), scalar(false)});
    expect_values(value, {0});
    expect_values(slope[1], std::vector<double>(size, 1.5));
  }
}

TEST_P(TracedLoopsTest, ADimThatTheBodyMakesIsNotTakenOutOfIt) {
  const Dim batch("batch", 2);
  const auto f = run([&](const Tensor& x) {
    const auto body = [&](const Tensor& x_b) {
      const auto always = [](None) { return scalar(true); };
      const auto inner = scan(Scan{.spatial_dim = batch,
                                   .cond_dims = {},
                                   .initial = None{},
                                   .xs = x,
                                   .cond = always,
                                   .body = [&](const Tensor&, None) {
                                     return std::pair{x, None{}};
                                   }});
      const auto keep = [&](const Tensor&, const Tensor&) { return std::pair{None{}, x_b}; };
      return scan(Scan{.spatial_dim = inner.dim, .initial = x_b, .xs = inner.ys, .body = keep})
          .state;
    };
    return scan(Scan{.spatial_dim = batch, .xs = x, .body = body}).ys;
  });
  expect_values(f(tensor({1., 2.}, {batch}, f64)), {1, 2});
}

TEST_P(TracedLoopsTest, CotangentsOfAStackHaveNoPaddingWhereItsDimGoes) {
  // In the body all of time counts, and cotangents of the stack's padding may be NaN.
  const Dim batch("batch", 2), time("time", tensor({1, 2}, {batch}));
  const auto slope = run([&](const Tensor& x, const Tensor& per_time) {
    return grad([&](const Tensor& per_time) {
      const auto body = [&](const Tensor&) { return per_time; };
      const Tensor ys = scan(Scan{.spatial_dim = batch, .xs = zeros({batch}), .body = body}).ys;
      return sum(sin(x + ys));
    })(per_time);
  });
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Tensor x = tensor({0., nan, 0., 0.}, {batch, time}, f64);
  expect_values(slope(x, zeros({time}, f64)), {2, 1});
}

TEST_P(TracedLoopsTest, ResidualsBesideFinishedEntriesMayBeListsOfLists) {
  // Two inner loops save a list in each iteration. Its elements have a dim that finished entries
  // see with other lengths.
  const Dim batch("batch", 2), time("time", tensor({1, 2}, {batch})),
      other("other", tensor({2, 1}, {batch}));
  const Tensor steps = tensor({1., 2., 3., 4.}, {batch, other}, f64);
  const auto loss = [&](const Tensor& x) {
    const auto body = [&](const Tensor& step) {
      const auto outer = [&](const Tensor& s) {
        const auto shrink = [](const Tensor& s) { return tanh(s); };
        return while_loop([](const Tensor& s) { return max(s) > 0.4; }, shrink, s);
      };
      const auto always = [](const Tensor&) { return scalar(true); };
      return sum(while_loop(always, outer, mask_padding(x), {.maximum_iterations = 2}), time) *
             step;
    };
    return sum(scan(Scan{.spatial_dim = other, .xs = steps, .body = body}).ys);
  };
  const Tensor x = tensor({0.5, 0., -0.25, 0.75}, {batch, time}, f64);
  const Tensor expected = mask_padding(grad(loss)(x));
  EXPECT_TRUE(all(isfinite(expected)).item<bool>());
  expect_all_close(mask_padding(run(grad(loss))(x)), expected, 1e-12);
}

TEST_P(TracedLoopsTest, DimsOfEqualStacksStayTwoWhereATensorHasBoth) {
  const Dim batch("batch", 2), k("k", 2);
  const Tensor x = tensor({1., 2., 3., 4.}, {batch, k}, f64);
  const auto f = [&](const Tensor& x) {
    const TensorArray array = TensorArray::unstack(x, batch);
    const auto all = [&] { return array.stack(Dim("listed", array.size())); };
    const Tensor a = all(), b = all();
    const auto body = [&](const Tensor& row) { return tanh(a - row); };
    return sum(square(matmul(a, b, k))) +
           sum(scan(Scan{.spatial_dim = b.dim(0), .xs = b, .body = body}).ys);
  };
  const auto [value, gradient] = value_and_grad(f)(x);
  const auto [traced_value, traced_gradient] = run(value_and_grad(f))(x);
  expect_values(value, {25 + 121 + 121 + 625}, 1e-6);  // tanh cancels out
  expect_all_close(traced_value, value, 1e-12);
  expect_all_close(traced_gradient, gradient, 1e-12);

  // Now in a loop's body, which the gradient recomputes; each of the stacks equals two others.
  const auto looped = [&](const Tensor& x) {
    const auto body = [&](const Tensor& s) { return s * f(x); };
    return fori_loop(
        0, 2, [&](const Tensor&, const Tensor& s) { return body(s); }, ones({}, f64));
  };
  const auto [looped_value, looped_gradient] = value_and_grad(looped)(x);
  const auto [traced_looped_value, traced_looped_gradient] = run(value_and_grad(looped))(x);
  expect_all_close(traced_looped_value, looped_value, 1e-9);
  expect_all_close(traced_looped_gradient, looped_gradient, 1e-9);
}

}  // namespace
}  // namespace reel
