// The programs of "How to freeze" in docs/recipes.md: each runs here and does as the page says.
#include "reel/reel.h"
#include "reel/tests/check.h"
#include "reel/tests/own_folder.h"

namespace reel {
namespace {

const Dim letter("letter", 256), feature("feature", 8), hidden("hidden", 16), tag("tag", 2);

struct Encoder {
  Embedding letters = Embedding::init(letter, feature);
  GruCell cell = GruCell::init(feature, hidden);

  Tensor operator()(const Tensor& text) const {
    return recur(cell, letters(text), text.dim("time")).outputs;
  }
};
struct Model {
  Encoder encoder;
  Linear head = Linear::init(hidden, tag);
};
struct Batch {
  Tensor text, tags;
};

Weighted loss_of(const Model& model, const Batch& batch) {
  return log_loss(model.head(model.encoder(batch.text)), batch.tags, tag);
}
Tensor mean_loss(const Model& model, const Batch& batch) { return loss_of(model, batch).mean(); }

class FreezingPage : public InOwnFolder {
 protected:
  FreezingPage() : InOwnFolder("run.safetensors") {
    manual_seed(1);
    const Tensor text =
        ragged(std::vector<std::string>{"reel", "a", "loop"}, {Dim("batch"), Dim("time")});
    batch = {text, cast(text == static_cast<int>('e'), i32)};
  }
  Model model;
  Batch batch;
  const ParameterGroup encoder{
      .contains = [](const std::string& path,
                     const Tensor&) { return path.starts_with("encoder."); },
      .frozen = true};
};

void expect_same_encoder(const Model& a, const Model& b) {
  expect_same_bits(a.encoder.letters.weight, b.encoder.letters.weight);
  expect_same_bits(a.encoder.cell.recurrent_weight, b.encoder.cell.recurrent_weight);
}
double loss_at(const Model& model, const Batch& batch) {
  return mean_loss(model, batch).item<float>();
}

TEST_F(FreezingPage, TheHeadLearns) {
  const Model pretrained = model;
  const double before = loss_at(model, batch);

  const ParameterGroup encoder{
      .contains = [](const std::string& path,
                     const Tensor&) { return path.starts_with("encoder."); },
      .frozen = true};
  AdamW<Model> adam(model, {.learning_rate = 0.02, .groups = {encoder}, .clip_norm = 1});
  const auto step = jit([](Model model, AdamW<Model> adam, const Batch& batch) {
    const auto [loss, gradient] = value_and_grad(mean_loss)(model, batch);
    adam.update(model, gradient);
    return std::tuple{model, adam, loss};
  });
  Tensor loss;
  for (int i = 0; i < 50; ++i)
    std::tie(model, adam, loss) = step(std::move(model), std::move(adam), batch);

  expect_same_encoder(model, pretrained);
  EXPECT_LT(loss_at(model, batch), 0.5 * before);
  EXPECT_EQ(step.explain().find("the gradient of scan"), std::string::npos) << step.explain();
}

TEST_F(FreezingPage, ALossWithoutTheGradient) {
  AdamW<Model> adam(model, {.groups = {encoder}});
  const auto all = grad(mean_loss)(model, batch);

  const auto loss_of_head = [&](const Model& model, const Batch& batch) {
    return mean_loss(adam.stop_frozen_gradients(model), batch);
  };
  const auto [loss, gradient] = value_and_grad(loss_of_head)(model, batch);
  const Tensor norm = global_norm(gradient);  // of the head

  EXPECT_EQ(norm.item<float>(), global_norm(all.head).item<float>());
}

TEST_F(FreezingPage, MicroBatchesHaveNoGradientOfTheFrozenPart) {
  AdamW<Model> adam(model, {.groups = {encoder}});
  const auto add = jit(
      [](GradientSum<Model> sum, const Model& model, const AdamW<Model>& adam, const Batch& batch) {
        const auto loss_of_head = [&](const Model& model, const Batch& batch) {
          return loss_of(adam.stop_frozen_gradients(model), batch);
        };
        sum.add(loss_of_head, model, batch);
        return sum;
      });
  const GradientSum<Model> sum = add(GradientSum<Model>(model), model, adam, batch);
  EXPECT_EQ(global_norm(sum.gradient.encoder).item<float>(), 0);
  EXPECT_GT(global_norm(sum.gradient.head).item<float>(), 0);
}

TEST_F(FreezingPage, LaterAllLearn) {
  struct Training {
    Model model;
    AdamW<Model> adam;
  };
  const auto train = [&](Training& run) {
    for (int i = 0; i < 5; ++i) run.adam.update(run.model, grad(mean_loss)(run.model, batch));
  };
  Training first{model, AdamW<Model>(model, {.learning_rate = 0.02, .groups = {encoder}})};
  train(first);
  expect_same_encoder(first.model, model);

  save_checkpoint(path, first);
  Training second{model, AdamW<Model>(model)};  // freezes nothing
  load_checkpoint(path, second);
  second.adam.set_learning_rate(0.001);

  EXPECT_EQ(second.adam.step().item<int>(), 5);
  expect_same_bits(second.model.head.weight, first.model.head.weight);
  train(second);
  EXPECT_NE(values_of(second.model.encoder.letters.weight),
            values_of(model.encoder.letters.weight));
}

TEST_F(FreezingPage, AnOptimiserOfTheHeadTrainsTheHead) {
  const Model pretrained = model;
  const double before = loss_at(model, batch);

  AdamW<Linear> adam(model.head, {.learning_rate = 0.02});
  const auto step =
      jit([](Linear head, AdamW<Linear> adam, const Encoder& encoder, const Batch& batch) {
        const auto loss_of_head = [&](const Linear& head) {
          return mean_loss(Model{encoder, head}, batch);
        };
        adam.update(head, grad(loss_of_head)(head));
        return std::pair{head, adam};
      });
  for (int i = 0; i < 50; ++i)
    std::tie(model.head, adam) = step(std::move(model.head), std::move(adam), model.encoder, batch);

  expect_same_encoder(model, pretrained);
  EXPECT_LT(loss_at(model, batch), 0.5 * before);
}

}  // namespace
}  // namespace reel
