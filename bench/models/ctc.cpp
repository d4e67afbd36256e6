#include "ctc.h"

namespace reel::bench {
namespace {

struct Recogniser {
  LstmCell forward, backward;
  Linear out;
  Dim stacked = 0, features = 0;
};

struct Speech {
  Tensor frames, symbols;
};

Tensor loss_of(const Recogniser& model, const Speech& speech) {
  const Dim frames = speech.frames.dim("frames"), symbols = speech.symbols.dim("symbols");
  const Dim time = ceildiv(frames, model.stacked.size());
  const Tensor stacks = split_dim(speech.frames, frames, {time, model.stacked}, {.fill = 0.});
  const Tensor x = merge_dims(stacks, {model.stacked, model.features}, model.forward.in);
  const Tensor y =
      bidirectional(model.forward, model.backward, x, time, {.out = model.out.in}).outputs;
  return ctc_loss(model.out(y), speech.symbols,
                  {.time = time, .label_time = symbols, .vocab = model.out.out});
}

Recogniser random_model(const CtcSizes& s) {
  const Dim features("feature", s.features), stacked("stacked", s.stacked),
      in("in", s.features * s.stacked), both("both", 2 * s.hidden);
  return {LstmCell::init(in, Dim("ahead", s.hidden)), LstmCell::init(in, Dim("back", s.hidden)),
          Linear::init(both, Dim("symbol", s.symbols)), stacked, features};
}

Speech random_speech(const CtcSizes& s, const Recogniser& model, const Lengths& lengths) {
  const Dim batch("batch", std::ssize(lengths));
  Lengths frames = lengths;
  for (int& length : frames) length *= 2 * s.stacked;
  return {random_normal({batch, sequences("frames", batch, frames), model.features}),
          random_symbols({batch, sequences("symbols", batch, lengths)}, s.symbols - 1) + 1};
}

}  // namespace

Stream ctc_stream(const CtcSizes& s, const std::string& name, const std::vector<Lengths>& lengths) {
  manual_seed(1);
  const Recogniser model = random_model(s);
  std::vector<Speech> batches;
  for (const Lengths& of : lengths) batches.push_back(random_speech(s, model, of));
  return stream(name, model, std::move(batches), loss_of);
}

}  // namespace reel::bench
