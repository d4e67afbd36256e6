#include <limits>
#include <tuple>
#include <utility>

#include "reel/core/ops.h"
#include "reel/frontend/loops/scan.h"
#include "reel/frontend/losses/alignment_scans.h"
#include "reel/frontend/losses/ctc_lattice.h"

namespace reel {
namespace {

/// Operands of a frame: log-probabilities, and whether the entry has the frame.
struct CtcFrame {
  Tensor log_p, is_there;
  auto members() { return std::tie(log_p, is_there); }
};

/// Advances by one frame.
CtcScores step(const CtcLattice& lattice, const CtcFrame& frame, const CtcScores& at) {
  const CtcArcs arcs = lattice.arcs(frame.log_p, at);
  const auto if_there = [&](const Tensor& next, const Tensor& before) {
    return where(expand(frame.is_there, before.dims()), next, before);
  };
  return {
      if_there(finite_log_add(at.label, arcs.from_blank, arcs.skipping) + arcs.p_label, at.label),
      if_there(finite_log_add(at.blank, at.label) + arcs.p_blank, at.blank),
      if_there(at.start + arcs.p_blank, at.start)};
}

}  // namespace

Tensor ctc_rows(const Tensor& logits, const Tensor& frames, const Tensor&) {
  const Dims all = logits.dims(), dims(all.begin(), all.end() - 1);
  return expand(range(dims.back()), dims) < expand(frames, dims);
}

Tensor ctc_by_scan(const Tensor& logits, const Tensor& labels, const Tensor& frames,
                   const Tensor& counts, std::int64_t blank) {
  const Dims dims = logits.dims();
  const CtcDims names{dims[dims.size() - 2], labels.dims().back(), dims.back()};
  const Tensor has_frame = ctc_rows(logits, frames, counts);
  const Tensor place = expand(range(names.label_time), labels.dims());
  const CtcLattice lattice(where(expand(has_frame, dims), logits, 0),
                           where(place < expand(counts, labels.dims()), labels, 0), names, counts,
                           blank);
  const auto body = [&](const CtcFrame& frame, const CtcScores& at) {
    return std::pair{None{}, step(lattice, frame, at)};
  };
  const CtcScores last = scan(Scan{.spatial_dim = names.time,
                                   .initial = lattice.none(),
                                   .xs = CtcFrame{lattice.log_p(), has_frame},
                                   .body = body,
                                   .name = "ctc"})
                             .state;
  const Tensor ends = logsumexp(
      where(lattice.is_last(), finite_log_add(last.label, last.blank), kNever), names.label_time);
  const Tensor total = where(counts == 0, last.start, maximum(ends, kNever));
  return where(total < kNeverBound, -std::numeric_limits<double>::infinity(), total);
}

}  // namespace reel
