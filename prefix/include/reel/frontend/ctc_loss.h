// frontend/ctc_loss.h — ctc_loss: labels without an alignment to the frames.
#pragma once

#include <cstdint>

#include "reel/core/dim.h"
#include "reel/core/tensor.h"

namespace reel {

/// The axes of ctc_loss, by name.
struct CtcDims {
  Dim time;        ///< of the frames; of logits alone
  Dim label_time;  ///< of the labels; of labels alone
  Dim vocab;       ///< labels and blank; of logits alone
};

struct CtcOptions {
  std::int64_t blank = 0;      ///< its place along vocab; negative ones count from the end
  bool zero_infinity = false;  ///< an entry that no alignment fits counts as 0 instead of +inf
};

/// log p(labels | frames) in nats: the probability of all alignments of the labels with the frames.
///
/// logits: floating, [..., time, vocab], normalised along vocab here (log-probabilities stay as
/// they are); labels: i32 or i64, [..., label_time], positions along vocab but blank -> [...], the
/// dims that logits and labels share. All dims are named; time and label_time may be ragged, and
/// may be empty: without frames the probability of no labels is 1. Where no alignment fits (fewer
/// frames than labels, and one more for each repeated label), or all need what has probability 0,
/// the result is -inf with gradient exactly 0. Throws DTypeError, ShapeError, ArgumentError, and
/// IndexError for a label that is blank or no position along vocab.
/// Memory: per frame 2·(labels + 1) numbers per entry are kept for the gradient.
/// Source: Graves, Fernández, Gomez & Schmidhuber (2006), eq. 6 to 8, in log space.
Tensor ctc_log_likelihood(const Tensor& logits, const Tensor& labels, const CtcDims& dims,
                          const CtcOptions& options = {});

/// The mean of -ctc_log_likelihood over all entries, padding excepted; over none it is 0.
///
/// An entry without any alignment makes it +inf, and has no gradient: the others' stay as they are.
Tensor ctc_loss(const Tensor& logits, const Tensor& labels, const CtcDims& dims,
                const CtcOptions& options = {});

}  // namespace reel
