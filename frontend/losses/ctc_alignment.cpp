#include "reel/frontend/losses/ctc_alignment.h"

#include <limits>
#include <utility>

#include "reel/core/ops.h"
#include "reel/frontend/loops/scan.h"
#include "reel/frontend/losses/ctc_lattice.h"
#include "reel/frontend/tree/dim_lists.h"

namespace reel {
namespace {

/// Predecessors, as the best alignments have them.
constexpr int kItself = 0, kOtherKind = 1, kSkipping = 2;

/// The best predecessor of each state: of a label itself, the blank before it, or the label before
/// it; of a blank itself or the label before it.
struct BackReferences {
  Tensor label, blank;  // i32, over entries and label_time
  auto members() { return std::tie(label, blank); }
};

/// A state of the alignment that is read back.
struct Place {
  Tensor place;      // i32, over entries: of the label, or of the label before a blank; -1: none
  Tensor is_blank;   // over entries
  Tensor durations;  // so far, i32, over entries and label_time
  auto members() { return std::tie(place, is_blank, durations); }
};

/// The symbol and label of an alignment at a frame.
struct Frame {
  Tensor symbol, place;  // i32, over entries
  auto members() { return std::tie(symbol, place); }
};

std::pair<BackReferences, CtcScores> step(const CtcLattice& lattice, const Tensor& log_p,
                                          const CtcScores& at) {
  const CtcArcs arcs = lattice.arcs(log_p, at);
  const Tensor best = maximum(maximum(at.label, arcs.from_blank), arcs.skipping);
  const Tensor itself = scalar(kItself, i32);
  const BackReferences from = {
      where(at.label >= best, itself,
            where(arcs.from_blank >= best, scalar(kOtherKind, i32), kSkipping)),
      where(at.blank >= at.label, itself, kOtherKind)};
  return {
      from,
      {best + arcs.p_label, maximum(at.blank, at.label) + arcs.p_blank, at.start + arcs.p_blank}};
}

}  // namespace

CtcAlignment ctc_alignment(const Tensor& logits, const Tensor& labels, const CtcDims& dims,
                           const CtcOptions& options) {
  const CtcLattice lattice("ctc_alignment", logits, labels, dims, options.blank);
  const auto forward = [&](const Tensor& log_p, const CtcScores& at) {
    return step(lattice, log_p, at);
  };
  const auto found = scan(Scan{.spatial_dim = dims.time,
                               .initial = lattice.none(),
                               .xs = lattice.log_p(),
                               .body = forward,
                               .name = "ctc_alignment"});
  const CtcScores& scores = found.state;
  const Tensor has_no_labels = expand(dims.label_time.lengths() == 0, lattice.entries());
  const Tensor at_label = lattice.at_last(scores.label), at_blank = lattice.at_last(scores.blank);
  const Tensor total = where(has_no_labels, scores.start, maximum(at_label, at_blank));
  const Tensor is_possible = total > kNeverBound;  // false if NaN

  const Dims with_labels = with_more(lattice.entries(), {dims.label_time});
  const Tensor all_places = expand(range(dims.label_time), with_labels);
  // A sum, since an index into no labels would be an error.
  const auto at_place = [&](const Tensor& x, const Tensor& place) {
    return sum(where(all_places == place, x, 0), dims.label_time);
  };
  const Tensor symbols = cast(lattice.labels(), i32);
  const Tensor blank = options.blank < 0 ? cast(dims.vocab.lengths(), i32) + options.blank
                                         : scalar(options.blank, i32);
  const auto backward = [&](const BackReferences& from, const Place& at) {
    const Tensor label_place = where(at.is_blank || !is_possible, -1, at.place);
    const Tensor is_label = label_place >= 0;
    const Frame frame = {where(is_label, at_place(symbols, label_place), blank), label_place};
    const Tensor before =
        where(at.is_blank, at_place(from.blank, at.place), at_place(from.label, at.place));
    const Tensor has_moved = !at.is_blank && before != kItself;
    return std::pair{frame, Place{where(has_moved, at.place - 1, at.place),
                                  where(at.is_blank, before == kItself, before == kOtherKind),
                                  at.durations + cast(all_places == label_place, i32)}};
  };
  const auto path = scan(
      Scan{.spatial_dim = dims.time,
           .initial = Place{expand(cast(dims.label_time.lengths(), i32) - 1, lattice.entries()),
                            has_no_labels || at_blank > at_label, zeros(with_labels, i32)},
           .xs = found.ys,
           .body = backward,
           .reverse = true,
           .name = "ctc_alignment"});
  const Dims frames = without(logits.dims(), {dims.vocab});
  return {transpose(path.ys.symbol, frames), transpose(path.ys.place, frames), path.state.durations,
          where(total < kNeverBound, -std::numeric_limits<double>::infinity(), total)};
}

}  // namespace reel
