// frontend/losses/transducer_loss.h — transducer_loss (RNN-T), for labels without an alignment to
// the frames.
#pragma once

#include <cstdint>

#include "reel/core/base/visibility.h"
#include "reel/core/types/dim.h"
#include "reel/core/types/tensor.h"

REEL_API_BEGIN
namespace reel {

/// The axes of transducer_loss, by name.
struct TransducerDims {
  Dim time;        ///< the frames; in logits only
  Dim label_time;  ///< the labels; in labels only
  Dim prefix;      ///< how many labels came before: label_time + 1; in logits only
  Dim vocab;       ///< labels and blank; in logits only
};

/// Options of transducer_loss and transducer_log_likelihood.
struct TransducerOptions {
  std::int64_t blank = 0;      ///< index along vocab; negative ones count from the end
  bool zero_infinity = false;  ///< true: an entry without a possible alignment counts as 0
};

/// Returns log p(labels | frames) in nats, the sum over all alignments. At a frame, behind a prefix
/// of the labels, either the next label is emitted, or a blank, which leads to the next frame. The
/// last symbol is the blank of the last frame.
///
/// logits: floating, [..., time, prefix, vocab]; normalised along vocab by this function. labels:
/// i32 or i64, [..., label_time], indices along vocab other than blank. Returns [...], the dims
/// that logits and labels share. All dims are named; time, label_time and prefix may be ragged or
/// empty. In each entry prefix has one element more than label_time, or further ones that do not
/// count.
///
/// If no alignment is possible, because an entry has labels and no frames, or symbols have
/// probability 0, the result is -inf with a gradient of exactly 0. Sums are in f64, for f32 too.
/// Throws DTypeError, ShapeError or ArgumentError for other arguments; IndexError for a label that
/// is blank or out of range; AssertionError if an entry of prefix is too short. Memory: a number
/// for each frame and prefix, besides the gradient of logits. Speed: one op, and one for the
/// gradient; second derivatives run two nested scans.
/// Source: Graves (2012), "Sequence Transduction with Recurrent Neural Networks", eq. 12 to 20.
Tensor transducer_log_likelihood(const Tensor& logits, const Tensor& labels,
                                 const TransducerDims& dims, const TransducerOptions& options = {});

/// Returns the mean of -transducer_log_likelihood over all entries without padding; 0 for no
/// entries. The loss of each entry is 0 - transducer_log_likelihood(...).
///
/// Throws AssertionError, in a trace when it runs, for an entry without a possible alignment; the
/// message has its index. With zero_infinity such an entry counts as 0 and has no gradient.
Tensor transducer_loss(const Tensor& logits, const Tensor& labels, const TransducerDims& dims,
                       const TransducerOptions& options = {});

}  // namespace reel
REEL_API_END
