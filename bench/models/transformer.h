// bench/models/transformer.h — a causal Transformer on texts of different lengths.
#pragma once

#include "stream.h"

namespace reel::bench {

struct TransformerSizes {
  int batch = 32, steps = 40, symbols = 64, feature = 64, heads = 4, layers = 2, inner = 256;
  double least = 0.25;  ///< the shortest text's share of the steps
};

/// Predicts the next symbol of each text. Source: Vaswani et al. (2017), with the normalisation
/// before each block, as in Radford et al. (2019).
Model transformer(const TransformerSizes& sizes = {});
/// Returns the training of this model on texts of these lengths.
Stream transformer_stream(TransformerSizes sizes, const std::string& name,
                          const std::vector<Lengths>& lengths);

}  // namespace reel::bench
