// Collectives in conditions, constant branches, nested loops and transforms: all ranks run all of
// them, in the order of the program.
#include <sstream>
#include <string>

#include "world_of_tests.h"

namespace reel {
namespace {

class EffectsTest : public InEveryMode {
 protected:
  static int rank() { return world().rank(); }
  static int size() { return world().size(); }
};
REEL_IN_EVERY_MODE(EffectsTest);

/// Returns the sum of a constant over all ranks: an op of several ranks without operands that the
/// argument decides.
Tensor ranks() { return world().all_reduce(ones({2}, f64)); }

TEST_P(EffectsTest, RunInBranchesThatDependOnConstantsAlone) {
  const auto f = [](const Tensor& x) {
    const Tensor chosen = cond(
        scalar(true), [] { return ranks(); }, [] { return zeros({2}, f64); });
    return x + chosen +
           checkpoint([](const Tensor& one) { return world().all_reduce(one); })(ones({2}, f64));
  };
  EXPECT_EQ(run(f)(zeros({2}, f64)).to_vector<double>(), std::vector<double>(2, 2. * size()));
}

TEST_P(EffectsTest, RunInTheConditionOfALoop) {
  const auto f = [](const Tensor& x) {
    return while_loop([](const Tensor& s) { return sum(world().all_reduce(s)) < 100.; },
                      [](const Tensor& s) { return s * 2.; }, x);
  };
  // All ranks stop after the same iteration, although their states differ.
  double expected = 1 + rank(), total = sum_over_ranks([](int r) { return 1. + r; });
  for (; total < 100; total *= 2) expected *= 2;
  EXPECT_EQ(run(f)(scalar(1. + rank(), f64)).item<double>(), expected);
  const Tensor dx = run(grad(f))(scalar(1. + rank(), f64));
  EXPECT_EQ(dx.item<double>(), expected / (1 + rank()));
}

/// A loop in a loop; the inner one reduces, and the outer one reduces its result.
Tensor nested(const Tensor& x) {
  return fori_loop(
      0, 3,
      [&](const Tensor&, const Tensor& outer) {
        const Tensor inner = fori_loop(
            0, 2,
            [&](const Tensor&, const Tensor& s) { return tanh(world().all_reduce(s * x)) * 0.5; },
            outer);
        return inner + world().all_reduce(outer * 0.1);
      },
      x);
}
TEST_P(EffectsTest, RunInLoopsOfLoopsAndTheirGradients) {
  const auto loss = [](const Tensor& x) { return sum(nested(x)); };
  const auto slope = [&](const Tensor& x) { return sum(square(grad(loss)(x))); };
  const Tensor x = tensor({.1, .2, .3}, {}, f64) * scalar(1. + 0.1 * rank(), f64);
  EXPECT_NEAR(run(loss)(x).item<double>(), loss(x).item<double>(), 1e-12);
  expect_all_close(run(grad(loss))(x), grad(loss)(x), 1e-12);
  expect_all_close(run(grad(slope))(x), grad(slope)(x), 1e-10);
}

TEST_P(EffectsTest, DerivativesAreThoseOfDifferences) {
  // One element of the first rank changes; the sum of all ranks' losses changes by its gradient.
  const auto loss = [](const Tensor& x) { return sum(nested(x)); };
  const auto at = [](double step) {
    std::vector<double> x{.1, .2, .3};
    for (double& e : x) e *= 1 + 0.1 * world().rank();
    if (world().rank() == 0) x[1] += step;
    return tensor(x, {}, f64);
  };
  const double h = 1e-5;
  const Tensor difference = world().all_reduce(loss(at(h)) - loss(at(-h))) / (2 * h);
  const Tensor dx = run(grad(loss))(at(0));
  if (rank() != 0) return;
  EXPECT_NEAR(dx.to_vector<double>()[1], difference.item<double>(), 1e-7);
}

TEST_P(EffectsTest, ForwardDerivativesAreReducedOverRanks) {
  const auto f = [](const Tensor& x) { return world().all_reduce(x * x); };
  const auto tangent = [&](const Tensor& x, const Tensor& dx) { return jvp(f, x, dx).second; };
  const Tensor y = run(tangent)(tensor({1., 2. + rank()}, {}, f64), full({2}, 1. + rank(), f64));
  EXPECT_DOUBLE_EQ(y.to_vector<double>()[0], sum_over_ranks([](int r) { return 2 * (1. + r); }));
  EXPECT_DOUBLE_EQ(y.to_vector<double>()[1],
                   sum_over_ranks([](int r) { return 2 * (2. + r) * (1. + r); }));
}

TEST_P(EffectsTest, RowsOfAVmapCallOneAfterAnother) {
  const auto f = [](const Tensor& x) { return world().all_reduce(x) * 2.; };
  const Tensor x = reshape(cast(range(6), f64), {3, 2}) * scalar(1. + rank(), f64);
  const Tensor y = run(vmap(f))(x);
  const double factor = sum_over_ranks([](int r) { return 1. + r; });
  for (std::size_t i = 0; i < 6; ++i)
    EXPECT_DOUBLE_EQ(y.to_vector<double>()[i], 2 * factor * static_cast<double>(i));
}

TEST_P(EffectsTest, RowsThatCannotRunAtOnceCallOnceEach) {
  // A TensorArray that differs between rows is refused behind the collective.
  const auto f = [](const Tensor& x) -> Tensor {
    const Tensor y = world().all_reduce(x);
    return TensorArray::unstack(y, 0).write(1, sum(y)).stack();
  };
  const Tensor x = reshape(cast(range(6), f64), {3, 2}) * scalar(1. + rank(), f64);
  expect_same_bits(run(vmap(f))(x), map(f, x));
  if (size() == 1) return;  // without other ranks there is no op
  const auto traced = jit(vmap(f), {.executor = Executor::interpreter});
  traced(x);
  std::ostringstream out;
  out << traced.graph();
  const std::string graph = out.str();
  const std::size_t first = graph.find("all_reduce_sum(");
  EXPECT_NE(first, std::string::npos) << graph;
  EXPECT_EQ(graph.find("all_reduce_sum(", first + 1), std::string::npos) << graph;
}

/// A recurrent net with states that are normalised over the batches of all ranks, on entries that
/// finish one by one.
Tensor normalised(const Tensor& x, const Dim& time, const Dim& batch) {
  const auto body = [&](const Tensor& x_t, const Tensor& state) {
    const Tensor next = tanh(x_t + 0.5 * state);
    const Tensor mean =
        world().all_reduce_mean(sum(next, batch) / scalar(static_cast<double>(batch.size()), f64),
                                scalar(static_cast<double>(batch.size()), f64));
    const Tensor y = next - mean;
    return std::pair{y, y};
  };
  auto [ys, last, steps] =
      scan(Scan{.spatial_dim = time, .initial = zeros({batch}, f64), .xs = x, .body = body});
  return sum(ys, {batch, time}) * 0.5 + sum(square(last), batch);
}
TEST_P(EffectsTest, RunInLoopsWithEntriesThatFinish) {
  const Dim batch("batch", 3);
  std::vector<std::int32_t> lengths{4, 2, 3};
  const Dim time("time", tensor(lengths, {batch}));
  std::vector<double> numbers;
  for (int i = 0; i < 12; ++i) numbers.push_back(std::sin(i + 1. * rank()));
  const Tensor x = tensor(numbers, {batch, time}, f64);
  const auto loss = [&](const Tensor& v) { return normalised(v, v.dim("time"), v.dim("batch")); };
  const auto [y, dx] = run(value_and_grad(loss))(x);
  const auto [eager_y, eager_dx] = value_and_grad(loss)(x);
  EXPECT_NEAR(y.item<double>(), eager_y.item<double>(), 1e-12);
  const std::vector<double> a = mask_padding(dx).to_vector<double>(),
                            b = mask_padding(eager_dx).to_vector<double>();
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-12);
}

TEST_P(EffectsTest, RunUnderEveryMemoryPolicy) {
  const auto with = [](Checkpoint checkpoint, bool swaps) {
    return [=](const Tensor& x) {
      const Dim time("time", 5);
      const auto body = [](const Tensor& x_t, const Tensor& state) {
        const Tensor next = tanh(world().all_reduce(x_t * state) + state);
        return std::pair{None{}, next};
      };
      auto [ys, last, steps] = scan(Scan{.spatial_dim = time,
                                         .initial = full({2}, 0.7, f64),
                                         .xs = rename(x, 0, time),
                                         .body = body,
                                         .checkpoint = checkpoint,
                                         .swap_memory = swaps});
      return sum(last);
    };
  };
  const Tensor x = tensor({.1, .2, .3, .4, .5}, {}, f64) * scalar(1. + rank(), f64);
  const Tensor plain = grad(with({}, false))(x);
  expect_all_close(run(grad(with({}, true)))(x), plain, 1e-12);
  expect_all_close(run(grad(with(Checkpoint::every(2), false)))(x), plain, 1e-12);
  expect_all_close(run(grad(with(Checkpoint::budget(100), false)))(x), plain, 1e-12);
}

}  // namespace
}  // namespace reel
