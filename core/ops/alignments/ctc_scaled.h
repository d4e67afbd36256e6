// core/ops/alignments/ctc_scaled.h — ScaledCtc, the sums of CTC over probabilities that are scaled
// frame by frame.
#pragma once

#include <cstdint>
#include <vector>

#include "reel/core/ops/alignments/symbol_rows.h"

namespace reel {

/// The sums of one entry without logarithms: a tenth of the time in log space. Numbers far below
/// the largest number in a frame are lost, so run() says whether they matter.
class ScaledCtc {
 public:
  /// Returns true if log_p() and shares() are as in log space up to rounding. False if the paths
  /// that were lost may count, or a normaliser is no finite number.
  ///
  /// normalisers: logsumexp of each frame. T: float or double.
  template <class T>
  bool run(const AlignmentSizes& sizes, const AlignmentEntry& entry, const T* logits,
           const double* normalisers);

  double log_p() const { return log_p_; }
  /// Writes the probabilities of the states at frame t, given the labels: of label s to shares[s],
  /// of all blanks to shares[count].
  void shares(std::int64_t t, double* shares) const;
  /// Returns the probabilities of the symbols of frame t: of the labels, then of blank.
  const double* probabilities(std::int64_t t) const { return p_.data() + t * (count_ + 1); }

 private:
  void forward();
  void backward();
  std::int64_t width() const { return 2 * count_ + 2; }
  /// By state, of frame t: count + 1 blanks, a 0, and the labels.
  double* forward_row(std::int64_t t) { return forward_.data() + t * width(); }
  /// By state, of frame t: count + 1 blanks, the labels, and a 0.
  double* backward_row(std::int64_t t) { return backward_.data() + t * width(); }

  std::int64_t frames_ = 0, count_ = 0;
  std::vector<double> p_;                   ///< by frame: of the labels, then of blank
  std::vector<double> skips_;               ///< 1 for a label that may follow the one before it
  std::vector<double> forward_, backward_;  ///< scaled to the sum 1, by frame
  std::vector<double> forward_scale_, backward_scale_;  ///< logarithms, by frame
  std::vector<double> arrivals_, row_;
  double log_p_ = 0;
};

}  // namespace reel
