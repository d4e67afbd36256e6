// Each collective against its value computed by one process, and its gradients, in every mode.
#include <cmath>

#include "world_of_tests.h"

namespace reel {
namespace {

class CollectivesTest : public InEveryMode {
 protected:
  static int rank() { return world().rank(); }
  static int size() { return world().size(); }
};
REEL_IN_EVERY_MODE(CollectivesTest);

/// Returns values that differ between ranks.
Tensor of_rank(int rank) { return tensor({1. + rank, -2. * rank, 0.5 * rank * rank, 3.}, {}, f64); }

TEST_P(CollectivesTest, AllReduceAddsAllRanks) {
  const Tensor y = run([](const Tensor& x) { return world().all_reduce(x); })(of_rank(rank()));
  for (std::size_t i = 0; i < 4; ++i)
    EXPECT_EQ(y.to_vector<double>()[i],
              sum_over_ranks([&](int r) { return of_rank(r).to_vector<double>()[i]; }));
}

TEST_P(CollectivesTest, AllReduceFindsTheLargest) {
  const Tensor y =
      run([](const Tensor& x) { return world().all_reduce(x, Reduction::max); })(of_rank(rank()));
  const double last = size() - 1;
  EXPECT_EQ(y.to_vector<double>(), (std::vector<double>{1 + last, 0, 0.5 * last * last, 3}));
}

TEST_P(CollectivesTest, MeansAreWeightedByCounts) {
  const auto mean = [](const Tensor& x, const Tensor& count) {
    return world().all_reduce_mean(x, count);
  };
  const Tensor y = run(mean)(scalar(1. * rank(), f64), scalar(1. + rank(), f64));
  const double expected = sum_over_ranks([](int r) { return r * (1. + r); }) /
                          sum_over_ranks([](int r) { return 1. + r; });
  EXPECT_DOUBLE_EQ(y.item<double>(), expected);
}

TEST_P(CollectivesTest, AMeanLeavesOutRanksWithoutItems) {
  const auto mean = [](const Tensor& x, const Tensor& count) {
    return world().all_reduce_mean(x, count);
  };
  const bool has_items = rank() == 0;
  const Tensor y =
      run(mean)(scalar(has_items ? 5. : std::nan(""), f64), scalar(1. * has_items, f64));
  EXPECT_EQ(y.item<double>(), 5);
}

TEST_P(CollectivesTest, TreesAreReducedLeafByLeaf) {
  struct Tree {
    Tensor floats, integers;
    std::vector<Tensor> doubles;
  };
  const auto sum = [](const Tree& tree) { return world().all_reduce(tree); };
  const Tree y = run(sum)(Tree{tensor({1.f * rank(), 2.f}),
                               tensor({rank(), 7}),
                               {scalar(0.5, f64), scalar(1. * rank(), f64)}});
  const auto ranks = static_cast<float>(sum_over_ranks([](int r) { return r; }));
  EXPECT_EQ(y.floats.to_vector<float>(),
            (std::vector<float>{ranks, 2.f * static_cast<float>(size())}));
  EXPECT_EQ(y.integers.to_vector<std::int32_t>(),
            (std::vector<std::int32_t>{static_cast<int>(ranks), 7 * size()}));
  EXPECT_EQ(y.doubles[0].item<double>(), 0.5 * size());
  EXPECT_EQ(y.doubles[1].item<double>(), ranks);
}

TEST_P(CollectivesTest, AllGatherJoinsRanksAlongAnyAxis) {
  const auto both = [](const Tensor& x) {
    return std::pair{world().all_gather(x, 0), world().all_gather(x, 1)};
  };
  const double r = rank();
  const auto [rows, columns] = run(both)(tensor({{r, 10 + r}, {20 + r, 30 + r}}, {}, f64));
  ASSERT_EQ(rows.shape(), (std::vector<std::int64_t>{2 * size(), 2}));
  ASSERT_EQ(columns.shape(), (std::vector<std::int64_t>{2, 2 * size()}));
  for (int i = 0; i < size(); ++i) {
    const auto at = static_cast<std::size_t>(i);
    EXPECT_EQ(rows.to_vector<double>()[4 * at + 3], 30 + i);
    EXPECT_EQ(columns.to_vector<double>()[2 * at + 1], 10 + i);
    EXPECT_EQ(columns.to_vector<double>()[2 * static_cast<std::size_t>(size()) + 2 * at], 20 + i);
  }
}

TEST_P(CollectivesTest, AllGatherOfANamedAxisKeepsItsName) {
  const Dim batch("batch", 2), hidden("hidden", 3);
  const auto gather = [&](const Tensor& x) { return world().all_gather(x, x.dim("hidden")); };
  const Tensor y = run(gather)(full({batch, hidden}, 1. * rank(), f64));
  EXPECT_EQ(y.dim("hidden").size(), 3 * size());
  EXPECT_EQ(y.dim("batch").size(), 2);
}

TEST_P(CollectivesTest, ReduceScatterGivesEachRankItsShardOfTheSum) {
  const auto scatter = [](const Tensor& x) { return world().reduce_scatter(x, 1); };
  std::vector<double> numbers;
  for (int i = 0; i < 4 * size(); ++i) numbers.push_back(i * (1 + rank()));
  const Tensor x = reshape(tensor(numbers, {}, f64), {2, 2 * size()});
  const Tensor y = run(scatter)(x);
  ASSERT_EQ(y.shape(), (std::vector<std::int64_t>{2, 2}));
  const double factor = sum_over_ranks([](int r) { return 1. + r; });
  EXPECT_EQ(y.to_vector<double>()[0], factor * (2 * rank()));
  EXPECT_EQ(y.to_vector<double>()[3], factor * (2 * size() + 2 * rank() + 1));
}

TEST_P(CollectivesTest, BroadcastGivesTheTreeOfTheRoot) {
  const int root = size() - 1;
  const auto copy = [&](const Tensor& x) { return world().broadcast(x, root); };
  EXPECT_EQ(run(copy)(of_rank(rank())).to_vector<double>(), of_rank(root).to_vector<double>());
}

// ---- Gradients: of the sum of all ranks' results ---------------------------------------

TEST_P(CollectivesTest, TheGradientOfASumIsASum) {
  const auto loss = [](const Tensor& x) {
    return sum(square(world().all_reduce(x))) * scalar(1. + world().rank(), f64);
  };
  const Tensor dx = run(grad(loss))(of_rank(rank()));
  const double factor = sum_over_ranks([](int r) { return 1. + r; });
  for (std::size_t i = 0; i < 4; ++i)
    EXPECT_DOUBLE_EQ(dx.to_vector<double>()[i], 2 * factor * sum_over_ranks([&](int r) {
                                                  return of_rank(r).to_vector<double>()[i];
                                                }));
}

TEST_P(CollectivesTest, SecondDerivativesOfASum) {
  const auto loss = [](const Tensor& x) {
    const Tensor total = world().all_reduce(x);
    return sum(total * total * total);
  };
  const auto slope = [&](const Tensor& x) { return sum(grad(loss)(x)); };
  const Tensor ddx = run(grad(slope))(of_rank(rank()));
  const double n = size();
  for (std::size_t i = 0; i < 4; ++i)
    EXPECT_DOUBLE_EQ(ddx.to_vector<double>()[i], 6 * n * n * sum_over_ranks([&](int r) {
                                                   return of_rank(r).to_vector<double>()[i];
                                                 }));
}

TEST_P(CollectivesTest, TheGradientOfAMaximumGoesToTheRanksThatHaveIt) {
  const auto loss = [](const Tensor& x) { return sum(world().all_reduce(x, Reduction::max)); };
  // Elements: the last rank has the largest; rank 0 has it; all have it.
  const Tensor x = tensor({1. * rank(), -1. * rank(), 3.}, {}, f64);
  const std::vector<double> dx = run(grad(loss))(x).to_vector<double>();
  EXPECT_EQ(dx[0], rank() == size() - 1 ? size() : 0);
  EXPECT_EQ(dx[1], rank() == 0 ? size() : 0);
  EXPECT_DOUBLE_EQ(dx[2], 1);
}

TEST_P(CollectivesTest, GatherAndScatterAreTransposesOfEachOther) {
  const auto gathered = [](const Tensor& x) {
    const Tensor all = world().all_gather(x, 0);
    return sum(all * all) * scalar(1. + world().rank(), f64);
  };
  const auto scattered = [](const Tensor& x) {
    return sum(square(world().reduce_scatter(x, 0))) * scalar(1. + world().rank(), f64);
  };
  const double factor = sum_over_ranks([](int r) { return 1. + r; });
  EXPECT_DOUBLE_EQ(run(grad(gathered))(tensor({5. + rank()}, {}, f64)).item<double>(),
                   2 * factor * (5 + rank()));
  const Tensor x = full({size()}, 1. + rank(), f64);
  const std::vector<double> dx = run(grad(scattered))(x).to_vector<double>();
  for (int r = 0; r < size(); ++r)
    EXPECT_DOUBLE_EQ(dx[static_cast<std::size_t>(r)], 2 * factor * (1 + r));
}

TEST_P(CollectivesTest, TheGradientOfABroadcastGoesToTheRoot) {
  const auto loss = [](const Tensor& x) {
    return sum(world().broadcast(x) * scalar(1. + world().rank(), f64));
  };
  const Tensor dx = run(grad(loss))(of_rank(rank()));
  const double expected = rank() == 0 ? sum_over_ranks([](int r) { return 1. + r; }) : 0;
  EXPECT_EQ(dx.to_vector<double>(), std::vector<double>(4, expected));
}

TEST_P(CollectivesTest, GradientsOfWeightedMeans) {
  const auto loss = [](const Tensor& x) {
    return world().all_reduce_mean(x * x, scalar(1. + world().rank(), f64));
  };
  const Tensor dx = run(grad(loss))(scalar(3., f64));
  // Each rank's loss has this derivative, and all ranks' losses are added.
  const double weight = (1. + rank()) / sum_over_ranks([](int r) { return 1. + r; });
  EXPECT_DOUBLE_EQ(dx.item<double>(), size() * weight * 6);
}

// ---- Loops and branches ----------------------------------------------------------------

TEST_P(CollectivesTest, RunInEveryIterationOfALoopAndOfItsGradient) {
  const auto loss = [](const Tensor& x) {
    const Dim time("time", 5);
    const auto body = [](const Tensor& x_t, const Tensor& state) {
      const Tensor next = state * 0.5 + world().all_reduce(x_t * state);
      return std::pair{next, next};
    };
    auto [ys, last, steps] = scan(Scan{
        .spatial_dim = time, .initial = scalar(1., f64), .xs = rename(x, 0, time), .body = body});
    return sum(ys, time) + last;
  };
  std::vector<double> numbers;
  for (int t = 0; t < 5; ++t) numbers.push_back(0.1 * (t + 1) * (1 + world().rank()));
  const Tensor x = tensor(numbers, {}, f64);
  const auto [y, dx] = run(value_and_grad(loss))(x);
  const auto [eager_y, eager_dx] = value_and_grad(loss)(x);
  EXPECT_DOUBLE_EQ(y.item<double>(), eager_y.item<double>());
  for (std::size_t t = 0; t < 5; ++t)
    EXPECT_NEAR(dx.to_vector<double>()[t], eager_dx.to_vector<double>()[t], 1e-12);
  // The state by hand: s' = s (1/2 + sum of x over ranks).
  double state = 1, total = 0;
  const double factor = sum_over_ranks([](int r) { return 1. + r; });
  for (int t = 0; t < 5; ++t) total += state *= 0.5 + 0.1 * (t + 1) * factor;
  EXPECT_NEAR(y.item<double>(), total + state, 1e-12);
}

TEST_P(CollectivesTest, RunInRecomputedIterations) {
  const auto with = [](std::int64_t every) {
    return [every](const Tensor& x) {
      const Dim time("time", 6);
      const auto body = [](const Tensor& x_t, const Tensor& state) {
        const Tensor next = tanh(world().all_reduce(x_t * state) + state);
        return std::pair{None{}, next};
      };
      auto [ys, last, steps] =
          scan(Scan{.spatial_dim = time,
                    .initial = scalar(0.7, f64),
                    .xs = rename(x, 0, time),
                    .body = body,
                    .checkpoint = every ? Checkpoint::every(every) : Checkpoint()});
      return last;
    };
  };
  const Tensor x = tensor({.1, .2, .3, .4, .5, .6}, {}, f64) * scalar(1. + rank(), f64);
  const Tensor dx = run(grad(with(2)))(x), plain = grad(with(0))(x);
  for (std::size_t t = 0; t < 6; ++t)
    EXPECT_NEAR(dx.to_vector<double>()[t], plain.to_vector<double>()[t], 1e-12);
}

TEST_P(CollectivesTest, RunInARecomputedFunction) {
  const auto f = [](const Tensor& x) { return exp(world().all_reduce(x * x)); };
  const auto loss = [&](const Tensor& x) { return sum(checkpoint(f)(x)); };
  const auto plain = [&](const Tensor& x) { return sum(f(x)); };
  const Tensor x = tensor({.1, .2}, {}, f64) * scalar(1. + rank(), f64);
  const Tensor dx = run(grad(loss))(x), expected = grad(plain)(x);
  for (std::size_t i = 0; i < 2; ++i)
    EXPECT_NEAR(dx.to_vector<double>()[i], expected.to_vector<double>()[i], 1e-12);
}

TEST_P(CollectivesTest, RunInTheTakenBranch) {
  const auto f = [](const Tensor& x) {
    return cond(
        sum(world().all_reduce(x)) > 0, [&] { return world().all_reduce(x * 2.); },
        [&] { return x; });
  };
  const Tensor y = run(f)(of_rank(rank()));
  EXPECT_EQ(y.to_vector<double>()[3], 6 * size());
}

// ---- Order -------------------------------------------------------------------------------

TEST_P(CollectivesTest, KeepTheOrderOfTheProgramHoweverLateTheirDataCome) {
  const auto f = [](const Tensor& x) {
    // On odd ranks the first takes longer than the second; its result is not read at all.
    const Tensor slow = matmul(x, x) * scalar(1. + world().rank(), f64);
    world().all_reduce(world().rank() % 2 ? matmul(slow, slow) : matmul(x, x));
    const Tensor b = world().all_reduce(x + 1.);
    const Tensor c = world().all_gather(sum(x, 0), 0);
    const Tensor d = world().all_reduce(slow, Reduction::max);
    return sum(d) + sum(c) + sum(b);
  };
  const Tensor x = full({64, 64}, 0.125, f64);
  const double n = size();
  EXPECT_DOUBLE_EQ(run(f)(x).item<double>(), 4096 * n + 512 * n + 4096 * 1.125 * n);
}

TEST_P(CollectivesTest, AreNeverDropped) {
  const auto f = [](const Tensor& x) {
    world().all_reduce(x);  // on all ranks; a rank that drops it would call the next one instead
    if (world().rank() == 0) return x + world().all_reduce(scalar(1., f64));
    const Tensor other = world().all_reduce(scalar(1., f64));
    return x;
  };
  EXPECT_EQ(run(f)(scalar(2., f64)).item<double>(), rank() == 0 ? 2 + size() : 2);
}

// ---- Errors ------------------------------------------------------------------------------

TEST(CollectiveErrorsTest, NameTheTensorsThatDifferBetweenRanks) {
  if (world().size() == 1) return;
  struct Model {
    Tensor weight, bias;
  };
  const int own = 2 + world().rank();
  const Model model{zeros({3}), zeros({own})};
  const std::string message = error_of([&] { world().all_reduce(model); });
  EXPECT_NE(message.find("ranks differ in call "), std::string::npos) << message;
  EXPECT_NE(message.find("rank 0: all_reduce (sum)"), std::string::npos) << message;
  EXPECT_NE(message.find("collectives_test.cpp:"), std::string::npos) << message;
  EXPECT_NE(message.find(" of bias: f32[2]"), std::string::npos) << message;
  EXPECT_NE(message.find(" of bias: f32[3]"), std::string::npos) << message;
  EXPECT_EQ(message.find("weight"), std::string::npos) << message;
}

TEST(CollectiveErrorsTest, NameTheCallsOfRanksThatCallOthers) {
  if (world().size() == 1) return;
  const Tensor x = zeros({2});
  const std::string message = error_of([&] {
    if (world().rank() == 0)
      world().barrier();
    else
      world().all_reduce(x);
  });
  EXPECT_NE(message.find("\n  rank 0: barrier at "), std::string::npos) << message;
  EXPECT_NE(message.find("\n  rank 1: all_reduce (sum) at "), std::string::npos) << message;
  world().barrier();  // ranks that agree again go on
}

TEST(CollectiveErrorsTest, NameTheRootsThatDiffer) {
  if (world().size() == 1) return;
  const std::string message = error_of([] { world().broadcast(zeros({2}), world().rank()); });
  EXPECT_NE(message.find("\n  rank 0: broadcast (from rank 0) at "), std::string::npos) << message;
  EXPECT_NE(message.find("\n  rank 1: broadcast (from rank 1) at "), std::string::npos) << message;
  world().barrier();
}

TEST_P(CollectivesTest, RaggedDimsAreReducedIfLengthsAreEqualOnAllRanks) {
  const Dim batch("batch", 3);
  const auto sums = [](const Tensor& x) {
    return mask_padding(world().all_reduce(x)) + mask_padding(world().broadcast(x));
  };
  const auto with = [&](std::vector<std::int32_t> lengths) {
    const Dim time("time", tensor(lengths, {batch}));
    return tensor(std::vector<double>(9, 1. + world().rank()), {batch, time}, f64);
  };
  const std::vector<double> y = run(sums)(with({3, 1, 2})).to_vector<double>();
  const double expected = 1 + sum_over_ranks([](int r) { return 1. + r; });
  EXPECT_EQ(y, (std::vector<double>{expected, expected, expected, expected, 0, 0, expected,
                                    expected, 0}));
  if (size() == 1) return;
  const std::string message = error_of([&] {
    run(sums)(with(rank() == 0 ? std::vector<std::int32_t>{3, 1, 2}
                               : std::vector<std::int32_t>{1, 3, 2}));
  });
  EXPECT_NE(message.find("of f64[batch=3,time[batch=3]] with time 3 1 2"), std::string::npos)
      << message;
  EXPECT_NE(message.find("of f64[batch=3,time[batch=3]] with time 1 3 2"), std::string::npos)
      << message;
  world().barrier();
}

TEST(CollectiveErrorsTest, NameTheCallAndItsOperand) {
  struct Mask {
    Tensor mask;
  };
  EXPECT_EQ(
      error_of([] { world().all_reduce(Mask{tensor({true})}, Reduction::max); }),
      "all_reduce: mask is boolean[1]; booleans are not reduced: cast them, as in cast(x, i32)");
  EXPECT_EQ(error_of([] { world().reduce_scatter(tensor({true}), 0); }),
            "reduce_scatter: the operand is boolean[1]; booleans are not reduced: cast them, as in "
            "cast(x, i32)");
  EXPECT_EQ(error_of([] { world().all_reduce(TensorArray(TensorType(f32, {2}))); }),
            "all_reduce: the operand is a TensorArray; stack() it first");
  EXPECT_EQ(error_of([] { world().all_reduce_mean(zeros({2}), zeros({2})); }),
            "all_reduce_mean: count is f32[2], but must be a scalar");
  EXPECT_EQ(error_of([] { world().all_reduce_mean(zeros({2}), scalar(3)); }),
            "all_reduce_mean: count is i32[], but must be floating; cast it, as in cast(x, f32)");
  EXPECT_EQ(error_of([] { world().all_reduce_mean(tensor({2}), scalar(3.)); }),
            "all_reduce_mean: x is i32[1]; a mean is of floating tensors");
  EXPECT_EQ(error_of([] { world().broadcast(zeros({2}), world().size()); }),
            str("broadcast: there is no rank ", world().size(), " among ", world().size()));
  EXPECT_EQ(error_of([] { jit([](const Tensor& x) { return world().barrier(), x; })(zeros({1})); }),
            "barrier: is no op, so it cannot be part of a trace; call it outside");
  if (world().size() > 1) {
    EXPECT_EQ(error_of([] { world().reduce_scatter(zeros({world().size() + 1}), 0); }),
              str("reduce_scatter: ", world().size(), " ranks do not divide axis 0 of f32[",
                  world().size() + 1, ']'));
  }
  EXPECT_EQ(error_of([] { World second; }), "World: there is one already; a program has one World");
}

TEST(WorldTest, KnowsItsRanks) {
  EXPECT_TRUE(world().all(true));
  EXPECT_FALSE(world().all(world().rank() != world().size() - 1));
  EXPECT_EQ(world().local_rank(), world().rank());  // the tests run on one machine
  const Tensor ranks = world().all_gather(tensor({world().rank()}), 0);
  for (int r = 0; r < world().size(); ++r)
    EXPECT_EQ(ranks.to_vector<std::int32_t>()[static_cast<std::size_t>(r)], r);
}

}  // namespace
}  // namespace reel
