// bench/models/seq2seq.h — an encoder and a decoder with attention.
#pragma once

#include "stream.h"

namespace reel::bench {

struct Seq2SeqSizes {
  int batch = 32, steps = 20, symbols = 64, embedding = 64, hidden = 128;
  double least = 1;  ///< the shortest sequence's share of the steps

  bool is_ragged() const { return least < 1; }
};

/// Translates texts: a GRU reads the source; another one writes the target, and attends to the
/// source in each step. Source: Luong, Pham & Manning (2015), with dot products as scores.
Model seq2seq(const Seq2SeqSizes& sizes);
/// Returns the training of this model on texts of these lengths; targets have the lengths of the
/// next batch.
Stream seq2seq_stream(const Seq2SeqSizes& sizes, const std::string& name,
                      const std::vector<Lengths>& lengths);

}  // namespace reel::bench
