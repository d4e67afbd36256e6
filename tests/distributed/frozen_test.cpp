// Training of a part of a model on several ranks: frozen parameters keep their bits, and their
// gradient is neither computed nor exchanged.
#include <cmath>

#include "reel/tests/occurrences.h"
#include "world_of_tests.h"

namespace reel {
namespace {

struct Model {
  EmbeddingTable words;
  Tensor encoder, head;
};
struct Batch {
  Tensor ids, weight;
};

bool is_frozen(const std::string& path, const Tensor&) { return path != "head"; }
const std::vector<ParameterGroup> kAllButTheHead{{.contains = is_frozen, .frozen = true}};

Model some_model() {
  manual_seed(3);
  return {EmbeddingTable(random_normal({9, 4})), random_normal({4, 5}), random_normal({5})};
}
Batch some_batch() { return {cast(range(20) % 9, i32), cast(range(20) % 3 != 0, f32)}; }

Weighted loss_of(const Model& model, const Batch& batch) {
  const Tensor h = tanh(matmul(gather(model.words, batch.ids), model.encoder));
  return {sum(square(matmul(h, model.head)) * batch.weight), sum(batch.weight)};
}
/// Returns loss_of(), with a gradient of NaN for the frozen parameters: the root of 0 has an
/// infinite derivative, and infinity times 0 is NaN.
Weighted nan_loss_of(const Model& model, const Batch& batch) {
  const Tensor zero = (sum(model.encoder) + sum(gather(model.words, batch.ids))) * 0.;
  const Weighted loss = loss_of(model, batch);
  return {loss.total + sqrt(zero), loss.weight};
}

class FrozenRanksTest : public InEveryMode {};
REEL_IN_EVERY_MODE(FrozenRanksTest);

TEST_P(FrozenRanksTest, TrainTheOthersAsIfAlone) {
  const Model from = some_model();
  const auto sharded = world().shard(some_batch());
  const auto alone = run([&](Tensor head, const Model& model, const Sharded<Batch>& batch) {
    const auto of_head = [&](const Tensor& head, const Batch& b) {
      return loss_of({model.words, model.encoder, head}, b);
    };
    AdamW<Tensor> adam(head, {.learning_rate = 0.1, .clip_norm = 0.5});
    const auto [loss, gradient] = world().value_and_grad(of_head)(head, batch);
    adam.update(head, gradient);
    return std::pair{loss, head};
  })(from.head, from, sharded);
  for (const bool is_nan : {false, true})
    for (const bool knows_optimiser : {false, true}) {
      const auto [loss, to] = run([&](Model model, const Sharded<Batch>& batch) {
        const auto f = [&](const Model& m, const Batch& b) {
          return is_nan ? nan_loss_of(m, b) : loss_of(m, b);
        };
        AdamW<Model> adam(model,
                          {.learning_rate = 0.1, .groups = kAllButTheHead, .clip_norm = 0.5});
        const auto [loss, gradient] = knows_optimiser
                                          ? world().value_and_grad(f, adam)(model, batch)
                                          : world().value_and_grad(f)(model, batch);
        adam.update(model, gradient);
        return std::pair{loss, model};
      })(from, sharded);
      expect_same_bits(to.words.dense(), from.words.dense());
      expect_same_bits(to.encoder, from.encoder);
      expect_same_bits(to.head, alone.second);
      expect_same_bits(loss, alone.first);
    }
}

TEST_P(FrozenRanksTest, HaveGradientsOfZeroIfTheOptimiserIsGiven) {
  const Model from = some_model();
  const Sgd<Model> sgd(from, {.groups = kAllButTheHead});
  const auto f = [](const Model& m, const Batch& b) {
    return std::pair{loss_of(m, b), b.weight};  // with an auxiliary
  };
  const auto gradients = run([&](const Model& model, const Sharded<Batch>& batch) {
    const auto [all_value, all] = world().value_and_grad(f)(model, batch);
    const auto [value, trained] = world().value_and_grad(f, sgd)(model, batch);
    return std::tuple{all_value.first, all.head, value.first, trained};
  });
  const auto [all_loss, head, loss, trained] = gradients(from, world().shard(some_batch()));
  expect_same_bits(loss, all_loss);
  expect_same_bits(trained.head, head);
  expect_same_bits(trained.encoder, zeros({4, 5}));
  EXPECT_EQ(trained.words.to_dense().dims(), from.words.dims());
  expect_same_bits(trained.words.to_dense(), zeros({9, 4}));
}

TEST(FrozenRanks, NeitherComputeNorExchangeTheirGradient) {
  const Model from = some_model();
  const auto report_of = [&](auto world_gradient) {
    const auto step = jit([&](Model model, Sgd<Model> sgd, const Sharded<Batch>& batch) {
      const auto [loss, gradient] = world_gradient(sgd)(model, batch);
      sgd.update(model, gradient);
      return std::tuple{model, sgd, loss};
    });
    step(from, Sgd(from, {.groups = kAllButTheHead}), world().shard(some_batch()));
    return str(step.graph());
  };
  const auto f = [](const Model& m, const Batch& b) { return loss_of(m, b); };
  const std::string all = report_of([&](const Sgd<Model>&) { return world().value_and_grad(f); });
  const std::string trained =
      report_of([&](const Sgd<Model>& sgd) { return world().value_and_grad(f, sgd); });
  EXPECT_EQ(occurrences("tanh_grad", trained), 0) << trained;
  EXPECT_EQ(occurrences("gather_rows", trained), 0) << trained;
  if (world().size() == 1) return;  // nothing is exchanged, and nothing else reads the gradient
  EXPECT_GT(occurrences("tanh_grad", all), 0) << all;
  EXPECT_GT(occurrences("gather_rows", all), 0) << all;
}

TEST(FrozenRanks, RefuseAnotherStructure) {
  using Layers = std::vector<Tensor>;
  const Layers two{ones({1}), ones({1})}, three{ones({1}), ones({1}), ones({1})};
  const Sgd<Layers> sgd(
      two,
      {.groups = {{.contains = [](const std::string& path, const Tensor&) { return path == "0"; },
                   .frozen = true}}});
  const auto f = [](const Layers& m, const Tensor& x) {
    return Weighted{sum(m[0]) + sum(x), scalar(1.0)};
  };
  EXPECT_EQ(error_of([&] { world().value_and_grad(f, sgd)(three, world().shard(ones({8}))); }),
            "Sgd: the parameters have another structure than those that it was made for\n  3 "
            "floating tensors, when it was made 2");
}

}  // namespace
}  // namespace reel
