// Linear recurrences: values and gradients beside scan, broadcasting, padding, segments of time,
// errors. every_op_test.cpp has the requirements on all ops.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <tuple>

#include "reel/tests/gradients.h"
#include "reel/tests/modes.h"
#include "reel/tests/threads.h"

namespace reel {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

using Operands = std::tuple<Tensor, Tensor, Tensor>;  // a, b, h0

/// The recurrence as a loop over the first axis.
Tensor by_scan(const Tensor& a, const Tensor& b, const Tensor& h0, bool reverse = false) {
  const auto body = [](const std::pair<Tensor, Tensor>& x, const Tensor& h) {
    const Tensor next = x.first * h + x.second;
    return std::pair{next, next};
  };
  return scan(Scan{.initial = h0, .xs = std::pair{a, b}, .body = body, .reverse = reverse}).ys;
}

Operands draw(const Dims& dims, DType dtype = f32) {
  manual_seed(11);
  const Dims state(dims.begin() + 1, dims.end());
  return {cast(random_uniform(dims, -1.2, 1.2), dtype), cast(random_normal(dims), dtype),
          cast(random_normal(state), dtype)};
}

/// A function of a recurrence. Its derivatives of every order differ between elements.
Tensor weighted(const Tensor& h) { return sum(sin(h) * cos(h * 0.7)); }

class LinearScanTest : public InEveryMode {};
REEL_IN_EVERY_MODE(LinearScanTest);

TEST_P(LinearScanTest, RunsInBothDirections) {
  const Tensor a = tensor({2., 3., 0.5}), b = tensor({1., 10., 100.}), h0 = scalar(4.);
  const auto of = [&](bool reverse) {
    return run([reverse](Tensor a, Tensor b, Tensor h0) {
      return linear_scan(a, b, h0, 0, {.reverse = reverse});
    })(a, b, h0);
  };
  expect_values(of(false), {9, 37, 118.5}, 0);
  expect_values(of(true), {633, 316, 102}, 0);
  expect_values(run([](Tensor a, Tensor b) { return linear_scan(a, b, 0); })(a, b), {1, 13, 106.5},
                0);
  expect_values(
      run([](Tensor a, Tensor b) { return linear_scan(a, a, scalar(1.), 0, {.input = b}); })(a, b),
      {4, 42, 71}, 0);
}

TEST_P(LinearScanTest, HasTheBitsOfALoop) {
  for (const Dims& dims : {Dims{7, 3}, Dims{7, 19}, Dims{6, 70}, Dims{5, 4, 600}, Dims{9}})
    for (const DType dtype : {f32, f64})
      for (const bool reverse : {false, true}) {
        const auto [a, b, h0] = draw(dims, dtype);
        expect_same_bits(run([reverse](Tensor a, Tensor b, Tensor h0) {
                           return linear_scan(a, b, h0, 0, {.reverse = reverse});
                         })(a, b, h0),
                         by_scan(a, b, h0, reverse));
      }
}

TEST_P(LinearScanTest, TheGradientIsThatOfALoop) {
  for (const Dims& dims : {Dims{7, 3}, Dims{6, 70}, Dims{9}})
    for (const bool reverse : {false, true}) {
      const Operands x = draw(dims, f64);
      const auto [a, b, h0] = run(grad([reverse](const Operands& x) {
        const auto& [a, b, h0] = x;
        return weighted(linear_scan(a, b, h0, 0, {.reverse = reverse}));
      }))(x);
      const auto [a2, b2, h2] = grad([reverse](const Operands& x) {
        return weighted(by_scan(std::get<0>(x), std::get<1>(x), std::get<2>(x), reverse));
      })(x);
      expect_all_close(a, a2, 1e-12);
      expect_all_close(b, b2, 1e-12);
      expect_all_close(h0, h2, 1e-12);
    }
}

TEST_P(LinearScanTest, ThirdDerivativesAreThoseOfALoop) {
  const Operands x = draw({4, 2}, f64);
  const auto third = [](const auto& recurrence) {
    const auto total = [](const Operands& g) {
      return sum(square(std::get<0>(g))) + sum(sin(std::get<1>(g))) + sum(square(std::get<2>(g)));
    };
    const auto f = [recurrence](const Operands& x) {
      return weighted(recurrence(std::get<0>(x), std::get<1>(x), std::get<2>(x)));
    };
    const auto second = [f, total](const Operands& x) { return total(grad(f)(x)); };
    return grad([second, total](const Operands& x) { return total(grad(second)(x)); });
  };
  const auto [a, b, h0] = run(third([](const Tensor& a, const Tensor& b, const Tensor& h0) {
    return linear_scan(a, b, h0, 0);
  }))(x);
  const auto [a2, b2, h2] = third(
      [](const Tensor& a, const Tensor& b, const Tensor& h0) { return by_scan(a, b, h0); })(x);
  expect_all_close(a, a2, 1e-9);
  expect_all_close(b, b2, 1e-9);
  expect_all_close(h0, h2, 1e-9);
}

TEST_P(LinearScanTest, TheDirectionalDerivativeIsThatOfALoop) {
  const Operands x = draw({5, 9}, f64), direction = draw({5, 9}, f64);
  const auto along = [direction](const auto& recurrence) {
    return [direction, recurrence](const Operands& x) {
      return jvp(
                 [recurrence](const Operands& x) {
                   return recurrence(std::get<0>(x), std::get<1>(x), std::get<2>(x));
                 },
                 x, direction)
          .second;
    };
  };
  expect_all_close(
      run(along([](Tensor a, Tensor b, Tensor h0) { return linear_scan(a, b, h0, 0); }))(x),
      along([](Tensor a, Tensor b, Tensor h0) { return by_scan(a, b, h0); })(x), 1e-12);
}

TEST_P(LinearScanTest, OperandsAreBroadcast) {
  const Dim batch("batch", 2), time("time", 5), channel("channel", 9);
  const auto all = [&](const Tensor& x) { return expand(x, {batch, time, channel}); };
  manual_seed(4);
  const Tensor b = random_normal({batch, time, channel}), input = random_normal({time, channel});
  const Tensor h0 = random_normal({channel});
  for (const Dims& dims : {Dims{}, Dims{channel}, Dims{channel, batch}, Dims{time},
                           Dims{time, batch}, Dims{batch, time, channel}}) {
    const Tensor a = random_uniform(dims, -1, 1);
    const auto gradient = [=](bool expands) {
      return [=](const Operands& x) {
        const auto& [a, b, h0] = x;
        const Tensor ours = expands ? all(a) : a;
        const Tensor h = linear_scan(ours, b, expands ? expand(h0, {batch, channel}) : h0, time,
                                     {.input = expands ? all(input) : input});
        return std::pair{weighted(h), h};
      };
    };
    const Operands x{a, b, h0};
    const auto [value, slopes] = run(value_and_grad(gradient(false)))(x);
    const auto [value2, slopes2] = value_and_grad(gradient(true))(x);
    expect_same_bits(value.second, value2.second);
    expect_all_close(std::get<0>(slopes), std::get<0>(slopes2), 1e-4);
    expect_all_close(std::get<1>(slopes), std::get<1>(slopes2), 1e-5);
    expect_all_close(std::get<2>(slopes), std::get<2>(slopes2), 1e-5);
  }
  // Plain sizes, as in NumPy; neither a nor b has the time axis.
  expect_values(run([](Tensor a, Tensor b, Tensor x) {
                  return linear_scan(a, b, 1, {.input = x});
                })(tensor({{2.}}), tensor({1., 2.}), ones({1, 3, 2})),
                {1, 2, 3, 6, 7, 14}, 0);
  expect_values(run([](Tensor a, Tensor b) { return linear_scan(a, b, 0); })(
                    tensor({{2.}, {2.}, {3.}}), tensor({1., 5.})),
                {1, 5, 3, 15, 10, 50}, 0);
}

TEST_P(LinearScanTest, EachEntryRunsWithinItsLength) {
  const Dim batch("batch", 3), time("time", tensor({3, 0, 2}, {batch}));
  const Tensor a = tensor({2., 2., 2., kNaN, kNaN, kNaN, 3., 3., kNaN}, {batch, time});
  const Tensor b = tensor({1., 2., 3., kNaN, kNaN, kNaN, 1., 1., kNaN}, {batch, time});
  const Tensor h0 = tensor({1., 5., -1.}, {batch});
  const auto of = [&](bool reverse) {
    return run([reverse](Tensor a, Tensor b, Tensor h0) {
      return linear_scan(a, b, h0, a.dim("time"), {.reverse = reverse});
    })(a, b, h0);
  };
  expect_values(of(false), {3, 8, 19, 0, 0, 0, -2, -5, 0}, 0);
  expect_values(of(true), {25, 12, 5, 0, 0, 0, -5, -2, 0}, 0);
  for (const bool reverse : {false, true}) {
    const auto [ga, gb, gh] = run(grad([reverse](const Operands& x) {
      const auto& [a, b, h0] = x;
      return sum(linear_scan(a, b, h0, a.dim("time"), {.reverse = reverse}));
    }))(Operands{a, b, h0});
    expect_values(gb, reverse ? std::vector<double>{1, 3, 7, 0, 0, 0, 1, 4, 0}
                              : std::vector<double>{7, 3, 1, 0, 0, 0, 4, 1, 0});
    expect_values(ga, reverse ? std::vector<double>{12, 15, 7, 0, 0, 0, -2, -4, 0}
                              : std::vector<double>{7, 9, 8, 0, 0, 0, -4, -2, 0});
    expect_values(gh, {14, 0, 12});
  }
}

TEST_P(LinearScanTest, OneCoefficientForAllTimeSumsOverValidElements) {
  const Dim batch("batch", 2), time("time", tensor({3, 1}, {batch}));
  const Tensor b = tensor({1., 2., 3., 4., kNaN, kNaN}, {batch, time}, f64);
  const auto f = [](const std::pair<Tensor, Tensor>& x, const Tensor& input) {
    const Tensor h = linear_scan(x.first, x.second, input.dim("time"), {.input = input});
    return sum(h);
  };
  // h = b (1, 2 + a, 3 + 2 a + a²), and 4 b.
  const auto [ga, gb] = run(grad(f))(std::pair{scalar(0.5, f64), scalar(10., f64)}, b);
  expect_values(ga, {10 * (1 + 2 + 2 * 0.5)});
  expect_values(gb, {1 + 2.5 + 4.25 + 4});
}

TEST_P(LinearScanTest, AlongTheEntriesLengthsTellWhichExist) {
  const Dim batch("batch", 3), time("time", tensor({2, 1, 2}, {batch}));
  const Tensor x = tensor({1., 2., 3., kNaN, 5., 6.}, {batch, time});
  expect_values(run([](Tensor x) { return linear_scan(scalar(2.), x, x.dim("batch")); })(x),
                {1, 2, 5, 0, 15, 10}, 0);
  expect_values(run([](Tensor x) {
                  return linear_scan(scalar(2.), x, x.dim("batch"), {.reverse = true});
                })(x),
                {27, 14, 13, 0, 5, 6}, 0);
}

TEST_P(LinearScanTest, AxesMayBeEmpty) {
  const auto of = [&](const Dims& dims) {
    return run(grad([](const Operands& x) {
      return sum(linear_scan(std::get<0>(x), std::get<1>(x), std::get<2>(x), 0));
    }))(Operands{zeros({dims[1]}), zeros(dims), ones({dims[1]})});
  };
  const auto [a, b, h0] = of({0, 2});
  expect_values(a, {0, 0});
  expect_values(b, {});
  expect_values(h0, {0, 0});
  expect_values(std::get<0>(of({3, 0})), {});
}

/// The recurrence along a named dim, as a loop.
Tensor along_width(const Tensor& a, const Tensor& b, const Tensor& h0, const Dim& width) {
  const auto body = [](const std::pair<Tensor, Tensor>& x, const Tensor& h) {
    const Tensor next = x.first * h + x.second;
    return std::pair{next, next};
  };
  const Tensor ys =
      scan(Scan{.spatial_dim = width, .initial = h0, .xs = std::pair{a, b}, .body = body}).ys;
  return transpose(ys, b.dims());
}

using Recurrence = std::function<Tensor(const Tensor&, const Tensor&, const Tensor&, const Dim&)>;

Tensor loss_of_loop(const std::pair<Tensor, Tensor>& operands, const Checkpoint& policy,
                    const Recurrence& recurrence) {
  const auto& [a, x] = operands;
  const Dim width = a.dim("width");
  const auto body = [&](const Tensor& x, const Tensor& h) {
    const Tensor next = recurrence(a, tanh(x + h), mean(h, width), width);
    return std::pair{next, next};
  };
  return sum(square(scan(Scan{.spatial_dim = x.dim("time"),
                              .initial = zeros(a.dims(), f64),
                              .xs = x,
                              .body = body,
                              .checkpoint = policy})
                        .ys));
}

TEST_P(LinearScanTest, LoopsUnderPoliciesHaveTheGradientOfAScan) {
  const Dim batch("batch", 3), time("time", tensor({3, 1, 2}, {batch})), width("width", 9);
  manual_seed(8);
  const std::pair operands{cast(random_uniform({batch, width}, -1, 1), f64),
                           cast(random_normal({batch, time, width}), f64)};
  const Recurrence ours = [](const Tensor& a, const Tensor& b, const Tensor& h0, const Dim& dim) {
    return linear_scan(a, b, h0, dim);
  };
  const auto [a, x] = grad([](const std::pair<Tensor, Tensor>& operands) {
    return loss_of_loop(operands, {}, along_width);
  })(operands);
  for (const Checkpoint& policy : {Checkpoint(), Checkpoint::every(2), Checkpoint::budget(1)}) {
    const auto [a2, x2] = run(grad([=](const std::pair<Tensor, Tensor>& operands) {
      return loss_of_loop(operands, policy, ours);
    }))(operands);
    expect_all_close(mask_padding(a2), mask_padding(a), 1e-12);
    expect_all_close(mask_padding(x2), mask_padding(x), 1e-12);
  }
}

TEST_P(LinearScanTest, IsRecomputedByCheckpointOfAFunction) {
  const Operands x = draw({6, 9}, f64);
  const auto f = [](const Operands& x) {
    return linear_scan(std::get<0>(x), std::get<1>(x), std::get<2>(x), 0);
  };
  const auto slopes = [](const auto& f) {
    return grad([f](const Operands& x) { return weighted(f(x)); });
  };
  const auto [a, b, h0] = run(slopes(checkpoint(f)))(x);
  const auto [a2, b2, h2] = slopes(f)(x);
  expect_all_close(a, a2, 1e-14);
  expect_all_close(b, b2, 1e-14);
  expect_all_close(h0, h2, 1e-14);
}

TEST_P(LinearScanTest, SegmentsOfTimeGiveTheValuesOfALoop) {
  for (const std::int64_t steps : {4096, 5000, 9217}) {
    const Operands x = draw({steps, 2}, f64);
    const auto f = [](const auto& recurrence) {
      return value_and_grad([recurrence](const Operands& x) {
        const Tensor h = recurrence(std::get<0>(x), std::get<1>(x), std::get<2>(x));
        return std::pair{weighted(h), h};
      });
    };
    const auto [value, slopes] =
        run(f([](Tensor a, Tensor b, Tensor h0) { return linear_scan(a, b, h0, 0); }))(x);
    const auto [value2, slopes2] =
        jit(f([](Tensor a, Tensor b, Tensor h0) { return by_scan(a, b, h0); }))(x);
    expect_all_close(value.second, value2.second, 1e-11);
    expect_all_close(std::get<0>(slopes), std::get<0>(slopes2), 1e-9);
    expect_all_close(std::get<1>(slopes), std::get<1>(slopes2), 1e-9);
    expect_all_close(std::get<2>(slopes), std::get<2>(slopes2), 1e-9);
  }
}

// A product over a segment may be infinite or vanish where the states are neither.
TEST(LinearScanSegmentsTest, ProductsOutOfRangeChangeNothing) {
  const std::int64_t steps = 6000;
  const auto last = [&](double a, double h0, double at_3000) {
    std::vector<double> b(static_cast<std::size_t>(steps));
    b[3000] = at_3000;
    return values_of(linear_scan(full({steps}, a, f64), tensor(b), scalar(h0, f64), 0));
  };
  const std::vector<double> grows = last(4, 0, std::ldexp(1., -1000));
  EXPECT_EQ(grows[2999], 0);
  EXPECT_EQ(grows[3900], std::ldexp(1., 2 * 900 - 1000));
  EXPECT_EQ(grows[5999], std::numeric_limits<double>::infinity());
  const std::vector<double> falls = last(0.5, std::ldexp(1., 1000), 0);
  EXPECT_EQ(falls[1499], std::ldexp(1., -500));
  EXPECT_EQ(last(1, 3, 0)[5999], 3);
  EXPECT_TRUE(std::isnan(last(kNaN, 0, 0)[5999]));
}

TEST(LinearScanThreadsTest, TheBitsAreTheSameOnAnyNumber) {
  for (const Dims& dims :
       {Dims{9000, 1}, Dims{9000, 3}, Dims{3000, 7}, Dims{2000, 300}, Dims{300, 5, 700}}) {
    const Operands x = draw(dims);
    const auto f = value_and_grad([](const Operands& x) {
      const Tensor h = linear_scan(std::get<0>(x), std::get<1>(x), std::get<2>(x), 0);
      return std::pair{sum(sin(h)), h};
    });
    const auto on = [&](int count) {
      const Threads these(count);
      return f(x);
    };
    const auto [value, slopes] = on(1);
    for (const int count : {2, 5}) {
      const auto [value2, slopes2] = on(count);
      expect_same_bits(value2.second, value.second);
      expect_same_bits(std::get<0>(slopes2), std::get<0>(slopes));
      expect_same_bits(std::get<1>(slopes2), std::get<1>(slopes));
      expect_same_bits(std::get<2>(slopes2), std::get<2>(slopes));
    }
  }
}

// The rows of a batch have the bits that they have alone.
TEST(LinearScanThreadsTest, EachRowHasItsBitsAlone) {
  const auto [b, a, h0] = draw({9, 5000});
  const Tensor all = linear_scan(sin(a), b, 1);
  for (const int row : {0, 8}) {
    const auto of = [&](const Tensor& x) { return slice(x, 0, row, row + 1); };
    expect_same_bits(of(all), linear_scan(of(sin(a)), of(b), 1));
  }
}

// An operand a without the time axis: walks go on in the padding, where a large a overflows.
TEST(LinearScanTest, PaddingOverflowsIntoNoGradient) {
  manual_seed(12);
  const Dim batch("batch", 3), time("time", tensor({3, 2000, 0}, {batch})), channel("channel", 2);
  const Tensor a = tensor({4., -3., 0.5, -0.2, 7., 2.}, {batch, channel}, f64),
               h0 = random_normal({batch, channel}, f64),
               b = mask_padding(random_normal({time, batch, channel}, f64), kNaN);
  for (const bool is_reverse : {false, true}) {
    const auto by_op = [&](const Operands& x) {
      const auto& [a, b, h0] = x;
      return linear_scan(a, b, h0, time, {.reverse = is_reverse});
    };
    const auto by_scan = [&](const Operands& x) {
      const auto& [a, b, h0] = x;
      const auto body = [&, &a = a](const Tensor& b, const Tensor& h) {
        const Tensor next = a * h + b;
        return std::pair{next, next};
      };
      return scan(Scan{.spatial_dim = time,
                       .initial = h0,
                       .xs = b,
                       .body = body,
                       .reverse = is_reverse})
          .ys;
    };
    const auto derivatives = [&](const auto& f) {
      const auto loss = [f](const Operands& x) { return sum(square(f(x))); };
      const auto slope = [loss](const Operands& x) {
        const auto [a, b, h0] = grad(loss)(x);
        return sum(square(a)) + sum(square(b)) + sum(a) * sum(h0);
      };
      return [loss, slope](const Operands& x) { return std::pair{grad(loss)(x), grad(slope)(x)}; };
    };
    const Operands x{a, b, h0};
    const auto expected = derivatives(by_scan)(x);
    for (const auto& made : {derivatives(by_op)(x), jit(derivatives(by_op))(x)})
      for (const auto& [got, wanted] :
           {std::pair{made.first, expected.first}, std::pair{made.second, expected.second}}) {
        expect_all_close(std::get<0>(got), std::get<0>(wanted), 1e-10);
        expect_all_close(mask_padding(std::get<1>(got)), mask_padding(std::get<1>(wanted)), 1e-10);
        expect_all_close(std::get<2>(got), std::get<2>(wanted), 1e-10);
      }
  }
}

TEST(LinearScanErrorTest, RefusesOtherDtypesShapesAndAxes) {
  const Tensor x = zeros({4, 3});
  EXPECT_EQ(message_of<DTypeError>([&] { linear_scan(cast(x, i32), cast(x, i32), 0); }),
            "linear_scan: takes floats, got i32[4,3]; cast it to f32 or f64");
  EXPECT_EQ(message_of<DTypeError>([&] { linear_scan(x, cast(x, f64), 0); }),
            "linear_scan: dtypes differ: a f32[4,3], b f64[4,3]; cast one of them, e.g. cast(b, "
            "f32)");
  EXPECT_EQ(message_of<DTypeError>([&] { linear_scan(x, x, cast(x, f64), 0); }),
            "linear_scan: dtypes differ: a f32[4,3], h0 f64[4,3]; cast one of them, e.g. cast(h0, "
            "f32)");
  EXPECT_EQ(message_of<ShapeError>([&] { linear_scan(zeros({2}), x, 0); }),
            "linear_scan: sizes differ: a f32[2], b f32[4,3]; axis -1 has sizes 2 and 3, which "
            "must be equal, or one of them 1");
  EXPECT_EQ(message_of<ShapeError>([&] { linear_scan(x, x, zeros({4}), 0); }),
            "linear_scan: h0 f32[4] does not broadcast to the state f32[3], which has the dims of "
            "the result f32[4,3] without axis 0 of f32[4,3]");
  EXPECT_EQ(message_of<IndexError>([&] { linear_scan(x, x, 2); }),
            "linear_scan: axis 2 is out of range for f32[4,3], which has 2 axes");
  const Dim batch("batch", 2), time("time", 3), other("other", 3);
  EXPECT_EQ(message_of<ShapeError>([&] { linear_scan(zeros({batch}), zeros({time}), time); }),
            "linear_scan: dims differ: a f32[batch=2] lacks time=3, b f32[time=3] lacks batch=2; "
            "each lacks a dim of the other, but one operand must have all dims of the result: give "
            "it the missing ones with expand");
  EXPECT_EQ(message_of<ArgumentError>([&] { linear_scan(Tensor(), x, 0); }),
            "linear_scan: was given an empty Tensor; assign a tensor to it first, and do not use "
            "one that "
            "was moved");
}

}  // namespace
}  // namespace reel
