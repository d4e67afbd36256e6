// bench/models/alignments.h — losses over all alignments, with the gradient of logits.
#pragma once

#include "model.h"

namespace reel::bench {

struct AlignmentSizes {
  int batch = 32, frames = 500, labels = 50, symbols = 100;
  bool is_transducer = false;  ///< logits have labels + 1 prefixes too
};

/// The other form is a loop by hand over all states in f64: of CTC over scaled probabilities, of a
/// transducer in log space, by std::exp and std::log1p.
Model alignments(const AlignmentSizes& sizes);

}  // namespace reel::bench
