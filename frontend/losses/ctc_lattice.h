// frontend/losses/ctc_lattice.h — the states of CTC's alignments, and how one frame follows
// another.
#pragma once

#include <cstdint>
#include <string>
#include <tuple>

#include "reel/core/types/tensor.h"
#include "reel/frontend/losses/ctc_loss.h"

namespace reel {

// A finite stand-in for log 0: differences with it are finite, so values and gradients of any order
// need no special cases. No sum of real log-probabilities comes near kNeverBound, and sums with
// kNever stay below it.
inline constexpr double kNever = -1e30, kNeverBound = -1e29;

/// Throws as ctc_log_likelihood. function: the public function, for errors.
void check_ctc_arguments(const std::string& function, const TensorType& logits,
                         const TensorType& labels, const CtcDims& dims, std::int64_t blank);

/// Log-probabilities of all alignments of the frames so far, by their last symbol: label s, the
/// blank after label s, or the blank before the first label.
struct CtcScores {
  Tensor label, blank;  // over entries and label_time
  Tensor start;         // over entries
  auto members() { return std::tie(label, blank, start); }
};

/// Log-probabilities before a frame, by the symbol that the frame is to have. A label follows
/// itself, the blank before it, or the label before it if that is different; a blank follows itself
/// or its label.
struct CtcArcs {
  Tensor from_blank, skipping;  ///< to a label; from itself: CtcScores::label
  Tensor p_label, p_blank;      ///< of the frame's symbols
};

/// The labels of a batch, and the masks that the recursion reads at every frame.
class CtcLattice {
 public:
  /// function: the public function, for errors. Throws as ctc_log_likelihood.
  CtcLattice(const std::string& function, const Tensor& logits, const Tensor& labels,
             const CtcDims& dims, std::int64_t blank);
  /// Requires valid arguments. counts: i32, the labels of each entry, whatever label_time's own
  /// lengths are.
  CtcLattice(const Tensor& logits, const Tensor& labels, const CtcDims& dims, const Tensor& counts,
             std::int64_t blank);

  /// Returns the frames' log-probabilities, [..., time, vocab], at least kNever.
  const Tensor& log_p() const { return log_p_; }
  const Tensor& labels() const { return labels_; }
  /// Returns the dims that logits and labels share.
  const Dims& entries() const { return entries_; }
  /// Returns the scores before the first frame.
  CtcScores none() const;
  CtcArcs arcs(const Tensor& log_p, const CtcScores& at) const;
  /// Returns x at the last label; 0 if there are no labels.
  Tensor at_last(const Tensor& x) const;
  const Tensor& is_last() const { return is_last_; }

 private:
  Tensor before(const Tensor& x) const;

  CtcDims dims_;
  Dims entries_;
  Tensor log_p_, labels_, blank_, before_;
  Tensor is_first_, is_last_, is_repeated_;
};

}  // namespace reel
