// Imports the weights of a tagger that PyTorch has trained, checks them, and continues to train.
//
// The module in PyTorch, and the file:
//   self.letters = nn.Embedding(27, 8)
//   self.lstm = nn.LSTM(8, 16, batch_first=True)
//   self.readout = nn.Linear(16, 2)
//   safetensors.torch.save_file(tagger.state_dict(), "tagger.safetensors")
#include <reel/reel.h>

#include <iostream>
#include <map>
#include <string>

using namespace reel;

const Dim letter("letter", 27), feature("feature", 8), hidden("hidden", 16), tag("tag", 2);

struct Tagger {
  Embedding letters = Embedding::init(letter, feature);
  LstmCell cell = LstmCell::init(feature, hidden);
  Linear readout = Linear::init(hidden, tag);

  Tensor operator()(const Tensor& text) const {
    return readout(recur(cell, letters(text), text.dim("time")).outputs);
  }
};

/// Returns the tagger in a file of PyTorch. Throws ShapeError if a tensor has other sizes.
Tagger import_tagger(const std::string& path) {
  const SafetensorsFile file(path);
  // nn.Linear and nn.LSTM have the outputs first. The order of an LSTM's gates is the same.
  const auto matrix = [&](const std::string& name, const Dim& in, const Dim& out) {
    return transpose(file.tensor(name, {out, in}), {in, out});
  };
  Tagger tagger;
  tagger.letters.weight = file.tensor("letters.weight", {letter, feature});
  LstmCell& cell = tagger.cell;
  cell.input_weight = matrix("lstm.weight_ih_l0", feature, cell.gate);
  cell.recurrent_weight = matrix("lstm.weight_hh_l0", hidden, cell.gate);
  cell.bias = file.tensor("lstm.bias_ih_l0", {cell.gate});
  cell.bias += file.tensor("lstm.bias_hh_l0", {cell.gate});
  tagger.readout.weight = matrix("readout.weight", hidden, tag);
  tagger.readout.bias = file.tensor("readout.bias", {tag});
  return tagger;
}

/// Writes a tagger as PyTorch does: for load_state_dict(safetensors.torch.load_file(path)).
void export_tagger(const Tagger& tagger, const std::string& path) {
  const LstmCell& cell = tagger.cell;
  save_safetensors(path,
                   std::map<std::string, Tensor>{
                       {"letters.weight", tagger.letters.weight},
                       {"lstm.weight_ih_l0", transpose(cell.input_weight, {cell.gate, feature})},
                       {"lstm.weight_hh_l0", transpose(cell.recurrent_weight, {cell.gate, hidden})},
                       {"lstm.bias_ih_l0", cell.bias},
                       {"lstm.bias_hh_l0", zeros_like(cell.bias)},
                       {"readout.weight", transpose(tagger.readout.weight, {tag, hidden})},
                       {"readout.bias", *tagger.readout.bias}});
}

/// Returns the mean cross entropy of "is a vowel" for each letter of random words.
Tensor loss_of(const Tagger& tagger, const Tensor& text) {
  const Tensor is_vowel = text == 1 || text == 5 || text == 9 || text == 15 || text == 21;
  return cross_entropy(tagger(text), cast(is_vowel, i32), tag);
}

int main(int count, char** arguments) {
  manual_seed(1);
  std::string path = "import_weights.safetensors";
  if (count > 1) {
    path = arguments[1];  // written by PyTorch
  } else {
    export_tagger(Tagger(), path);
  }
  Tagger tagger = import_tagger(path);

  const Dim batch("batch", 32), time("time", random_integers({batch}, 1, 12));
  const auto draw = [&] { return random_integers({batch, time}, 1, 27); };
  const Tensor test = draw();
  std::cout << "imported: loss " << loss_of(tagger, test).item<float>() << '\n';
  const auto step = jit([](Tagger model, Adam<Tagger> optimiser, const Tensor& text) {
    optimiser.update(model, grad(loss_of)(model, text));
    return std::pair{model, optimiser};
  });
  Adam<Tagger> optimiser(tagger, {.learning_rate = 0.02});
  for (int i = 0; i < 100; ++i)
    std::tie(tagger, optimiser) = step(std::move(tagger), std::move(optimiser), draw());
  export_tagger(tagger, "trained.safetensors");
  std::cout << "trained: loss " << loss_of(tagger, test).item<float>() << "; imported again: "
            << loss_of(import_tagger("trained.safetensors"), test).item<float>() << '\n';
}
