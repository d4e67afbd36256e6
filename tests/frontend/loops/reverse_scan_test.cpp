// Reverse scans along ragged dims: each entry runs back from its own end, as if it were alone.
#include "reel/tests/frontend/policies/policies.h"
#include "reel/tests/gradients.h"
#include "reel/tests/modes.h"

namespace reel {
namespace {

using ReverseScanTest = InEveryMode;
REEL_IN_EVERY_MODE(ReverseScanTest);

using Counted = std::pair<Tensor, Tensor>;

/// Weights x_t and the state by a counter that all entries share.
Tensor counted(const Tensor& x, const LoopPolicy& policy = {}) {
  return scan(Scan{.spatial_dim = x.dim("time"),
                   .initial = Counted{ones({x.dim("batch")}, f64), scalar(1., f64)},
                   .xs = x,
                   .body =
                       [](const Tensor& x, const Counted& s) {
                         const Tensor next = tanh(s.first * x) * s.second;
                         return std::pair{next, Counted{next, s.second + 1.}};
                       },
                   .reverse = true,
                   .checkpoint = policy.checkpoint,
                   .swap_memory = policy.swap_memory})
      .ys;
}

TEST_P(ReverseScanTest, NoEntrySeesHowLongOthersAre) {
  const Dim one("batch", 1), alone("time", tensor({2}, {one}));
  const std::vector<double> expected = values_of(counted(tensor({{.5, -2.}}, {one, alone}, f64)));
  for (const int other : {0, 1, 2, 5}) {
    const Dim batch("batch", 2), time("time", tensor({2, other}, {batch}));
    const std::int64_t size = time.size();
    std::vector<double> both(static_cast<std::size_t>(2 * size), .25);
    both[0] = .5;
    both[1] = -2;
    const Tensor ys =
        run([](const Tensor& x) { return counted(x); })(tensor(both, {batch, time}, f64));
    EXPECT_EQ(ys.shape(), (std::vector<std::int64_t>{size, 2}));
    EXPECT_EQ(values_of(gather(slice(ys, time, 0, 2, Dim("two", 2)), scalar(0), batch)), expected);
  }
}

TEST_P(ReverseScanTest, GradientsUnderPolicies) {
  const Dim batch("batch", 4), time("time", tensor({2, 0, 3, 1}, {batch}));
  const Tensor x = random_normal({batch, time}, f64);
  for (const LoopPolicy& policy : {LoopPolicy{}, LoopPolicy{.checkpoint = Checkpoint::every(2)},
                                   LoopPolicy{.swap_memory = true}}) {
    const auto loss = [&](const Tensor& x) { return sum(square(counted(x, policy))); };
    expect_gradient_of(loss, mask_padding(x), mask_padding(run(grad(loss))(x)), 1e-6);
    const auto slope = [&](const Tensor& x) { return sum(square(grad(loss)(x))); };
    expect_gradient_of(slope, mask_padding(x), mask_padding(run(grad(slope))(x)), 1e-5);
  }
}

/// Iteration k reads element length - 1 - k of each entry, also of a sequence that all entries
/// share.
TEST_P(ReverseScanTest, SharedXsAreReadFromTheEndOfEachEntry) {
  const Dim batch("batch", 3), time("time", tensor({2, 0, 3}, {batch}));
  const Tensor x = tensor({10., 20., 30.}, {time}, f64);
  const auto f = [&](const Tensor& x) {
    return scan(Scan{.spatial_dim = time,
                     .initial = zeros({batch}, f64),
                     .xs = x,
                     .body =
                         [](const Tensor& x, const Tensor& s) {
                           const Tensor next = s / 10. + x;
                           return std::pair{next, next};
                         },
                     .reverse = true});
  };
  const Tensor ys = run([&](const Tensor& x) { return f(x).ys; })(x);
  EXPECT_EQ(ys.dims(), (Dims{time, batch}));
  expect_all_close(ys, tensor({{12., 0., 12.3}, {20., 0., 23.}, {0., 0., 30.}}, {time, batch}, f64),
                   1e-12);
  expect_all_close(run([&](const Tensor& x) { return f(x).state; })(x),
                   tensor({12., 0., 12.3}, {batch}, f64), 1e-12);
}

TEST_P(ReverseScanTest, SharedYsStandAtTheElementsOfEachEntry) {
  const Dim batch("batch", 3), time("time", tensor({2, 0, 3}, {batch}));
  const auto f = [&](const Tensor& x) {
    return scan(Scan{.spatial_dim = time,
                     .initial = 1,
                     .xs = x,
                     .body =
                         [](const Tensor&, const Tensor& i) {
                           return std::pair{i, i + 1};
                         },
                     .reverse = true});
  };
  const Tensor ys = run([&](const Tensor& x) { return f(x).ys; })(ones({batch, time}));
  EXPECT_EQ(ys.dims(), (Dims{time, batch}));
  expect_values(ys, {2, 0, 3, 1, 0, 2, 0, 0, 1});
  expect_values(run([&](const Tensor& x) { return f(x).state; })(ones({batch, time})), {4});
}

TEST_P(ReverseScanTest, ArraysStandInTheOrderOfTheElements) {
  const Dim batch("batch", 2), time("time", tensor({2, 3}, {batch}));
  const auto f = [&](const Tensor& x) {
    return scan(Scan{.spatial_dim = time,
                     .initial = zeros({batch}),
                     .xs = x,
                     .body =
                         [](const Tensor& x, const Tensor& s) {
                           return std::pair{s + x, s + x};
                         },
                     .return_tensor_arrays = std::true_type{},
                     .reverse = true})
        .ys.stack(time);
  };
  expect_values(run(f)(tensor({{1., 2., 0.}, {3., 4., 5.}}, {batch, time})), {3, 12, 2, 9, 0, 5});
}

TEST_P(ReverseScanTest, TruncationCountsFromTheEndOfEachEntry) {
  const Dim batch("batch", 2), time("time", tensor({2, 3}, {batch}));
  const auto loss = [&](const Tensor& x) {
    return sum(scan(Scan{.spatial_dim = time,
                         .initial = ones({batch}),
                         .xs = x,
                         .body =
                             [](const Tensor& x, const Tensor& s) {
                               return std::pair{s * x, s * x};
                             },
                         .reverse = true,
                         .truncate = 2})
                   .ys);
  };
  expect_values(run(grad(loss))(tensor({{1., 2., 0.}, {3., 4., 5.}}, {batch, time})),
                {2, 2, 0, 20, 5, 5});
}

}  // namespace
}  // namespace reel
