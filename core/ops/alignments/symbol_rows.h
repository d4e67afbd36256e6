// core/ops/alignments/symbol_rows.h — the operands of an alignment op by entry, and rows of logits.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "reel/core/op/op.h"
#include "reel/core/types/tensor.h"

namespace reel {

inline constexpr double kNoPath = -std::numeric_limits<double>::infinity();

/// Returns log(exp a + exp b), also for -inf.
inline double log_add(double a, double b) {
  const double high = a > b ? a : b, low = a > b ? b : a;
  // Behind 40 the sum has the bits of `high`. -inf - -inf is NaN, which compares false.
  if (!(high - low < 40)) return high == high && low == low ? high : a + b;
  return high + std::log1p(std::exp(low - high));
}

/// The sizes of the operands. `prefixes` is 1 for CTC.
struct AlignmentSizes {
  std::int64_t entries, time, prefixes, labels, vocab, blank;
  std::int64_t rows() const { return time * prefixes; }
};
/// axes: behind the dims of entries in logits, 2 or 3.
AlignmentSizes alignment_sizes(const KernelArgs& args, int axes);

/// The labels and lengths of one entry.
struct AlignmentEntry {
  std::int64_t frames, count;  ///< within the sizes
  bool fits;                   ///< false if the lengths exceed the sizes
  const std::int32_t* labels;
};
AlignmentEntry alignment_entry(const KernelArgs& args, const AlignmentSizes& sizes,
                               std::int64_t entry, std::int64_t most);

/// Writes logsumexp of `rows` rows of `vocab` logits. T: float or double.
template <class T>
void write_normalisers(const T* logits, std::int64_t rows, std::int64_t vocab, T* to);
/// Writes factor · exp(logits - normaliser), a row of a softmax. Writes zeros for a factor of 0.
template <class T>
void write_shares(const T* logits, std::int64_t vocab, T normaliser, double factor, T* to);

/// Returns the log-probability of a symbol; -inf for one out of range.
template <class T>
double log_share(const T* logits, std::int64_t vocab, T normaliser, std::int64_t symbol) {
  if (symbol < 0 || symbol >= vocab) return kNoPath;
  const double logit = static_cast<double>(logits[symbol]);
  return logit == kNoPath ? kNoPath : logit - static_cast<double>(normaliser);
}

}  // namespace reel
