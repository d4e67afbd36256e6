// frontend/losses/ctc_loss.h — ctc_loss, for labels without an alignment to the frames.
#pragma once

#include <cstdint>

#include "reel/core/base/visibility.h"
#include "reel/core/types/dim.h"
#include "reel/core/types/tensor.h"

REEL_API_BEGIN
namespace reel {

/// The axes of ctc_loss, by name.
struct CtcDims {
  Dim time;        ///< the frames; in logits only
  Dim label_time;  ///< the labels; in labels only
  Dim vocab;       ///< labels and blank; in logits only
};

/// Options of ctc_loss and ctc_log_likelihood.
struct CtcOptions {
  std::int64_t blank = 0;      ///< index along vocab; negative ones count from the end
  bool zero_infinity = false;  ///< true: an entry without a possible alignment counts as 0, not
                               ///< +inf
};

/// Returns log p(labels | frames) in nats, the sum over all alignments of the labels with the
/// frames.
///
/// logits: floating, [..., time, vocab]; normalised along vocab by this function, which does not
/// change log-probabilities. labels: i32 or i64, [..., label_time], indices along vocab other than
/// blank. Returns [...], the dims that logits and labels share. All dims are named; time and
/// label_time may be ragged or empty: with no frames the probability of no labels is 1.
///
/// If no alignment is possible (fewer frames than labels plus repeated labels), or all have
/// probability 0, the result is -inf with a gradient of exactly 0. Throws DTypeError, ShapeError or
/// ArgumentError for other arguments; IndexError for a label that is blank or out of range.
/// Sums are in f64, for f32 too. Memory: a number for each frame, besides the gradient of logits.
/// Speed: one op, and one for the gradient; second derivatives run a scan.
/// Source: Graves, Fernández, Gomez & Schmidhuber (2006), eq. 6 to 8, in log space.
Tensor ctc_log_likelihood(const Tensor& logits, const Tensor& labels, const CtcDims& dims,
                          const CtcOptions& options = {});

/// Returns the mean of -ctc_log_likelihood over all entries without padding; 0 for no entries. The
/// loss of each entry is 0 - ctc_log_likelihood(...).
///
/// An entry without a possible alignment makes the result +inf (see CtcOptions::zero_infinity) and
/// has no gradient; gradients of other entries do not change.
Tensor ctc_loss(const Tensor& logits, const Tensor& labels, const CtcDims& dims,
                const CtcOptions& options = {});

}  // namespace reel
REEL_API_END
