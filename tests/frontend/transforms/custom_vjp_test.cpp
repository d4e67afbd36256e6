// custom_vjp: gradients that users define.
#include "reel/tests/modes.h"

namespace reel {
namespace {

using CustomVjpTest = InEveryMode;
REEL_IN_EVERY_MODE(CustomVjpTest);

/// x³ with its own rule 3x² ȳ, from x as a residual.
const auto cube = custom_vjp(
    [](const Tensor& x) {
      return std::pair{x * x * x, x};
    },
    [](const Tensor& x, const Tensor& g) { return x * x * 3.0 * g; });

TEST_P(CustomVjpTest, GivesTheCotangentThatBackwardReturns) {
  // A step function with a straight-through gradient.
  const auto step = custom_vjp(
      [](const Tensor& x) {
        return std::pair{cast(x > 0, f32), None{}};
      },
      [](const None&, const Tensor& g) { return g; });
  const auto f = run(value_and_grad([&](const Tensor& x) { return sum(step(x) * x); }));
  const auto [value, gradient] = f(tensor({-2., 3.}));
  expect_values(value, {3});
  expect_values(gradient, {-2, 4});
}

TEST_P(CustomVjpTest, HigherDerivativesGoThroughBackwardAndResiduals) {
  const auto first = grad(cube);
  const auto second = grad(first);
  const auto third = grad(second);
  expect_values(run(first)(scalar(2.0)), {12});
  expect_values(run(second)(scalar(2.0)), {12});
  expect_values(run(third)(scalar(2.0)), {6});
}

TEST_P(CustomVjpTest, AResidualMayBeComputed) {
  // tanh with a rule that reads y: the second derivative knows how y depends on x.
  const auto f = custom_vjp(
      [](const Tensor& x) {
        const Tensor y = tanh(x);
        return std::pair{y, y};
      },
      [](const Tensor& y, const Tensor& g) { return (1.0 - y * y) * g; });
  const auto second = [](auto f) { return grad(grad(f)); };
  expect_all_close(run(second(f))(scalar(0.4, f64)),
                   run(second([](const Tensor& x) { return tanh(x); }))(scalar(0.4, f64)), 1e-12);
}

// A loop or a draw in backward takes numbers of the stream. In a trace backward is recorded with
// the call, in eager mode it runs later.
TEST_P(CustomVjpTest, BackwardDrawsTheSameInEveryModeAndMovesNoOtherDraw) {
  const auto noisy = custom_vjp(
      [](const Tensor& x) {
        return std::pair{x * x, x};
      },
      [](const Tensor& x, const Tensor& g) {
        const auto body = [&](const Tensor&, const Tensor& s) { return s * 0.5; };
        return fori_loop(0, 2, body, g) * x + random_normal(x.dims(), x.dtype());
      });
  const auto f = [&](const Tensor& x) {
    const Tensor y = noisy(x), z = noisy(y);
    return sum(z * random_uniform({3}, 0, 1, f64));
  };
  const Tensor x = tensor({1., 2., 3.}, f64);
  const auto drawn = [&](auto g) {
    manual_seed(7);
    const auto [value, gradient] = g(x);
    return Tensors{value, gradient, random_uniform({2}, 0, 1, f64)};
  };
  const Tensors expected = drawn(value_and_grad(f)), actual = drawn(run(value_and_grad(f)));
  for (std::size_t i = 0; i < expected.size(); ++i) expect_same_bits(actual[i], expected[i]);
  manual_seed(7);
  const Tensor value = run(f)(x);  // without a gradient
  expect_same_bits(value, expected[0]);
  expect_same_bits(random_uniform({2}, 0, 1, f64), expected[2]);
  // The draws of two calls differ; the draws of a call are the same in each of its gradients.
  manual_seed(7);
  const auto [y, pull] = vjp([&](const Tensor& x) { return noisy(x) + noisy(x); }, x);
  const Tensor once = pull(zeros_like(x)), again = pull(zeros_like(x));
  expect_same_bits(once, again);
  manual_seed(7);
  const auto [half, pull_half] = vjp(noisy, x);
  EXPECT_GT(max(abs(once - 2.0 * pull_half(zeros_like(x)))).item<double>(), 1e-3);
}

struct Affine {
  Tensor weight, bias;
};

TEST_P(CustomVjpTest, ArgumentsAndResultsAreTrees) {
  const auto apply = custom_vjp(
      [](const Affine& p, const Tensor& x, const Tensor& count) {
        const Tensor scaled = p.weight * x;
        return std::pair{std::tuple{scaled + p.bias, count + 1}, std::pair{p.weight, x}};
      },
      [](const std::pair<Tensor, Tensor>& kept, const std::tuple<Tensor, Tensor>& g) {
        const Tensor& y = std::get<0>(g);
        return std::tuple{Affine{y * kept.second, y}, y * kept.first, None{}};
      });
  const auto loss = [&](const Affine& p, const Tensor& x) {
    const auto [y, count] = apply(p, x, scalar(1));
    return sum(square(y)) * cast(count, f32);
  };
  const auto gradient =
      run(grad(loss))(Affine{tensor({2., 3.}), tensor({1., -1.})}, tensor({1., 2.}));
  expect_values(gradient.weight, {12, 40});  // 2 · 2y · x with y = [3, 5]
  expect_values(gradient.bias, {12, 20});
}

TEST_P(CustomVjpTest, WorksInAScanWithACaptureOfBackward) {
  const Dim batch("batch", 2);
  const auto loss = [&](const Tensor& x, const Tensor& h0, const Tensor& factor) {
    const Dim time = x.dim("time");
    const auto step = [&](const Tensor& x, const Tensor& h) {
      const auto scaled = custom_vjp(
          [](const Tensor& z) {
            return std::pair{z * 1.0, None{}};
          },
          [&](const None&, const Tensor& g) { return g * factor; });
      const Tensor next = scaled(h * x);
      return std::pair{next, next};
    };
    return sum(scan(Scan{.spatial_dim = time, .initial = h0, .xs = x, .body = step}).ys,
               {x.dim("time"), x.dim("batch")});
  };
  const auto f = run([&](const Tensor& x, const Tensor& h0, const Tensor& factor) {
    return grad([&](const Tensor& h0) { return loss(x, h0, factor); })(h0);
  });
  const auto check = [&](const std::vector<std::int32_t>& lengths, std::vector<double> expected) {
    const Dim time("time", tensor(lengths, {batch}));
    expect_values(f(full({batch, time}, 2.0), ones({batch}), scalar(0.5)), std::move(expected));
  };
  // The rule gives dh = x · factor = 1 instead of x = 2 in each iteration, so the gradient counts
  // the iterations.
  check({3, 1}, {3, 1});
  check({2, 4}, {2, 4});
  EXPECT_EQ(f.trace_count(), 1);
}

TEST_P(CustomVjpTest, BackwardMayNameDimsThatOnlyARunKnows) {
  const Dim batch("batch", 2);
  // The mean over time, with a rule that gives ȳ itself to every valid frame.
  const auto f = run(grad([](const Tensor& x) {
    const Dim time = x.dim("time");
    const auto average = custom_vjp(
        [time](const Tensor& x) {
          return std::pair{mean(x, time), None{}};
        },
        [time](const None&, const Tensor& g) { return where(mask(time), g, 0.0); });
    return sum(square(average(x)));
  }));
  for (const std::vector<std::int32_t>& lengths : {std::vector{2, 1}, std::vector{1, 3}}) {
    const Dim time("time", tensor(lengths, {batch}));
    const Tensor gradient = f(full({batch, time}, 1.5));
    expect_values(sum(gradient, {batch, time}),
                  {3.0 * (lengths[0] + lengths[1])});  // 2 · 1.5 for each frame
  }
  EXPECT_EQ(f.trace_count(), 1);
}

TEST_P(CustomVjpTest, TakesACapturedTensorAlongADimOfAnArgument) {
  const Dim in("in", 2);
  const Tensor captured = tensor({2., 3.}, {in});
  const auto f = run(value_and_grad([&](const Tensor& x) { return sum(cube(captured) * x); }));
  const auto [value, gradient] = f(tensor({1., 10.}, {in}));
  expect_values(value, {278});
  expect_values(gradient, {8, 27});
}

TEST(CustomVjpTape, TheTapeHoldsResidualsOnly) {
  const auto f = custom_vjp(
      [](const Tensor& x) {
        return std::pair{exp(x), None{}};
      },
      [](const None&, const Tensor& g) { return g; });
  const Tensor x = ones({3});
  Tape tape;
  tape.watch(x);
  const Tensor argument = x + x;  // the vjp of add reads nothing
  const Tensor y = f(argument);
  EXPECT_TRUE(argument.ref().unique());
  expect_values(tape.gradient(y, x), {2, 2, 2});
}

TEST_P(CustomVjpTest, ErrorNamesTheArgumentsWhoseCotangentsDiffer) {
  const auto f = custom_vjp(
      [](const Tensor& a, const Tensor& b) {
        return std::pair{a * b, None{}};
      },
      [](const None&, const Tensor& g) {
        return std::tuple{sum(g), g};
      });
  const auto loss = [&](const Tensor& a, const Tensor& b) { return sum(f(a, b)); };
  EXPECT_EQ(message_of<ShapeError>([&] { run(grad(loss))(ones({2}), ones({2})); }),
            "custom_vjp: backward returned cotangents of other types than the arguments\n"
            "  argument 0: f32[] for f32[2]\n"
            "Return a cotangent of the type of each argument.");
  const auto one = custom_vjp(
      [](const Tensor& a, const Tensor& b) {
        return std::pair{a * b, b};
      },
      [](const Tensor& b, const Tensor& g) { return g * b; });
  EXPECT_EQ(message_of<StructureError>([&] {
              run(grad([&](const Tensor& a, const Tensor& b) { return sum(one(a, b)); }))(
                  ones({2}), ones({2}));
            }),
            "custom_vjp: backward returned 1 cotangents, but the arguments have 2 tensors; return "
            "a tuple with the cotangent of each argument");
}

// The gradient of a gradient runs two more loops over the first one's iterations.
TEST_P(CustomVjpTest, ErrorsOfSecondGradientsNameTheirIterations) {
  const auto has_no_gradient_above_one = custom_vjp(
      [](const Tensor& x) {
        return std::pair{x * 0.f + 2.f, x};
      },
      [](const Tensor& x, const Tensor& g) {
        return g * gather(tensor({1.f, 2.f}), cast(x, i32), 0);
      });
  const auto doubled = custom_vjp(
      [](const Tensor& x) {
        return std::pair{x * 2.f, x};
      },
      [&](const Tensor& x, const Tensor& g) { return g * has_no_gradient_above_one(x); });
  const auto last = [&](const Tensor& x) {
    const auto body = [&](const Tensor& x, const Tensor& s) {
      return std::pair{None{}, doubled(s) + x};
    };
    return scan(Scan{.initial = scalar(0.f), .xs = x, .body = body, .name = "doubling"}).state;
  };
  const auto second = grad([&](const Tensor& x) { return sum(grad(last)(x)); });
  EXPECT_EQ(message_of<IndexError>([&] { run(second)(ones({3})); }),
            "gather: index 3 is out of range for axis 0 of f32[2], which has size 2\n"
            "in iteration 2 of the gradient of the gradient of scan \"doubling\"");
}

// Errors in a gradient name the iteration; in nested loops, the iterations of both.
TEST_P(CustomVjpTest, ErrorsNameTheIterationsOfTheGradient) {
  const auto fails_above_one = custom_vjp(
      [](const Tensor& x) {
        return std::pair{x * 2.f, x};
      },
      [](const Tensor& x, const Tensor& g) {
        return g * gather(tensor({1.f, 2.f}), cast(x, i32), 0);
      });
  const auto doubled = [&](bool reverse) {
    return [&, reverse](const Tensor& x) {
      const auto body = [&](const Tensor& x, const Tensor& s) {
        const Tensor next = fails_above_one(s) + x;
        return std::pair{None{}, next};
      };
      return scan(Scan{.initial = scalar(0.f),
                       .xs = x,
                       .body = body,
                       .reverse = reverse,
                       .name = "doubling"})
          .state;
    };
  };
  const std::string message =
      "gather: index 3 is out of range for axis 0 of f32[2], which has size 2\n"
      "in iteration ";
  // The states before the iterations are 0, 1 and 3 in either direction.
  EXPECT_EQ(message_of<IndexError>([&] { run(grad(doubled(false)))(ones({3})); }),
            message + "2 of the gradient of scan \"doubling\"");
  EXPECT_EQ(message_of<IndexError>([&] { run(grad(doubled(true)))(ones({3})); }),
            message + "2 of the gradient of scan \"doubling\"");
  const auto in_a_loop = [&](const Tensor& x) {
    const auto outer = [&](const Tensor& i, const Tensor& h) {
      return cond(
          i == 1, [&] { return doubled(false)(x * h); }, [&] { return h; });
    };
    return fori_loop(0, 4, outer, scalar(1.f), {.name = "outer"});
  };
  EXPECT_EQ(message_of<IndexError>([&] { run(grad(in_a_loop))(ones({3})); }),
            message + "2 of the gradient of scan \"doubling\"\n" +
                "in iteration 1 of the gradient of fori_loop \"outer\"");
}

}  // namespace
}  // namespace reel
