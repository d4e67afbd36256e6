// Sequence to sequence with attention: writes sequences backwards. The attention is checked, too:
// step i of an output looks at the i-th symbol from the end of its input.
#include <reel/reel.h>

#include <cmath>
#include <iostream>

using namespace reel;

const Dim symbol("symbol", 10), feature("feature", 16), hidden("hidden", 32), both("both", 64);
constexpr int kBegin = 0, kEnd = 1;  // texts consist of the symbols 2 to 9

struct Translator {
  Embedding symbols = Embedding::init(symbol, feature);
  GruCell ahead = GruCell::init(feature, hidden), back = GruCell::init(feature, hidden);
  Linear keys = Linear::init(both, hidden), values = Linear::init(both, hidden);
  GruCell decoder = GruCell::init(feature, hidden);
  Linear readout = Linear::init(both, symbol);
};

struct Encoded {
  Tensor keys, values;  // {batch, inputs, hidden}
  Dim inputs;
};

Encoded encode(const Translator& model, const Tensor& text) {
  const Dim inputs = text.dim("inputs");
  const auto [h, ahead, back] =
      bidirectional(model.ahead, model.back, model.symbols(text), inputs, {.out = both});
  return {model.keys(h), model.values(h), inputs};
}

struct Step {
  Tensor logits, weights;  // of the next symbol; of the inputs
};

/// Runs the decoder for one step. Source: Luong, Pham & Manning (2015), with its dot product.
std::pair<Step, Tensor> decode(const Translator& model, const Encoded& source, const Tensor& before,
                               const Tensor& state) {
  const auto [y, next] = model.decoder(model.symbols(before), state);
  const Tensor weights = softmax(matmul(source.keys, y, hidden), source.inputs);
  const Tensor seen = matmul(weights, source.values, source.inputs);
  return {{model.readout(tanh(concat({y, seen}, hidden, both))), weights}, next};
}

struct Batch {
  Tensor text, target;  // i32 {batch, inputs} and {batch, inputs + 1}, which ends with kEnd
};

Batch draw(const Dim& batch) {
  const Dim inputs("inputs", random_integers({batch}, 3, 10));
  const Tensor text = random_integers({batch, inputs}, 2, 10);
  return {text, pad(reverse(text, inputs), inputs, 0, 1, kEnd, inputs + 1)};
}

/// Returns all steps of the decoder if it is given the right symbol before each one.
Step decode_all(const Translator& model, const Batch& data) {
  const Encoded source = encode(model, data.text);
  const Dim outputs = source.inputs + 1;
  const auto body = [&](const Tensor& before, const Tensor& state) {
    return decode(model, source, before, state);
  };
  return scan(Scan{.spatial_dim = outputs,
                   .initial = zeros({data.text.dim("batch"), hidden}),
                   .xs = shift(data.target, outputs, 1, kBegin),
                   .body = body})
      .ys;
}

Tensor loss_of(const Translator& model, const Batch& data) {
  return cross_entropy(decode_all(model, data).logits, data.target, symbol);
}

/// Returns the likeliest symbols, each after those that were written before: {batch, written}.
Tensor translate(const Translator& model, const Tensor& text) {
  const Dim batch = text.dim("batch");
  const Encoded source = encode(model, text);
  const auto body = [&](const std::pair<Tensor, Tensor>& s) {
    const auto [step, state] = decode(model, source, s.first, s.second);
    const Tensor next = argmax(step.logits, symbol);
    return std::pair{next, std::pair{next, state}};
  };
  const auto [ys, last, written] =
      scan(Scan{.spatial_dim = Dim("written"),
                .cond_dims = {batch},
                .initial = std::pair{full({batch}, kBegin, i32), zeros({batch, hidden})},
                .cond = [](const std::pair<Tensor, Tensor>& s) { return s.first != kEnd; },
                .body = body,
                .max_seq_len = 20});
  return transpose(ys, {batch, written});
}

int main(int count, char** arguments) {
  const int steps = count > 1 ? std::stoi(arguments[1]) : 900;
  manual_seed(1);
  const auto step = jit([](Translator model, Adam<Translator> optimiser, const Batch& data) {
    const auto [loss, gradient] = value_and_grad(loss_of)(model, data);
    optimiser.update(model, gradient);
    return std::tuple{model, optimiser, loss};
  });
  const Dim batch("batch", 64);
  Translator model;
  Adam<Translator> optimiser(model, {.learning_rate = 0.005, .clip_norm = 1});
  for (int i = 0; i <= steps; ++i) {
    Tensor loss;
    std::tie(model, optimiser, loss) = step(std::move(model), std::move(optimiser), draw(batch));
    if (i % (steps / 3) == 0) std::cout << "step " << i << ": loss " << loss.item<float>() << '\n';
  }
  const Batch data = draw(batch);
  const auto written = rows_of<int>(translate(model, data.text)), right = rows_of<int>(data.target);
  int equal = 0;
  for (std::size_t i = 0; i < right.size(); ++i) equal += written[i] == right[i];
  std::cout << "sequences without an error: " << equal << " of " << right.size() << '\n';

  const Dim inputs = data.text.dim("inputs");
  const Tensor weights = decode_all(model, data).weights;  // {outputs, batch, inputs}
  const Tensor looked = argmax(weights, inputs);
  const Tensor mirrored = reverse(expand(range(inputs), {batch, inputs}), inputs);
  const Tensor is_mirrored = slice(looked, inputs + 1, 0, -1, inputs) == mirrored;
  std::cout << "steps that look at the mirrored symbol: "
            << mean(cast(is_mirrored, f32)).item<float>() << '\n';

  // The weights of the first sequence: a column for each symbol, a line for each written one.
  const auto text = rows_of<int>(data.text);
  const auto looks =
      rows_of<std::vector<std::vector<float>>>(transpose(weights, {batch, inputs + 1, inputs}));
  std::cout << "\n    ";
  for (const int s : text[0]) std::cout << s;
  for (std::size_t i = 0; i < looks[0].size(); ++i) {
    std::cout << '\n' << right[0][i] << " | ";
    for (const float weight : looks[0][i]) std::cout << " .:+#"[std::lround(4 * weight)];
  }
  std::cout << '\n';
}
