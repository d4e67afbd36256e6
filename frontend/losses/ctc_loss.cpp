#include "reel/frontend/losses/ctc_loss.h"

#include <limits>
#include <string>
#include <tuple>

#include "reel/core/base/errors.h"
#include "reel/core/base/str.h"
#include "reel/core/dims/same_name.h"
#include "reel/core/ops.h"
#include "reel/core/ops/indexing/labels.h"
#include "reel/frontend/loops/scan.h"

namespace reel {
namespace {

// A finite stand-in for log 0: differences with it are finite, so values and gradients of any order
// need no special cases. No sum of real log-probabilities comes near kNeverBound, and sums with
// kNever stay below it.
constexpr double kNever = -1e30, kNeverBound = -1e29;

bool same_dims(const Dims& a, const Dims& b) {
  if (a.size() != b.size()) return false;
  for (const Dim& dim : a)
    if (!contains(b, dim)) return false;
  return true;
}

Dims without(const Dims& dims, const Dim& one, const Dim& other) {
  Dims result;
  for (const Dim& dim : dims)
    if (!(dim == one) && !(dim == other)) result.push_back(dim);
  return result;
}

void check_arguments(const std::string& function, const TensorType& logits,
                     const TensorType& labels, const CtcDims& dims, std::int64_t blank) {
  if (!is_float(logits.dtype()))
    throw DTypeError(str(function, ": logits must be f32 or f64, got ", logits, "; cast them"));
  if (!is_integer(labels.dtype()))
    throw DTypeError(
        str(function, ": labels must be i32 or i64, positions along vocab, got ", labels));
  const bool fits = contains(logits.dims(), dims.time) && contains(logits.dims(), dims.vocab) &&
                    contains(labels.dims(), dims.label_time) && labels.is_named() &&
                    !contains(logits.dims(), dims.label_time) &&
                    same_dims(without(logits.dims(), dims.time, dims.vocab),
                              without(labels.dims(), dims.label_time, dims.label_time));
  if (!fits)
    throw ShapeError(str(function, ": logits must have named dims [..., ", dims.time, ',',
                         dims.vocab, "], and labels the same but with ", dims.label_time,
                         " in the place of these two: logits ", logits, ", labels ", labels,
                         one_dim_hint(logits.dims(), labels.dims())));
  if (dims.vocab.has_size() && (blank < -dims.vocab.size() || blank >= dims.vocab.size()))
    throw ArgumentError(
        str(function, ": blank must be a position along ", dims.vocab, ", got ", blank));
}

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

/// Log-probabilities of all alignments of the frames so far, by their last symbol: label s, the
/// blank after label s, or the blank before the first label.
struct Alignments {
  Tensor label, blank;  // over entries and label_time
  Tensor start;         // over entries
  auto members() { return std::tie(label, blank, start); }
};

/// The labels, and the masks that the recursion reads at every frame.
class Labels {
 public:
  Labels(const std::string& function, const Tensor& labels, const CtcDims& dims, std::int64_t blank)
      : dims_(dims),
        labels_(checked_labels(function, labels, dims.vocab, blank)),
        blank_(scalar(blank, labels.dtype())) {
    const Tensor place = range(dims.label_time);
    is_first_ = place == 0;
    before_ = maximum(place - 1, 0);
    is_last_ = expand(place, labels.dims()) == dims.label_time.lengths() - 1;
    is_repeated_ = labels_ == gather(labels_, before_, dims.label_time);
  }

  Alignments none(const Dims& entries, DType dtype) const {
    Dims all = entries;
    all.push_back(dims_.label_time);
    const Tensor never = full(all, kNever, dtype);
    return {never, never, zeros(entries, dtype)};
  }

  /// Advances by one frame. A label follows itself, the blank before it, or the label before it if
  /// that is different; a blank follows itself or its label.
  Alignments step(const Tensor& log_p, const Alignments& at) const {
    const Tensor p_blank = gather(log_p, blank_, dims_.vocab);
    const Tensor p_label = gather(log_p, labels_, dims_.vocab);
    const Tensor skipping = where(is_first_ || is_repeated_, kNever, before(at.label));
    const Tensor from_blank = where(is_first_, at.start, before(at.blank));
    return {log_add(at.label, from_blank, skipping) + p_label,
            log_add(at.blank, at.label) + p_blank, at.start + p_blank};
  }

  /// Returns the log-probability of complete alignments: ending in the last label or the blank
  /// after it.
  Tensor complete(const Alignments& at) const {
    const Tensor ends =
        logsumexp(where(is_last_, log_add(at.label, at.blank), kNever), dims_.label_time);
    return where(dims_.label_time.lengths() == 0, at.start, maximum(ends, kNever));
  }

 private:
  Tensor before(const Tensor& x) const { return gather(x, before_, dims_.label_time); }

  CtcDims dims_;
  Tensor labels_, blank_, before_;
  Tensor is_first_, is_last_, is_repeated_;
};

/// function: the public function, for errors.
Tensor log_likelihood(const std::string& function, const Tensor& logits, const Tensor& given_labels,
                      const CtcDims& dims, const CtcOptions& options) {
  check_arguments(function, logits.type(), given_labels.type(), dims, options.blank);
  const Labels labels(function, given_labels, dims, options.blank);
  // NaN in padding would spread to its gradient through softmax; mask_padding removes it.
  const Tensor log_p = maximum(log_softmax(mask_padding(logits), dims.vocab), kNever);
  const Dims entries = without(logits.dims(), dims.time, dims.vocab);
  const auto body = [&](const Tensor& log_p, const Alignments& at) {
    return std::pair{None{}, labels.step(log_p, at)};
  };
  const Scan<Alignments, Tensor, None, None, decltype(body)> frames{
      .spatial_dim = dims.time,
      .initial = labels.none(entries, logits.dtype()),
      .xs = log_p,
      .body = body,
      .name = function,
  };
  const Tensor total = labels.complete(scan(frames).state);
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
