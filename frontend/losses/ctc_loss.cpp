#include "reel/frontend/losses/ctc_loss.h"

#include <limits>
#include <string>
#include <utility>

#include "reel/core/ops.h"
#include "reel/frontend/loops/scan.h"
#include "reel/frontend/losses/ctc_lattice.h"

namespace reel {
namespace {

/// Returns log(exp a + exp b) for finite numbers. The maximum is a constant to the gradient, in
/// which it cancels.
Tensor log_add(const Tensor& a, const Tensor& b) {
  const Tensor m = stop_gradient(maximum(a, b));
  return m + log(exp(a - m) + exp(b - m));
}
Tensor log_add(const Tensor& a, const Tensor& b, const Tensor& c) {
  const Tensor m = stop_gradient(maximum(maximum(a, b), c));
  return m + log(exp(a - m) + exp(b - m) + exp(c - m));
}

/// Advances by one frame.
CtcScores step(const CtcLattice& lattice, const Tensor& log_p, const CtcScores& at) {
  const CtcArcs arcs = lattice.arcs(log_p, at);
  return {log_add(at.label, arcs.from_blank, arcs.skipping) + arcs.p_label,
          log_add(at.blank, at.label) + arcs.p_blank, at.start + arcs.p_blank};
}

/// Returns the log-probability of complete alignments: ending in the last label or the blank after
/// it.
Tensor complete(const CtcLattice& lattice, const CtcScores& at, const Dim& label_time) {
  const Tensor ends =
      logsumexp(where(lattice.is_last(), log_add(at.label, at.blank), kNever), label_time);
  return where(label_time.lengths() == 0, at.start, maximum(ends, kNever));
}

/// function: the public function, for errors.
Tensor log_likelihood(const std::string& function, const Tensor& logits, const Tensor& labels,
                      const CtcDims& dims, const CtcOptions& options) {
  const CtcLattice lattice(function, logits, labels, dims, options.blank);
  const auto body = [&](const Tensor& log_p, const CtcScores& at) {
    return std::pair{None{}, step(lattice, log_p, at)};
  };
  const Scan<CtcScores, Tensor, None, None, decltype(body)> frames{
      .spatial_dim = dims.time,
      .initial = lattice.none(),
      .xs = lattice.log_p(),
      .body = body,
      .name = function,
  };
  const Tensor total = complete(lattice, scan(frames).state, dims.label_time);
  return where(total < kNeverBound, -std::numeric_limits<double>::infinity(), total);
}

}  // namespace

Tensor ctc_log_likelihood(const Tensor& logits, const Tensor& labels, const CtcDims& dims,
                          const CtcOptions& options) {
  return log_likelihood("ctc_log_likelihood", logits, labels, dims, options);
}

Tensor ctc_loss(const Tensor& logits, const Tensor& labels, const CtcDims& dims,
                const CtcOptions& options) {
  const Tensor likelihood = log_likelihood("ctc_loss", logits, labels, dims, options);
  // 0 - x, because -x would return -0 for a loss of 0 (no entries, or certain predictions).
  if (!options.zero_infinity) return 0 - mean(likelihood);
  return 0 - mean(where(likelihood == -std::numeric_limits<double>::infinity(), 0, likelihood));
}

}  // namespace reel
