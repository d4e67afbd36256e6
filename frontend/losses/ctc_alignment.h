// frontend/losses/ctc_alignment.h — ctc_alignment, the likeliest alignment of labels to frames.
#pragma once

#include <tuple>

#include "reel/core/base/visibility.h"
#include "reel/core/types/tensor.h"
#include "reel/frontend/losses/ctc_loss.h"

REEL_API_BEGIN
namespace reel {

/// An alignment of labels to frames.
struct CtcAlignment {
  Tensor symbols;          ///< i32 [..., time]: the symbol of each frame, a label or blank
  Tensor places;           ///< i32 [..., time]: its place along label_time; -1 for blank
  Tensor durations;        ///< i32 [..., label_time]: the frames of each label, blanks left out
  Tensor log_probability;  ///< [...], in nats
  auto members() { return std::tie(symbols, places, durations, log_probability); }
};

/// Returns the likeliest alignment of the labels with the frames.
///
/// logits, labels, dims and errors: as for ctc_log_likelihood. Among equally likely alignments a
/// label stays as long as possible. If no alignment is possible, log_probability is -inf, all
/// symbols are blank, and all durations 0; if the logits of an entry make it NaN, too. Gradients
/// flow from log_probability only.
/// Source: Viterbi (1967), on the states of Graves, Fernández, Gomez & Schmidhuber (2006).
CtcAlignment ctc_alignment(const Tensor& logits, const Tensor& labels, const CtcDims& dims,
                           const CtcOptions& options = {});

}  // namespace reel
REEL_API_END
