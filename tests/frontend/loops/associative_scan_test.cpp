// associative_scan: values and gradients in every mode, trees, ragged dims, unknown sizes, errors.
#include "reel/frontend/loops/associative_scan.h"

#include <gtest/gtest.h>

#include <limits>
#include <utility>

#include "reel/tests/gradients.h"
#include "reel/tests/modes.h"

namespace reel {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

/// A pair (a, b) stands for the function h -> a h + b.
struct Affine {
  Tensor a, b;
};
Affine chained(const Affine& first, const Affine& second) {
  return {second.a * first.a, second.a * first.b + second.b};
}
Tensor product(const Tensor& x, const Tensor& y) { return x * y; }
/// Associative, but not commutative: the second operand unless it is 0.
Tensor latest(const Tensor& x, const Tensor& y) { return where(y != 0., y, x); }

class AssociativeScanTest : public InEveryMode {};
REEL_IN_EVERY_MODE(AssociativeScanTest);

TEST_P(AssociativeScanTest, CombinesAllElementsUpToEach) {
  for (const std::int64_t count : {1, 2, 3, 5, 8}) {
    std::vector<double> x, sums, from_end(static_cast<std::size_t>(count));
    double sum = 0;
    for (std::int64_t i = 0; i < count; ++i) {
      x.push_back(static_cast<double>(1 << i));
      sums.push_back(sum += x.back());
    }
    for (std::size_t i = 0; i < from_end.size(); ++i) from_end[i] = sum + x[i] - sums[i];
    for (const bool reverse : {false, true})
      expect_values(run([reverse](Tensor x) {
                      return associative_scan(
                          [](const Tensor& a, const Tensor& b) { return a + b; }, x, 0,
                          {.reverse = reverse});
                    })(tensor(x)),
                    reverse ? from_end : sums, 0);
  }
}

TEST_P(AssociativeScanTest, KeepsTheOrderOfOperands) {
  const Tensor x = tensor({{0., 1.}, {5., 0.}, {0., 0.}, {6., 2.}, {0., 0.}});
  const auto of = [&](bool reverse) {
    return run(
        [reverse](Tensor x) { return associative_scan(latest, x, 0, {.reverse = reverse}); })(x);
  };
  expect_values(of(false), {0, 1, 5, 1, 5, 1, 6, 2, 6, 2}, 0);
  expect_values(of(true), {5, 1, 5, 2, 6, 2, 6, 2, 0, 0}, 0);
}

TEST_P(AssociativeScanTest, AxesLieAnywhereAndMayBeEmpty) {
  const Tensor x = tensor({{1., 2., 3.}, {4., 5., 6.}});
  expect_values(run([](Tensor x) { return associative_scan(product, x, -1); })(x),
                {1, 2, 6, 4, 20, 120}, 0);
  expect_values(run([](Tensor x) { return associative_scan(product, x, 0); })(zeros({0, 3})), {});
}

TEST_P(AssociativeScanTest, ScanOfATreeComputesALinearRecurrence) {
  const Dim batch("batch", 2), time("time", 7);
  manual_seed(3);
  const Affine x{cast(random_normal({batch, time}), f64), cast(random_normal({time, batch}), f64)};
  const auto f = [](const Affine& x) {
    const Dim time = x.a.dim("time");
    return associative_scan(
               [](const Affine& first, const Affine& second) {
                 return Affine{second.a * first.a,
                               transpose(second.a, second.b.dims()) * first.b + second.b};
               },
               x, time)
        .b;
  };
  const Tensor b = transpose(x.b, {batch, time});
  expect_all_close(transpose(run(f)(x), {batch, time}), linear_scan(x.a, b, time), 1e-12);
  const auto loss = [f](const Affine& x) { return sum(sin(f(x))); };
  expect_gradient_of(loss, x, run(grad(loss))(x));
  const auto second = [loss](const Affine& x) {
    const Affine g = grad(loss)(x);
    return sum(square(g.a)) + sum(sin(g.b));
  };
  expect_gradient_of(second, x, run(grad(second))(x), 1e-6);
}

TEST_P(AssociativeScanTest, EachEntryRunsWithinItsLength) {
  const Dim batch("batch", 3), time("time", tensor({3, 0, 2}, {batch}));
  const Affine x{tensor({2., 2., 2., kNaN, kNaN, kNaN, 3., 3., kNaN}, {batch, time}),
                 tensor({1., 2., 3., kNaN, kNaN, kNaN, 1., 4., kNaN}, {batch, time})};
  for (const bool reverse : {false, true}) {
    const auto f = [reverse](const Affine& x) {
      const Affine y = associative_scan(chained, x, x.a.dim("time"), {.reverse = reverse});
      return std::pair{sum(y.b), y.b};
    };
    const auto [value, slope] = run(value_and_grad(f))(x);
    expect_values(value.second, reverse ? std::vector<double>{17, 8, 3, 0, 0, 0, 13, 4, 0}
                                        : std::vector<double>{1, 4, 11, 0, 0, 0, 1, 7, 0});
    expect_values(slope.b, reverse ? std::vector<double>{1, 3, 7, 0, 0, 0, 1, 4, 0}
                                   : std::vector<double>{7, 3, 1, 0, 0, 0, 4, 1, 0});
    expect_values(slope.a, reverse ? std::vector<double>{8, 9, 0, 0, 0, 0, 4, 0, 0}
                                   : std::vector<double>{0, 3, 4, 0, 0, 0, 0, 1, 0});
    // The axis need not be behind its entries.
    const Affine turned{transpose(x.a, {time, batch}), transpose(x.b, {time, batch})};
    const auto turned_back = run(value_and_grad(f))(turned);
    EXPECT_EQ(turned_back.first.second.dims(), turned.b.dims());
    expect_all_close(transpose(turned_back.first.second, {batch, time}), value.second);
    expect_all_close(transpose(turned_back.second.a, {batch, time}), slope.a);
  }
}

// Overflows where elements are combined that should not be: the gradient would be NaN.
TEST_P(AssociativeScanTest, CombinesNothingBesides) {
  const Dim batch("batch", 2), time("time", tensor({1, 3}, {batch}));
  const Tensor x = tensor({1e30, 1e30, 1e30, 1e30, 2., 3.}, {batch, time});
  expect_values(run(grad([](const Tensor& x) {
                  const Tensor y = associative_scan(product, x, x.dim("time"));
                  return sum(y * 1e-30);
                }))(x),
                {1e-30, 0, 0, 9e-30, 1 + 3, 2}, 1e-5);
}

TEST_P(AssociativeScanTest, AnotherCallHasAnotherNumberOfElements) {
  const auto f = run([](const Tensor& x) { return associative_scan(product, x, x.dim("time")); });
  for (const std::int64_t count : {3, 6}) {
    const Dim time("time", count);
    std::vector<double> x, products;
    for (std::int64_t i = 0; i < count; ++i) {
      x.push_back(static_cast<double>(i + 1));
      products.push_back(x.back() * (i ? products.back() : 1));
    }
    expect_values(f(tensor(x, {time})), products, 0);
  }
}

TEST_P(AssociativeScanTest, PoliciesLeaveGradientsInABodyAsTheyAre) {
  const Dim batch("batch", 2), time("time", tensor({3, 2}, {batch})), width("width", 5);
  manual_seed(2);
  const Tensor x = mask_padding(cast(random_normal({batch, time, width}), f64));
  const auto loss = [](const Checkpoint& policy) {
    return [policy](const Tensor& x) {
      const auto body = [&](const Tensor& x, const Tensor& h) {
        const Tensor next = tanh(associative_scan(product, x + h, x.dim("width")));
        return std::pair{next, next};
      };
      return sum(square(scan(Scan{.spatial_dim = x.dim("time"),
                                  .initial = ones({x.dim("batch"), x.dim("width")}, f64),
                                  .xs = x,
                                  .body = body,
                                  .checkpoint = policy})
                            .ys));
    };
  };
  const Tensor slope = grad(loss({}))(x);
  for (const Checkpoint& policy : {Checkpoint(), Checkpoint::every(2)})
    expect_all_close(mask_padding(run(grad(loss(policy)))(x)), mask_padding(slope), 1e-12);
  const auto recomputed = [](const Tensor& x) {
    return sum(sin(checkpoint(
        [](const Tensor& x) { return associative_scan(product, x, x.dim("width")); })(x)));
  };
  const auto kept = [](const Tensor& x) {
    return sum(sin(associative_scan(product, x, x.dim("width"))));
  };
  expect_all_close(mask_padding(run(grad(recomputed))(x)), mask_padding(grad(kept)(x)), 1e-12);
}

TEST_P(AssociativeScanTest, LaterDrawsAreThoseOfEagerCode) {
  const auto f = [](const Tensor& x) {
    const auto add = [](const Tensor& a, const Tensor& b) { return a + b; };
    return sum(associative_scan(add, x, x.dim("time"))) + random_uniform({}, 0, 1, f64);
  };
  const Dim batch("batch", 2), time("time", tensor({3, 1}, {batch}));
  const Tensor x = ones({batch, time}, f64);
  manual_seed(3);
  const Tensor expected = f(x);
  manual_seed(3);
  expect_same_bits(run(f)(x), expected);
}

TEST_P(AssociativeScanTest, TheDirectionalDerivativeOfAProduct) {
  const Tensor x = tensor({2., 3., 5., 7.}, {}, f64), v = tensor({1., 0., 1., 0.}, {}, f64);
  expect_values(
      run([v](const Tensor& x) {
        return jvp([](const Tensor& x) { return associative_scan(product, x, 0); }, x, v).second;
      })(x),
      {1, 3, 15 + 6, 105 + 42}, 1e-12);
}

TEST(AssociativeScanErrorTest, RefusesOpsThatChangeTypesAndWrongAxes) {
  const Tensor x = zeros({4, 3});
  EXPECT_EQ(message_of<DTypeError>([&] {
              associative_scan([](const Tensor& a, const Tensor&) { return cast(a, f64); }, x, 0);
            }),
            "associative_scan: op returns other types than it is called with\n  xs: f32[3,3] going "
            "in, f64[3,3] coming out (dtypes differ)\nop returns a tree of the types of its "
            "arguments, with their Dim of the axis.");
  EXPECT_EQ(message_of<ShapeError>([&] {
              associative_scan([](const Tensor& a, const Tensor&) { return sum(a, 0); }, x, 0);
            }),
            "associative_scan: op returns other types than it is called with\n  xs: f32[3,3] going "
            "in, f32[3] coming out (dims differ)\nop returns a tree of the types of its arguments, "
            "with their Dim of the axis.");
  EXPECT_EQ(message_of<ShapeError>([&] {
              associative_scan(chained, Affine{zeros({3}), zeros({4})}, 0);
            }),
            "associative_scan: xs.a has 3 elements along the axis, xs.b f32[4] has 4");
  EXPECT_EQ(message_of<IndexError>([&] { associative_scan(product, x, 2); }),
            "associative_scan: axis 2 is out of range for f32[4,3], which has 2 axes");
  const Dim time("time", 2), words("words", tensor({2, 1}, {time}));
  EXPECT_EQ(
      message_of<ShapeError>([&] {
        associative_scan(product, zeros({time, words}), time);
      }),
      "associative_scan: lengths of another dim of xs f32[time=2,words[time=2]] run over axis "
      "time=2 of f32[time=2,words[time=2]], so that its elements differ in shape; scan() takes "
      "them one by one");
  const auto none = [](const std::vector<Tensor>& a, const std::vector<Tensor>&) { return a; };
  EXPECT_EQ(message_of<ArgumentError>([&] { associative_scan(none, std::vector<Tensor>(), 0); }),
            "associative_scan: xs hold no tensor");
}

}  // namespace
}  // namespace reel
