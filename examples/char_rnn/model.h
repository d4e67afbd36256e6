// model.h — the character model: which symbol comes next, given all that came before.
#pragma once

#include <reel/reel.h>

#include <string>
#include <utility>

#include "lstm.h"
#include "text.h"

struct CharDims {
  CharDims(int batch_size, int length, int symbols, int hidden_size)
      : batch("batch", batch_size),
        time("time", length),
        symbol("symbol", symbols),
        in("in", hidden_size / 2 + 1),
        hidden("hidden", hidden_size),
        gate("gate", 4 * hidden_size) {}
  reel::Dim batch, time, symbol, in, hidden, gate;
};

struct CharModel {
  reel::Tensor embedding;  // {symbol, in}
  Lstm cell;
  reel::Tensor readout, readout_bias;  // {hidden, symbol}, {symbol}

  static CharModel random(const CharDims& dims);
};

/// Sequences that begin: the state that no symbol has been seen in.
LstmState initial_state(const CharDims& dims);

/// The mean of -log p(target) in nats, and the state behind the last symbol, from which the next
/// piece of the text goes on. text, target: i32 {batch, time}, the symbols, and those that follow
/// them.
std::pair<reel::Tensor, LstmState> text_loss(const CharModel& model, const LstmState& state,
                                             const reel::Tensor& text, const reel::Tensor& target,
                                             const CharDims& dims);

/// So many symbols that the model writes, each drawn from what it expects after those before it.
std::string write_text(const CharModel& model, const CharDims& dims, const Alphabet& alphabet,
                       int count);
