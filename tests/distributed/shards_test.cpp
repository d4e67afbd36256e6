// Shards: the tree, the cut of batches, and gradients that do not depend on the number of ranks.
#include "reel/distributed/shard_tree.h"
#include "world_of_tests.h"

namespace reel {
namespace {

TEST(ShardTreeTest, RanksHaveAllShardsOnce) {
  for (int shards = 1; shards <= 12; ++shards)
    for (int ranks = 1; ranks <= shards; ++ranks) {
      int next = 0;
      for (int r = 0; r < ranks; ++r) {
        const ShardRange own = shards_of_rank(shards, r, ranks);
        EXPECT_EQ(own.begin, next);
        EXPECT_GE(own.size(), shards / ranks);
        int inside = own.begin;
        for (const ShardRange node : nodes_within(shards, own)) {
          EXPECT_EQ(node.begin, inside);
          inside = node.end;
        }
        EXPECT_EQ(inside, own.end);
        next = own.end;
      }
      EXPECT_EQ(next, shards);
    }
}

TEST(ShardTreeTest, PowersOfTwoHaveOneNodePerRank) {
  for (const int ranks : {1, 2, 4, 8})
    for (int r = 0; r < ranks; ++r)
      EXPECT_EQ(nodes_within(8, shards_of_rank(8, r, ranks)).size(), 1u);
}

struct Batch {
  Tensor x, weight;
  double scale = 0;
};
struct Model {
  Tensor w, b;
};

/// A batch of 11 rows, which no number of shards divides.
Batch some_batch() {
  std::vector<float> x, weight;
  for (int i = 0; i < 44; ++i) x.push_back(static_cast<float>((i * 37) % 23) / 7 - 1);
  for (int i = 0; i < 11; ++i) weight.push_back(i % 4 == 0 ? 0.f : 1.f);
  return {reshape(tensor(x), {11, 4}), tensor(weight), 0.5};
}

/// The mean over the rows with a weight.
Weighted loss_of(const Model& model, const Batch& batch) {
  const Tensor y = tanh(matmul(batch.x, model.w)) + model.b;
  const Tensor row = sum(y * y, 1) * static_cast<float>(batch.scale);
  return {sum(row * batch.weight), sum(batch.weight)};
}

Model some_model() {
  manual_seed(3);
  return {random_normal({4, 3}), random_normal({3})};
}

class ShardsTest : public InEveryMode {};
REEL_IN_EVERY_MODE(ShardsTest);

TEST_P(ShardsTest, GiveTheMeanOverTheWholeBatch) {
  const auto sharded = world().shard(some_batch());
  const auto [loss, gradient] = run(world().value_and_grad(loss_of))(some_model(), sharded);
  const auto [expected_loss, expected] = value_and_grad(
      [](const Model& model) { return loss_of(model, some_batch()).mean(); })(some_model());
  EXPECT_NEAR(loss.item<float>(), expected_loss.item<float>(), 1e-6);
  for (std::size_t i = 0; i < 12; ++i)
    EXPECT_NEAR(gradient.w.to_vector<float>()[i], expected.w.to_vector<float>()[i], 1e-6);
}

TEST_P(ShardsTest, ShardsWithoutItemsCountNothing) {
  Batch batch = some_batch();
  batch.weight = concat({ones({1}), zeros({10})}, 0);
  const auto [loss, gradient] =
      run(world().value_and_grad(loss_of))(some_model(), world().shard(batch));
  const auto [expected_loss, expected] = value_and_grad(
      [&](const Model& model) { return loss_of(model, batch).mean(); })(some_model());
  EXPECT_NEAR(loss.item<float>(), expected_loss.item<float>(), 1e-6);
  EXPECT_NEAR(gradient.b.to_vector<float>()[0], expected.b.to_vector<float>()[0], 1e-6);
}

TEST_P(ShardsTest, GiveZerosIfNothingCounts) {
  Batch batch = some_batch();
  batch.weight = zeros({11});
  batch.x = batch.x / 0.;  // NaN in every shard
  const auto [loss, gradient] =
      run(world().value_and_grad(loss_of))(some_model(), world().shard(batch));
  EXPECT_EQ(loss.item<float>(), 0);
  EXPECT_EQ(gradient.w.to_vector<float>(), std::vector<float>(12));
}

TEST_P(ShardsTest, MayBeMoreThanItems) {
  const auto first_rows = [](const Batch& all) {
    return Batch{slice(all.x, 0, 1, 4), slice(all.weight, 0, 1, 4), all.scale};
  };
  const Batch batch = first_rows(some_batch());
  const auto [loss, gradient] =
      run(world().value_and_grad(loss_of))(some_model(), world().shard(batch));
  const auto [expected_loss, expected] = value_and_grad(
      [&](const Model& model) { return loss_of(model, batch).mean(); })(some_model());
  EXPECT_NEAR(loss.item<float>(), expected_loss.item<float>(), 1e-6);
  for (std::size_t i = 0; i < 12; ++i)
    EXPECT_NEAR(gradient.w.to_vector<float>()[i], expected.w.to_vector<float>()[i], 1e-6);
}

TEST_P(ShardsTest, MayBeEmptyBatchesOfRaggedSequences) {
  const Dim batch("batch", 3), time("time", tensor({4, 2, 3}, {batch})), in("in", 2);
  manual_seed(4);
  const auto cell = LstmCell::init(in, Dim("hidden", 3));
  const Tensor x = random_normal({batch, time, in});
  const auto loss_of_cell = [](const LstmCell& model, const Tensor& part) {
    const Dim steps = part.dim("time");
    const auto [outputs, last] = recur(model, part, steps);
    return Weighted{sum(square(outputs)), cast(sum(steps.lengths()), f32)};
  };
  const auto [loss, gradient] =
      run(world().value_and_grad(loss_of_cell))(cell, world().shard(x, batch));
  const auto [expected_loss, expected] =
      value_and_grad([&](const LstmCell& model) { return loss_of_cell(model, x).mean(); })(cell);
  EXPECT_NEAR(loss.item<float>(), expected_loss.item<float>(), 1e-6);
  const Tensors mine = tensors_of(flatten(gradient)), whole = tensors_of(flatten(expected));
  for (std::size_t i = 0; i < whole.size(); ++i) expect_all_close(mine[i], whole[i], 1e-5);
}

TEST_P(ShardsTest, HaveSecondDerivatives) {
  const auto sharded = world().shard(some_batch());
  const auto slope = [&](const Model& model) {
    const auto [loss, gradient] = world().value_and_grad(loss_of)(model, sharded);
    return loss + sum(square(gradient.w));
  };
  const auto whole = [](const Model& model) {
    const auto [loss, gradient] =
        value_and_grad([](const Model& m) { return loss_of(m, some_batch()).mean(); })(model);
    return loss + sum(square(gradient.w));
  };
  // Every rank has the same loss, and the gradient is of the sum over all ranks.
  const auto mine = run(grad(slope))(some_model()).w.template to_vector<float>(),
             expected = grad(whole)(some_model()).w.template to_vector<float>();
  for (std::size_t i = 0; i < 12; ++i)
    EXPECT_NEAR(world().all_reduce(scalar(mine[i])).item<float>(),
                static_cast<float>(world().size()) * expected[i], 1e-4);
}

TEST_P(ShardsTest, TrainInALoop) {
  const auto sharded = world().shard(some_batch());
  const auto train = [&](const Model& first) {
    return fori_loop(
        0, 4,
        [&](const Tensor&, const Model& model) {
          const auto [loss, gradient] = world().value_and_grad(loss_of)(model, sharded);
          return Model{model.w - gradient.w * 0.1f, model.b - gradient.b * 0.1f};
        },
        first);
  };
  Model expected = some_model();
  for (int i = 0; i < 4; ++i) {
    const auto [loss, gradient] = world().value_and_grad(loss_of)(expected, sharded);
    expected = {expected.w - gradient.w * 0.1f, expected.b - gradient.b * 0.1f};
  }
  expect_all_close(run(train)(some_model()).w, expected.w, 1e-6);
}

TEST(ShardTest, CutsLeavesWithDimsOfTheirOwnAlike) {
  const Dim a("a", 9), b("b", 9);
  struct Data {
    Tensor x, y, also_x;
  };
  const auto sharded = world().shard(Data{zeros({a}), zeros({b}), ones({a})});
  const Data& part = sharded.parts[0];
  EXPECT_EQ(part.y.dim(0).name(), "b");
  EXPECT_EQ(part.x.dim(0), part.also_x.dim(0));
  EXPECT_EQ(part.x.dim(0).size(), part.y.dim(0).size());
}

TEST(ShardTest, RefusesBatchesThatItCannotCut) {
  const Dim batch("batch", 3), time("time", tensor({4, 2, 3}, {batch}));
  EXPECT_EQ(
      error_of([] {
        world().shard(std::pair{zeros({11, 4}), zeros({3})});
      }),
      "shard: axis 0 of f32[3] has the size 3, but axis 0 of f32[11,4] has 11; all leaves with "
      "the axis are cut alike, so name the dim of the items, or leave other tensors out of the "
      "batch");
  EXPECT_EQ(
      error_of([&] {
        world().shard(zeros({batch, time}), time);
      }),
      "shard: axis time[batch=3] of f32[batch=3,time[batch=3]] is ragged; cut along the dim of its "
      "entries instead");
  EXPECT_EQ(error_of([&] { world().shard(zeros({2}), batch); }),
            "shard: no leaf of the batch has the dim batch=3");
  EXPECT_EQ(error_of([] {
              world().shard(std::pair{TensorArray(TensorType(f32, {2})), zeros({3})});
            }),
            "shard: a leaf is a TensorArray; stack() it first");
}

TEST(ShardTest, CutsNamedDimsAndLeavesTensorsWithoutThem) {
  const Dim batch("batch", 9), time("time", 2);
  struct Data {
    Tensor x, shared;
  };
  const Data data{zeros({time, batch}), zeros({time})};
  const auto sharded = world().shard(data, batch);
  const ShardRange own = shards_of_rank(8, world().rank(), world().size());
  ASSERT_EQ(static_cast<int>(sharded.parts.size()), own.size());
  EXPECT_EQ(sharded.first, own.begin);
  std::int64_t rows = 0;
  for (const Data& part : sharded.parts) {
    rows += part.x.dim("batch").size();
    EXPECT_EQ(part.shared.numel(), 2);
  }
  const Tensor all = world().all_reduce(cast(scalar(rows), i32));
  EXPECT_EQ(all.item<std::int32_t>(), 9);
}

TEST(ShardTest, ListOfBatchesGivesAListOfShards) {
  const auto mine = world().shard(std::vector<Batch>(3, some_batch()));
  ASSERT_EQ(mine.size(), 3u);
  for (const Sharded<Batch>& step : mine) EXPECT_EQ(step.of, 8);
}

TEST_P(ShardsTest, RandomNumbersAreOfTheShardNotOfTheRank) {
  const auto noise = [](const Tensor& w, const Tensor& x) {
    return Weighted{sum(random_normal({3}, f64) * w) + sum(x), scalar(1., f64)};
  };
  const auto step = [&](const Tensor& w, const Sharded<Tensor>& x) {
    return world().value_and_grad(noise)(w, x);
  };
  manual_seed(11);
  const auto [loss, gradient] = run(step)(ones({3}, f64), world().shard(zeros({8}, f64)));
  // The eight shards by hand, as one rank draws them.
  manual_seed(11);
  double expected = 0;
  RandomScope keys;
  for (int s = 0; s < 8; ++s) {
    keys.begin(s);
    expected += random_normal({3}, f64).to_vector<double>()[0] / 8;
  }
  EXPECT_NEAR(gradient.to_vector<double>()[0], expected, 1e-12);
}

TEST(SparseShardsTest, RowsOfTablesAreGathered) {
  struct Words {
    EmbeddingTable table;
  };
  const Words words{EmbeddingTable(reshape(cast(range(40), f32), {20, 2}))};
  const auto loss = [](const Words& w, const Tensor& ids) {
    return Weighted{mean(square(gather(w.table, ids)), {0, 1}), scalar(1.)};
  };
  const Tensor ids = tensor({1, 3, 3, 5, 7, 19, 1, 0, 2, 2, 2, 2, 9, 8, 7, 6});
  const auto [value, gradient] = world().value_and_grad(loss)(words, world().shard(ids));
  ASSERT_TRUE(gradient.table.is_sparse());
  EXPECT_EQ(cast(gradient.table.slices().indices, i32).to_vector<std::int32_t>(),
            ids.to_vector<std::int32_t>());
  const auto whole = grad([&](const Words& w) { return loss(w, ids).mean(); })(words);
  const std::vector<float> mine = gradient.table.to_dense().to_vector<float>(),
                           expected = whole.table.to_dense().to_vector<float>();
  for (std::size_t i = 0; i < mine.size(); ++i) EXPECT_FLOAT_EQ(mine[i], expected[i]);
}

TEST(SparseShardsTest, AllReduceGathersRows) {
  const IndexedSlices slices{full({1, 2}, 1. + world().rank(), f32), tensor({world().rank()}), {}};
  const IndexedSlices all = world().all_reduce(slices);
  EXPECT_EQ(all.indices.numel(), world().size());
  EXPECT_EQ(all.values.to_vector<float>().back(), static_cast<float>(world().size()));
}

TEST(ShardErrorsTest, AWeightIsAFloatingScalar) {
  const auto step = [](Tensor weight) {
    return [weight](const Tensor& w, const Tensor& x) { return Weighted{sum(w) + sum(x), weight}; };
  };
  const auto run = [&](const Tensor& weight) {
    world().value_and_grad(step(weight))(zeros({2}), world().shard(zeros({8})));
  };
  EXPECT_EQ(error_of([&] { run(zeros({8})); }),
            "value_and_grad: weight is f32[8], but must be a scalar");
  EXPECT_EQ(error_of([&] { run(scalar(1)); }),
            "value_and_grad: weight is i32[], but must be floating; cast it, as in cast(x, f32)");
  EXPECT_EQ(error_of([&] { run(scalar(1., f64)); }),
            "value_and_grad: weight is f64[], but total is f32[]; cast the weight");
}

TEST(ShardErrorsTest, ShardsOfAnotherRankAreRefused) {
  Sharded<Batch> sharded = world().shard(some_batch());
  sharded.parts.pop_back();
  const std::string message =
      error_of([&] { world().value_and_grad(loss_of)(some_model(), sharded); });
  EXPECT_EQ(message.rfind("value_and_grad: an argument has the shards ", 0), 0u) << message;
}

}  // namespace
}  // namespace reel
