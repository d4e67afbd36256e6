// Masking and packing as RETURNN's users need them: the table of reductions, and rows 91 to 93.
#include "reel/tests/cases/returnn/returnn.h"

namespace reel {
namespace {

using ReturnnPacking = ReturnnCase;
REEL_IN_EVERY_MODE(ReturnnPacking);

TEST_P(ReturnnPacking, D26_SumsAndMeansLeaveOutPadding) {
  for (const double padding : kPaddings) {
    const Tensor x = x2(padding);
    const auto of = [&](auto f) { return run([&, f](const Tensor& x) { return f(x); })(x); };
    expect_values(of([&](const Tensor& x) { return sum(x, time); }), {6, 9, 7});
    expect_values(of([&](const Tensor& x) { return sum(x, {batch, time}); }), {22});
    expect_values(of([&](const Tensor& x) { return sum(x, batch); }), {12, 7, 3});  // D26
    expect_values(of([&](const Tensor& x) { return mean(x, time); }), {2, 4.5, 7});
    expect_values(of([&](const Tensor& x) { return mean(x, {batch, time}); }), {22. / 6});
    expect_values(of([&](const Tensor& x) { return mean(x, batch); }), {4, 3.5, 3});
    expect_values(of([&](const Tensor& x) { return sum(cast(mask(x.dim("time")), i32)); }), {6});
  }
}

// D26 for every reduction over the dim that lengths lie over, with gradients of exactly zero.
TEST_P(ReturnnPacking, D26_ReductionsOverTheDimThatLengthsRunOver) {
  const Tensor x = x2(kNan, f64);
  const auto of = [&](auto f) { return run([&, f](const Tensor& x) { return f(x); })(x); };
  expect_values(of([&](const Tensor& x) { return max(x, batch); }), {7, 5, 3});
  expect_values(of([&](const Tensor& x) { return min(x, batch); }), {1, 2, 3});
  expect_values(of([&](const Tensor& x) { return prod(x, batch); }), {28, 10, 3});
  expect_values(of([&](const Tensor& x) { return argmax(x, batch); }), {2, 1, 0});
  expect_values(of([&](const Tensor& x) { return any(x > 4.5, batch); }), {1, 1, 0});
  expect_values(of([&](const Tensor& x) { return all(x > 2.5, batch); }), {0, 0, 1});
  expect_values(of([&](const Tensor& x) { return logsumexp(x, batch); }),
                {std::log(std::exp(1.) + std::exp(4.) + std::exp(7.)),
                 std::log(std::exp(2.) + std::exp(5.)), 3});
  expect_values(of([&](const Tensor& x) { return variance(x, batch); }), {6, 2.25, 0});
  const Tensor s = tensor({1., 2., 3.}, {batch}, f64);
  expect_values(of([&](const Tensor& x) { return matmul(x, s, batch); }), {30, 12, 3});
}

TEST_P(ReturnnPacking, ExtremesAndSoftmaxLeaveOutPadding) {
  for (const double padding : kPaddings) {
    const Tensor x = x2(padding);
    const auto of = [&](auto f) { return run([&, f](const Tensor& x) { return f(x); })(x); };
    expect_values(of([&](const Tensor& x) { return max(x, time); }), {3, 5, 7});
    expect_values(of([&](const Tensor& x) { return argmax(x, time); }), {2, 1, 0});
    expect_values(of([&](const Tensor& x) { return logsumexp(x, time); }), {3.407606, 5.313262, 7});
    expect_values(of([&](const Tensor& x) { return any(x > 2.5, time); }), {1, 1, 1});
    expect_values(of([&](const Tensor& x) { return all(x < 3.5, time); }), {1, 0, 0});
    expect_values(of([&](const Tensor& x) { return softmax(x, time); }),
                  {.090031, .244728, .665241, .268941, .731059, 0, 1, 0, 0});
  }
}

TEST_P(ReturnnPacking, PositionsCountWithinEachEntry) {
  const Dim three("three", 3);
  for (const double padding : kPaddings) {
    const Tensor x = x2(padding);
    const auto of = [&](auto f) { return run([&, f](const Tensor& x) { return f(x); })(x); };
    expect_values(of([&](const Tensor& x) { return gather(x, scalar(2), time, {.clip = true}); }),
                  {3, 5, 7});
    expect_values(of([&](const Tensor& x) {
                    return gather(x, tensor({2, 1, 0}, {batch}), time);
                  }),
                  {3, 5, 7});
    expect_in_order(of([&](const Tensor& x) { return shift(x, time, 1); }), {batch, time},
                    {0, 1, 2, 0, 4, 0, 0, 0, 0});
    expect_in_order(of([&](const Tensor& x) { return reverse(x, time); }), {batch, time},
                    {3, 2, 1, 5, 4, 0, 7, 0, 0});
    const auto grown =
        run([&](const Tensor& x) { return cum_concat(full({batch}, 100), x, x.dim("time")); });
    const auto [longer, dim] = grown(x);
    EXPECT_TRUE(dim == time + 1);
    expect_values(dim.lengths(), {4, 3, 2});
    expect_in_order(longer, {batch, dim}, {1, 2, 3, 100, 4, 5, 100, 0, 7, 100, 0, 0});
  }
  EXPECT_EQ(
      message_of<IndexError>([&] {
        run([&](const Tensor& x) { return gather(x, tensor({3, 0, 0}, {batch}), time); })(x2(0));
      }),
      "gather: index 3 at [0] of i32[batch=3] is out of range for axis "
      "time[batch=3] of f32[batch=3,time[batch=3]], which has size 3");
}

TEST_P(ReturnnPacking, D23_ReductionsOverEmptyEntries) {
  const Dim two("batch", 2), some("time", tensor({2, 0}, {two}));
  for (const double padding : kPaddings) {
    const Tensor x = tensor(std::vector<double>{1, 2, padding, padding}, {two, some});
    const auto of = [&](auto f, const std::vector<double>& expected) {
      const auto g = [&, f](const Tensor& x) { return f(x); };
      expect_values(run(g)(x), expected);
      for (const double d : values_of(run(grad([=](const Tensor& x) {
             const Tensor y = g(x);
             return sum(where(isfinite(y), y, zeros_like(y)));
           }))(x)))
        EXPECT_TRUE(std::isfinite(d));
      // Again with a cotangent for the infinity.
      const std::vector<double> all =
          values_of(run(grad([=](const Tensor& x) { return sum(g(x)); }))(x));
      EXPECT_EQ(all[2], 0);
      EXPECT_EQ(all[3], 0);
    };
    of([&](const Tensor& x) { return sum(x, some); }, {3, 0});
    of([&](const Tensor& x) { return mean(x, some); }, {1.5, 0});
    of([&](const Tensor& x) { return max(x, some); }, {2, -kInf});
    of([&](const Tensor& x) { return logsumexp(x, some); }, {2.313262, -kInf});
    of([&](const Tensor& x) { return softmax(x, some); }, {.268941, .731059, 0, 0});
  }
}

TEST_P(ReturnnPacking, Case91_UnpackInvertsPack) {
  for (const double padding : kPaddings) {
    const auto by_batch = run([](const Tensor& x) {
      const Dims dims{x.dim("batch"), x.dim("time")};
      const Tensor packed = pack(x, dims);
      return std::pair{packed, unpack(packed, 0, dims)};
    });
    const auto [packed, back] = by_batch(x2(padding));
    EXPECT_EQ(packed.shape(), (std::vector<std::int64_t>{6}));
    expect_values(packed, {1, 2, 3, 4, 5, 7});
    EXPECT_EQ(back.dims(), (Dims{batch, time}));
    expect_values(back, {1, 2, 3, 4, 5, 0, 7, 0, 0});
    expect_values(run([](const Tensor& x) {
                    return pack(x, {x.dim("time"), x.dim("batch")});
                  })(x2(padding)),
                  {1, 4, 7, 2, 5, 3});
    // A round trip is exact, and so is its gradient.
    const auto trip = [](const Tensor& x) {
      const Dims dims{x.dim("time"), x.dim("batch")};
      const Tensor packed = pack(x, dims);
      return sum(square(unpack(packed * packed, 0, dims)));
    };
    const Tensor d = checked_gradient(trip, x2(padding, f64), 1e-5);
    expect_values(d, {4, 32, 108, 256, 500, 0, 1372, 0, 0});
  }
}

TEST_P(ReturnnPacking, Case92_PackByAMaskShortensEachEntry) {
  for (const double padding : kPaddings) {
    const auto f = run([](const Tensor& x) {
      const Tensor odd = x * 0.5 != floor(x * 0.5);
      return pack(x, odd, x.dim("time"));
    });
    const Tensor y = f(x2(padding));
    ASSERT_EQ(y.rank(), 2);
    EXPECT_TRUE(y.dim(0) == batch);
    expect_values(y.dim(1).lengths(), {2, 1, 1});  // 1 3, 5, 7
    expect_values(mask_padding(y), {1, 3, 5, 0, 7, 0});
  }
}

TEST_P(ReturnnPacking, Case93_UnstackGivesTheRowsOfAStaticDim) {
  const Dim rows("rows", 3), feature("feature", 5);
  const auto f = run([&](const Tensor& x) {
    const Tensors parts = unstack(x, rows);
    EXPECT_EQ(parts.size(), 3u);
    return std::tuple{parts[0], parts[1], parts[2]};
  });
  const auto [a, b, c] =
      f(expand(range(feature), {rows, feature}) + expand(10 * range(rows), {rows, feature}));
  for (const Tensor& part : {a, b, c}) EXPECT_EQ(part.dims(), (Dims{feature}));
  expect_values(a, {0, 1, 2, 3, 4});
  expect_values(b, {10, 11, 12, 13, 14});
  expect_values(c, {20, 21, 22, 23, 24});
}

}  // namespace
}  // namespace reel
