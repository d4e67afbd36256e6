// bench/models/char_lstm.h — a character language model: two layers of LSTMs.
#pragma once

#include "stream.h"

namespace reel::bench {

struct CharLstmSizes {
  int batch = 32, steps = 64, symbols = 73, embedding = 64, hidden = 128;
};

/// Returns a model that predicts the next character of each text.
Model char_lstm(const CharLstmSizes& sizes = {});
/// Returns the model step by step: each call takes a character of each text and the state, and
/// returns the next state.
Model char_lstm_step_by_step(const CharLstmSizes& sizes = {});

/// Returns the training of this model on texts of these lengths.
Stream char_lstm_stream(const CharLstmSizes& sizes, const std::string& name,
                        const std::vector<Lengths>& lengths);

}  // namespace reel::bench
