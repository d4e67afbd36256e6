// model.h — the character model: which symbol comes next, given all that came before.
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

  /// One step. symbol: i32 [...] -> {what may come next, as logits [..., symbols], the state behind
  /// it}.
  std::pair<reel::Tensor, State> operator()(const reel::Tensor& symbol, const State& state) const {
    auto [y, next] = network(embedding(symbol), state);
    return {readout(y), std::move(next)};
  }
};

/// The mean of -log p(target) in nats, and the state behind the last symbol, from which the next
/// piece of the text goes on. text, target: i32 {batch, time}, the symbols, and those that follow
/// them.
template <class Cell>
std::pair<reel::Tensor, typename CharModel<Cell>::State> text_loss(
    const CharModel<Cell>& model, const typename CharModel<Cell>::State& state,
    const reel::Tensor& text, const reel::Tensor& target, const reel::Dim& time) {
  auto [outputs, last] =
      reel::recur(model.network, model.embedding(text), time, {.initial = state});
  return {reel::cross_entropy(model.readout(outputs), target, model.readout.out), last};
}

/// So many symbols that the model writes, each drawn from what it expects after those before it.
/// temperature: below 1 it seldom writes what it thinks unlikely, above 1 often.
template <class Cell>
std::string write_text(const CharModel<Cell>& model, const Alphabet& alphabet, int count,
                       double temperature) {
  using State = typename CharModel<Cell>::State;
  // The same cells without a batch: dims that are not there need not be said.
  auto write_symbol = reel::jit(
      [&](const CharModel<Cell>& m, const reel::Tensor& symbol, const State& state) {
        auto [logits, next] = m(symbol, state);
        const reel::Dim& symbols = m.readout.out;
        // The largest is taken off first: however cold, it stays finite.
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
