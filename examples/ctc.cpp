// A recogniser trained by connectionist temporal classification: sequences of labels are known,
// their places among the frames are not.
#include <reel/reel.h>

#include <iostream>

using namespace reel;

const Dim sound("sound", 6), hidden("hidden", 32), both("both", 64);
const Dim vocab("vocab", 7);  // 0: blank, or silence; the labels are 1 to 6

struct Recogniser {
  GruCell forward = GruCell::init(sound, hidden), backward = GruCell::init(sound, hidden);
  Linear readout = Linear::init(both, vocab);

  Tensor operator()(const Tensor& frames) const {
    const Dim time = frames.dim("time");
    return readout(bidirectional(forward, backward, frames, time, {.out = both}).outputs);
  }
};

struct Batch {
  Tensor frames;  // {batch, time, sound}
  Tensor labels;  // i32 {batch, label_time}
};

/// Draws labels, and frames in which each of them sounds for two to four frames, in noise, before
/// one frame of silence.
Batch draw(const Dim& batch, const Tensor& sounds) {
  const Dim label_time("label_time", random_integers({batch}, 2, 8));
  const Tensor labels = random_integers({batch, label_time}, 1, 7);
  const Tensor end = cumsum(random_integers({batch, label_time}, 3, 6), label_time);
  const Dim time("time", max(end, label_time));
  const Tensor frame = expand(range(time), {batch, label_time, time});
  const Tensor place = sum(cast(end <= frame, i32), label_time);  // of the frame's label
  const Tensor is_silent = any(end == frame + 1, label_time);
  const Tensor label = where(is_silent, 0, gather(labels, place, label_time));
  return {gather(sounds, label, vocab) + random_normal({batch, time, sound}) * 0.5, labels};
}

Tensor loss_of(const Recogniser& model, const Batch& data) {
  return ctc_loss(model(data.frames), data.labels,
                  {data.frames.dim("time"), data.labels.dim("label_time"), vocab});
}

/// Returns the labels of the likeliest alignment: without repetitions and blanks.
Tensor recognise(const Recogniser& model, const Tensor& frames) {
  const Dim batch = frames.dim("batch"), time = frames.dim("time");
  const Tensor best = transpose(argmax(model(frames), vocab), {batch, time});
  return pack(best, best != 0 && best != shift(best, time, 1), {time});
}

int main(int count, char** arguments) {
  const int steps = count > 1 ? std::stoi(arguments[1]) : 300;
  manual_seed(1);
  const auto step = jit([](Recogniser model, Adam<Recogniser> optimiser, const Batch& data) {
    const auto [loss, gradient] = value_and_grad(loss_of)(model, data);
    optimiser.update(model, gradient);
    return std::tuple{model, optimiser, loss};
  });
  const Dim batch("batch", 32);
  const Tensor sounds = random_normal({vocab, sound});
  Recogniser model;
  Adam<Recogniser> optimiser(model, {.learning_rate = 0.01, .clip_norm = 1});
  for (int i = 0; i <= steps; ++i) {
    Tensor loss;
    std::tie(model, optimiser, loss) =
        step(std::move(model), std::move(optimiser), draw(batch, sounds));
    if (i % (steps / 3) == 0) std::cout << "step " << i << ": loss " << loss.item<float>() << '\n';
  }
  const Batch data = draw(batch, sounds);
  const auto heard = rows_of<int>(recognise(model, data.frames)), said = rows_of<int>(data.labels);
  int right = 0;
  for (std::size_t i = 0; i < said.size(); ++i) right += heard[i] == said[i];
  std::cout << "sequences without an error: " << right << " of " << said.size() << '\n';
}
