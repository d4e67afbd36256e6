// bench/models/decoding.h — a Transformer writes text, and beam search, as they run after training.
#pragma once

#include "model.h"

namespace reel::bench {

struct DecodingSizes {
  int layers = 6, width = 256, head = 64, symbols = 4000, tokens = 128;
};

/// Returns greedy decoding, a call for each token. Caches have room for all tokens: a call replaces
/// one row of each cache, and reads all rows. Its other form reads the weights once for each token.
Model decoding(const DecodingSizes& sizes = {});

struct BeamSizes {
  int batch = 1, beam = 4, symbols = 1000, hidden = 128, steps = 50;
};

/// Returns beam search with an LSTM, in one call. Its products count the readout alone.
Model beam_search_of_lstm(const BeamSizes& sizes);

}  // namespace reel::bench
