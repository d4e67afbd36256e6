// bench/models/crf.h — a tagger: a linear-chain CRF on the features of a GRU.
#pragma once

#include "model.h"

namespace reel::bench {

struct CrfSizes {
  int batch = 32, steps = 40, in = 64, hidden = 64, tags = 16;
  double least = 0.25;  ///< the shortest text's share of the steps
};

/// Tags the words of each text. Source: Lafferty, McCallum & Pereira (2001), section 3.
Model crf(const CrfSizes& sizes = {});

}  // namespace reel::bench
