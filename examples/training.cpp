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
  Adam<Model> optimiser{model, {.learning_rate = 0.01}};
  Tensor step = scalar(0, i64);
};
struct Batch {  // sequences of numbers, two of them marked, and the sums of these two
  Tensor x, sums;
};

Batch draw_batch() {
  const Dim batch("batch", 32), time("time", cast(random_uniform({batch}, 5., 12.), i32));
  const Tensor numbers = random_uniform({batch, time}), place = range(time);
  const Tensor marks = expand(cast(place == 1 || place == 3, f32), {batch, time});
  return {stack({numbers, marks}, in), sum(numbers * marks, time)};
}

Tensor loss_of(const Model& model, const Batch& data) {
  const Tensor h = recur(model.cell, data.x, data.x.dim("time")).state.h;
  return mean(square(sum(model.readout(h), one) - data.sums));
}

int main(int count, char** arguments) {
  if (count != 3) throw ArgumentError("usage: training STEPS FOLDER, which it may continue");
  const std::int64_t steps = std::stoll(arguments[1]);
  const std::string folder = arguments[2], saved = folder + "/last.safetensors";
  const auto step = jit([](Training t, const Batch& data) {
    auto [loss, gradient] = value_and_grad(loss_of)(t.model, data);
    t.optimiser.update(t.model, clip_by_global_norm(gradient, 1.0).first);
    t.step = t.step + 1;
    return std::pair{t, loss};
  });
  const auto validate = jit(loss_of);
  manual_seed(1);
  const Batch held_out = draw_batch();
  Training now;
  if (std::filesystem::exists(saved)) load_checkpoint(saved, now);
  EventWriter events(folder);
  Progress progress(steps, "training");
  for (auto i = now.step.item<std::int64_t>() + 1; i <= steps; ++i) {
    auto [next, loss] = step(std::move(now), draw_batch());
    now = std::move(next);
    progress.update(i, {{"loss", loss.item<float>()}});
    events.scalar("loss/training", i, loss);
    if (i % 100 && i != steps) continue;
    events.scalar("loss/validation", i, validate(now.model, held_out));
    events.histogram("readout", i, now.model.readout.weight);
    save_checkpoint(saved, now);
  }
}
