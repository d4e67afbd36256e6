// The recommended training loop: data, model, jitted step, validation, checkpoint, resume, events.
#include <reel/reel.h>

#include <filesystem>
using namespace reel;
const Dim in("in", 2), hidden("hidden", 32), one("one", 1);

struct Model {
  LstmCell cell = LstmCell::init(in, hidden);
  Linear readout = Linear::init(hidden, one);
};
struct Training {  // all that the next step depends on, besides the stream of random numbers
  Model model;
  Adam<Model> optimiser{model, {.learning_rate = 0.01, .clip_norm = 1}};
  BatchPosition data;
};
struct Batch {  // sequences of numbers, two of them marked, and the sums of these two
  Tensor x, sums;
};

Batch draw_data(const Dim& batch) {
  const Dim time("time", random_integers({batch}, 5, 12));
  const Tensor numbers = random_uniform({batch, time}), place = range(time);
  const Tensor marks = cast(place == 1 || place == 3, f32);
  return {stack({numbers, expand(marks, batch)}, in), sum(numbers * marks, time)};
}

Tensor loss_of(const Model& model, const Batch& data) {
  const Tensor h = recur(model.cell, data.x, data.x.dim("time")).state.h;
  return mean(square(sum(model.readout(h), one) - data.sums));
}

int main(int count, char** arguments) {
  if (count != 3) throw ArgumentError("usage: training EPOCHS FOLDER, which it may continue");
  const std::string folder = arguments[2], saved = folder + "/last.safetensors";
  const auto step = jit([](Training t, const Batch& data) {
    auto [loss, gradient] = value_and_grad(loss_of)(t.model, data);
    t.optimiser.update(t.model, gradient);
    return std::pair{t, loss};
  });
  const auto validate = jit(loss_of);
  manual_seed(1);
  const Dim batch("batch", 640);
  const Batch data = draw_data(batch), held_out = draw_data(batch);
  Batches batches(data, batch, {.rows = 32, .shuffle = 1, .epochs = std::stoll(arguments[1])});
  Training now;
  if (std::filesystem::exists(saved)) load_checkpoint(saved, now);
  batches.seek(now.data);
  // A resumed run repeats the steps since its checkpoint; curves have each step once.
  EventWriter events(folder, {.purge_step = now.optimiser.step().item<std::int64_t>() + 1});
  for (const Batch& data : batches) {
    now.data = batches.position();
    auto [next, loss] = step(std::move(now), data);
    now = std::move(next);
    const auto i = now.optimiser.step().item<std::int64_t>();
    events.scalar("loss/training", i, loss);
    if (i % batches.size()) continue;  // the rest is for the end of an epoch
    events.scalar("loss/validation", i, validate(now.model, held_out));
    save_checkpoint(saved, now);
  }
}
