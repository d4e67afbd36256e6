// bench/models/ctc.h — a bidirectional LSTM trained with CTC.
#pragma once

#include "stream.h"

namespace reel::bench {

struct CtcSizes {
  int features = 40, hidden = 48, symbols = 32, stacked = 3;  ///< stacked: frames that become one
};

/// Recognises symbols in frames: frames are stacked, then read by an LSTM from each end. Source:
/// Graves, Fernández, Gomez & Schmidhuber (2006). lengths: the symbols of each entry; it has
/// 2 · stacked frames for each.
Stream ctc_stream(const CtcSizes& sizes, const std::string& name,
                  const std::vector<Lengths>& lengths);

}  // namespace reel::bench
