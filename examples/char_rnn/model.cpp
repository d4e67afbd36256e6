#include "model.h"

using namespace reel;

CharModel CharModel::random(const CharDims& dims) {
  return {
      .embedding = random_normal({dims.symbol, dims.in}),
      .cell = Lstm::random(dims.in, dims.hidden, dims.gate),
      .readout = random_normal({dims.hidden, dims.symbol}) /
                 std::sqrt(static_cast<double>(dims.hidden.size())),
      .readout_bias = zeros({dims.symbol}),
  };
}

LstmState initial_state(const CharDims& dims) {
  return {zeros({dims.batch, dims.hidden}), zeros({dims.batch, dims.hidden})};
}

std::pair<Tensor, LstmState> text_loss(const CharModel& model, const LstmState& state,
                                       const Tensor& text, const Tensor& target,
                                       const CharDims& dims) {
  auto [hs, last, time] = scan(Scan{
      .spatial_dim = dims.time,
      .initial = state,
      .xs = gather(model.embedding, text, dims.symbol),
      .body =
          [&](const Tensor& x, const LstmState& s) {
            LstmState next = model.cell.step(x, s, dims.in, dims.hidden, dims.gate);
            return std::pair{next.h, next};
          },
  });
  const Tensor logits = matmul(hs, model.readout, dims.hidden) + model.readout_bias;
  return {cross_entropy(logits, target, dims.symbol), last};
}

std::string write_text(const CharModel& model, const CharDims& dims, const Alphabet& alphabet,
                       int count) {
  // A little below 1, so that it seldom writes what it thinks unlikely.
  constexpr double kTemperature = 0.8;
  // The same cell without a batch: dims that are not there need not be said.
  auto write_symbol = jit([&](const CharModel& m, const Tensor& symbol, const LstmState& state) {
    const Tensor x = gather(m.embedding, symbol, dims.symbol);
    const LstmState next = m.cell.step(x, state, dims.in, dims.hidden, dims.gate);
    const Tensor logits = matmul(next.h, m.readout, dims.hidden) + m.readout_bias;
    return std::pair{categorical(logits / kTemperature, dims.symbol), next};
  });
  Tensor symbol = scalar(alphabet.start());
  LstmState state{zeros({dims.hidden}), zeros({dims.hidden})};
  std::string text;
  for (int i = 0; i < count; ++i) {
    auto [next_symbol, next_state] = write_symbol(model, symbol, state);
    symbol = next_symbol;
    state = next_state;
    text += alphabet.decode(symbol.item<int>());
  }
  return text;
}
