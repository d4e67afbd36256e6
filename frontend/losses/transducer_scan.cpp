#include <limits>
#include <tuple>
#include <utility>

#include "reel/core/ops.h"
#include "reel/frontend/loops/scan.h"
#include "reel/frontend/losses/alignment_scans.h"
#include "reel/frontend/losses/ctc_lattice.h"

namespace reel {
namespace {

/// Operands of a frame: log-probabilities by prefix, and whether the entry has the frame.
struct TransducerFrame {
  Tensor blank, label, is_there;
  auto members() { return std::tie(blank, label, is_there); }
};
/// Operands of a prefix: the paths that arrive by a blank, and the label's log p.
struct TransducerPrefix {
  Tensor arrival, label;
  auto members() { return std::tie(arrival, label); }
};

}  // namespace

Tensor transducer_rows(const Tensor& logits, const Tensor& frames, const Tensor& counts) {
  const Dims all = logits.dims(), dims(all.begin(), all.end() - 1);
  return expand(range(dims[dims.size() - 2]), dims) < expand(frames, dims) &&
         expand(range(dims.back()), dims) <= expand(counts, dims);
}

Tensor transducer_by_scan(const Tensor& logits, const Tensor& labels, const Tensor& frames,
                          const Tensor& counts, std::int64_t blank) {
  const Dims dims = logits.dims();
  const Dim vocab = dims[dims.size() - 1], prefix = dims[dims.size() - 2],
            time = dims[dims.size() - 3];
  const Dims entries(dims.begin(), dims.end() - 3);
  Dims with_prefix = entries, with_time = entries;
  with_prefix.push_back(prefix);
  with_time.push_back(time);
  const Tensor place = expand(range(prefix), with_prefix);
  const Tensor has_frame = expand(range(time), with_time) < expand(frames, with_time);
  const Tensor rows = expand(transducer_rows(logits, frames, counts), dims);
  const Tensor log_p = maximum(log_softmax(where(rows, logits, 0), vocab), kNever);
  const Tensor symbols = where(place < expand(counts, with_prefix), labels, 0);
  const TransducerFrame all = {gather(log_p, scalar(blank, labels.dtype()), vocab),
                               gather(log_p, symbols, vocab), has_frame};
  const Tensor never = full(entries, kNever, logits.dtype());
  const auto over_prefix = [&](const TransducerPrefix& at, const Tensor& by_label) {
    const Tensor sum = finite_log_add(at.arrival, by_label);
    return std::pair{sum, sum + at.label};
  };
  const auto over_time = [&](const TransducerFrame& at, const Tensor& arrivals) {
    const Tensor sums = scan(Scan{.spatial_dim = prefix,
                                  .initial = never,
                                  .xs = TransducerPrefix{arrivals, at.label},
                                  .body = over_prefix,
                                  .name = "transducer"})
                            .ys;
    return std::pair{None{},
                     where(expand(at.is_there, arrivals.dims()), sums + at.blank, arrivals)};
  };
  const Tensor last = scan(Scan{.spatial_dim = time,
                                .initial = where(place == 0, scalar(0., logits.dtype()),
                                                 full(with_prefix, kNever, logits.dtype())),
                                .xs = all,
                                .body = over_time,
                                .name = "transducer"})
                          .state;
  const Tensor total = sum(where(place == expand(counts, with_prefix), last, 0), prefix);
  return where(total < kNeverBound, -std::numeric_limits<double>::infinity(), total);
}

}  // namespace reel
