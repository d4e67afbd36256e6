// examples/char_rnn/model.h — the character model: predicts the next symbol from all symbols before
// it.
#pragma once

#include <reel/reel.h>

#include <string>
#include <tuple>
#include <utility>

#include "../training/network.h"
#include "text.h"

template <class Cell>
struct CharModel {
  using State = typename Network<Cell>::State;

  reel::Embedding embedding;
  Network<Cell> network;
  reel::Linear readout;

  static CharModel random(int symbols, int hidden_size, int layers) {
    const reel::Dim symbol("symbol", symbols), in("in", hidden_size / 2 + 1);
    auto embedding = reel::Embedding::init(symbol, in);
    auto network = make_network<Cell>(in, hidden_size, layers);
    auto readout = reel::Linear::init(network.out_dim(), symbol);
    return {std::move(embedding), std::move(network), std::move(readout)};
  }

  /// Runs one step. symbol: i32 [...]. Returns logits of the next symbol, [..., symbols], and the
  /// next state.
  std::pair<reel::Tensor, State> operator()(const reel::Tensor& symbol, const State& state) const {
    auto [y, next] = network(embedding(symbol), state);
    return {readout(y), std::move(next)};
  }
};

/// Returns the mean of -log p(target) in nats, and the state behind the last symbol. The next piece
/// of the text begins with that state. text, target: i32 {batch, time}: the symbols, and the
/// symbols that follow them.
template <class Cell>
std::pair<reel::Tensor, typename CharModel<Cell>::State> text_loss(
    const CharModel<Cell>& model, const typename CharModel<Cell>::State& state,
    const reel::Tensor& text, const reel::Tensor& target, const reel::Dim& time) {
  auto [outputs, last] =
      reel::recur(model.network, model.embedding(text), time, {.initial = state});
  return {reel::cross_entropy(model.readout(outputs), target, model.readout.out), last};
}

/// Returns `count` symbols, each drawn from the model's prediction after those before it.
/// temperature: below 1 unlikely symbols become rarer, above 1 more frequent.
template <class Cell>
std::string write_text(const CharModel<Cell>& model, const Alphabet& alphabet, int count,
                       double temperature) {
  using State = typename CharModel<Cell>::State;
  // Uses the cells without a batch: dims that do not exist need not be mentioned.
  auto write_symbol = reel::jit(
      [&](const CharModel<Cell>& m, const reel::Tensor& symbol, const State& state) {
        auto [logits, next] = m(symbol, state);
        const reel::Dim& symbols = m.readout.out;
        // The largest logit is subtracted first: even at low temperatures all values stay finite.
        const reel::Tensor sharpened = (logits - reel::max(logits, symbols)) / temperature;
        return std::pair{reel::categorical(sharpened, symbols), next};
      },
      {.name = "writing"});
  reel::Tensor symbol = reel::scalar(alphabet.start());
  State state = model.network.initial_state({});
  std::string text;
  for (int i = 0; i < count; ++i) {
    std::tie(symbol, state) = write_symbol(model, symbol, state);
    text += alphabet.decode(symbol.item<int>());
  }
  return text;
}
