// A model with layers, data, an optimiser and files.
#include <filesystem>

#include "expect.h"

using namespace reel;

namespace {

const Dim letter("letter", 256), feature("feature", 4), hidden("hidden", 8), tag("tag", 2);

struct Tagger {
  Embedding letters = Embedding::init(letter, feature);
  LayerNorm norm = LayerNorm::init(feature);
  GruCell cell = GruCell::init(feature, hidden);
  Linear readout = Linear::init(hidden, tag);

  Tensor operator()(const Tensor& text) const {
    return readout(recur(cell, norm(letters(text)), text.dim("time")).outputs);
  }
};
struct Batch {
  Tensor text, tags;
};
struct Training {
  Tagger model;
  Adam<Tagger> optimiser{model, {.learning_rate = 0.05}};
  BatchPosition data;
};

Batch vowels_of(const std::vector<std::string>& words) {
  const Tensor text = ragged(words, {Dim("batch"), Dim("time")});
  const auto is = [&](char c) { return text == static_cast<int>(c); };
  return {text, cast(is('a') || is('e') || is('i') || is('o') || is('u'), i32)};
}
Tensor loss_of(const Tagger& tagger, const Batch& batch) {
  return cross_entropy(tagger(batch.text), batch.tags, tag);
}

}  // namespace

int main() {
  manual_seed(1);
  Training now;
  const Batch data = vowels_of({"tensor", "reel", "loop", "a", "gradient", "bounded"});
  const auto step = jit([](Training t, const Batch& batch) {
    const auto [loss, gradient] = value_and_grad(loss_of)(t.model, batch);
    t.optimiser.update(t.model, gradient);
    return std::pair{t, loss};
  });
  const float before = loss_of(now.model, data).item<float>();
  Batches batches(data, data.text.dim("batch"), {.rows = 3, .shuffle = 1, .epochs = 10});
  for (const Batch& batch : batches) {
    now.data = batches.position();
    now = step(std::move(now), batch).first;
  }
  expect(loss_of(now.model, data).item<float>() < before);

  GradientSum<Tagger> total(now.model);
  total.add(
      [](const Tagger& tagger, const Batch& b) { return log_loss(tagger(b.text), b.tags, tag); },
      now.model, data);
  expect(total.mean().first.rank() == 0);

  save_checkpoint("training.safetensors", now);
  Training resumed;
  load_checkpoint("training.safetensors", resumed);
  expect(resumed.optimiser.step().item<std::int64_t>() == 20);
  CsvWriter losses("losses.csv", {"step", "loss"}, 0);
  EventWriter("events").scalar("loss", 1, before);
  expect(std::filesystem::exists("events"));
}
