#include "reel/frontend/losses/ctc_loss.h"

#include <limits>
#include <string>

#include "reel/core/op/bind.h"
#include "reel/core/ops.h"
#include "reel/core/ops/alignments/alignments.h"
#include "reel/core/ops/indexing/labels.h"
#include "reel/core/types/mode.h"
#include "reel/frontend/losses/alignment_scans.h"
#include "reel/frontend/losses/ctc_lattice.h"
#include "reel/frontend/tree/dim_lists.h"

namespace reel {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// function: the public function, for errors.
Tensor log_likelihood(const std::string& function, const Tensor& logits, const Tensor& labels,
                      const CtcDims& given, const CtcOptions& options) {
  const CtcDims dims{canonical(given.time), canonical(given.label_time), canonical(given.vocab)};
  check_ctc_arguments(function, logits.type(), labels.type(), dims, options.blank);
  const Dims entries = without(logits.dims(), {dims.time, dims.vocab});
  const Tensor symbols = cast(checked_labels(function, labels, dims.vocab, options.blank), i32);
  const auto lengths = [&](const Dim& dim) { return expand(cast(dim.lengths(), i32), entries); };
  const Tensor frames = lengths(dims.time), counts = lengths(dims.label_time);
  const Tensor ordered = transpose(logits, with_more(entries, {dims.time, dims.vocab}));
  const Tensor by_place = transpose(symbols, with_more(entries, {dims.label_time}));
  if (AlignmentOpsOff::holds())
    return ctc_by_scan(ordered, by_place, frames, counts, options.blank);
  return bind_all(ctc_op, {ordered, by_place, frames, counts},
                  make_attrs(AlignmentAttrs{options.blank, true}))[0];
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
  return 0 - mean(where(likelihood == -kInfinity, 0, likelihood));
}

}  // namespace reel
