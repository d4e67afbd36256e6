// core/ops/alignments/symbol_rows.h — the operands of an alignment op by entry, and rows of logits.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

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

/// Returns true if the blank and all labels of the entry are in range. Padding may hold any labels.
bool has_valid_symbols(const AlignmentSizes& sizes, const AlignmentEntry& entry);

// Normalisers are f64 for all logits: log p of a confident prediction is their small difference,
// which would lose its digits in f32.

/// Writes logsumexp of `rows` rows of `vocab` logits. T: float or double.
template <class T>
void write_normalisers(const T* logits, std::int64_t rows, std::int64_t vocab, double* to);
/// Writes factor · exp(logits - normaliser), a row of a softmax. Writes zeros for a factor of 0.
template <class T>
void write_shares(const T* logits, std::int64_t vocab, double normaliser, double factor, T* to);

/// Returns the log-probability of a symbol; -inf for one out of range.
template <class T>
double log_share(const T* logits, std::int64_t vocab, double normaliser, std::int64_t symbol) {
  if (symbol < 0 || symbol >= vocab) return kNoPath;
  const double logit = static_cast<double>(logits[symbol]);
  return logit == kNoPath ? kNoPath : logit - normaliser;
}

/// A symbol of a row that alignments use. The row may have equal symbols.
struct SymbolShare {
  std::int64_t symbol;  ///< in range
  double p;             ///< its probability
  double share;         ///< of the alignments
};

/// The gradients of a row in logits of symbols that alignments use. Shares of a symbol are added in
/// f64 before its probability is subtracted, because both may be near 1.
class SymbolGradients {
 public:
  /// Writes g · (share - all · p) for each symbol. all: the sum of all shares. at(i): a SymbolShare
  /// for i below `count`.
  template <class T, class At>
  void write(std::int64_t vocab, double g, double all, std::int64_t count, const At& at, T* to) {
    if (static_cast<std::int64_t>(sums_.size()) < vocab)
      sums_.resize(static_cast<std::size_t>(vocab), 0);
    for (std::int64_t i = 0; i < count; ++i) {
      const SymbolShare x = at(i);
      sums_[static_cast<std::size_t>(x.symbol)] += x.share;
    }
    for (std::int64_t i = 0; i < count; ++i) {
      const SymbolShare x = at(i);
      double& sum = sums_[static_cast<std::size_t>(x.symbol)];
      if (sum == 0) continue;  // the row of the softmax is right, or the symbol is written already
      to[x.symbol] = static_cast<T>(g * (sum - all * x.p));
      sum = 0;
    }
  }

 private:
  std::vector<double> sums_;  ///< by symbol; zeros between calls
};

}  // namespace reel
