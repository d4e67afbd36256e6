#include "reel/core/ops/alignments/ctc_scaled.h"

#include <algorithm>
#include <cmath>

#include "reel/core/runtime/denormals.h"

namespace reel {
namespace {

/// Numbers below 1e-308 are lost before a row is scaled: numbers of frame t still have the scale
/// of the row that they come from. Each is a share of at most
/// 1e-308 · exp(forward scale of t - 1 + backward scale of t - log p) of all paths. This bound on
/// the exponent makes it less than 1e-47.
constexpr double kMaxExcess = 600;

double sum_of(const double* x, std::int64_t n) {
  double sums[4] = {0, 0, 0, 0};
  std::int64_t i = 0;
  for (; i + 4 <= n; i += 4)
    for (int k = 0; k < 4; ++k) sums[k] += x[i + k];
  for (; i < n; ++i) sums[0] += x[i];
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

/// Scales a row to the sum 1. Returns the logarithm of its sum.
double normalise(double* row, std::int64_t n) {
  const double sum = sum_of(row, n), factor = 1 / sum;
  for (std::int64_t i = 0; i < n; ++i) row[i] *= factor;
  return std::log(sum);
}

/// before, after: rows of forward sums. p: of the labels of the later frame, then of blank.
void step_forward(std::int64_t count, const double* __restrict before, const double* __restrict p,
                  const double* __restrict skips, double* __restrict after) {
  const double* const labels = before + count + 2;
  double* const next = after + count + 2;
  const double blank = p[count];
  for (std::int64_t s = 0; s <= count; ++s) after[s] = (before[s] + labels[s - 1]) * blank;
  next[-1] = 0;
  for (std::int64_t s = 0; s < count; ++s)
    next[s] = (labels[s] + before[s] + skips[s] * labels[s - 1]) * p[s];
}

/// after: the row of backward sums of the later frame. p: of the later frame. arrivals: scratch.
void step_back(std::int64_t count, const double* __restrict after, const double* __restrict p,
               const double* __restrict skips, double* __restrict arrivals,
               double* __restrict before) {
  double* const labels = arrivals + count + 1;
  const double* const after_labels = after + count + 1;
  const double blank = p[count];
  for (std::int64_t s = 0; s <= count; ++s) arrivals[s] = after[s] * blank;
  for (std::int64_t s = 0; s < count; ++s) labels[s] = after_labels[s] * p[s];
  labels[count] = 0;
  double* const before_labels = before + count + 1;
  for (std::int64_t s = 0; s <= count; ++s) before[s] = arrivals[s] + labels[s];
  for (std::int64_t s = 0; s < count; ++s)
    before_labels[s] = labels[s] + arrivals[s + 1] + skips[s + 1] * labels[s + 1];
  before_labels[count] = 0;
}

}  // namespace

void ScaledCtc::forward() {
  row_.assign(static_cast<std::size_t>(width()), 0);
  row_[0] = 1;
  const double* before = row_.data();
  double scale = 0;
  for (std::int64_t t = 0; t < frames_; ++t) {
    double* const row = forward_row(t);
    step_forward(count_, before, p_.data() + t * (count_ + 1), skips_.data(), row);
    scale += normalise(row, width());
    forward_scale_[static_cast<std::size_t>(t)] = scale;
    before = row;
  }
}

void ScaledCtc::backward() {
  double* after = backward_row(frames_ - 1);
  std::fill_n(after, width(), 0);
  after[count_] = 1;
  if (count_ > 0) after[2 * count_] = 1;
  double scale = normalise(after, width());
  backward_scale_.back() = scale;
  for (std::int64_t t = frames_ - 2; t >= 0; --t) {
    double* const row = backward_row(t);
    step_back(count_, after, p_.data() + (t + 1) * (count_ + 1), skips_.data(), arrivals_.data(),
              row);
    scale += normalise(row, width());
    backward_scale_[static_cast<std::size_t>(t)] = scale;
    after = row;
  }
}

template <class T>
bool ScaledCtc::run(const AlignmentSizes& sizes, const AlignmentEntry& entry, const T* logits,
                    const double* normalisers) {
  if (entry.frames == 0) return false;
  const DenormalScope flushing(DenormalMode::flushing());
  frames_ = entry.frames;
  count_ = entry.count;
  const auto frames = static_cast<std::size_t>(frames_), row = static_cast<std::size_t>(width());
  skips_.assign(static_cast<std::size_t>(count_ + 1), 0);
  for (std::int64_t s = 1; s < count_; ++s)
    skips_[static_cast<std::size_t>(s)] = entry.labels[s] != entry.labels[s - 1];
  p_.resize(frames * static_cast<std::size_t>(count_ + 1));
  row_.resize(static_cast<std::size_t>(count_ + 1));
  for (std::int64_t t = 0; t < frames_; ++t) {
    const double normaliser = normalisers[t];
    if (!std::isfinite(normaliser)) return false;
    const T* const x = logits + t * sizes.vocab;
    for (std::int64_t s = 0; s <= count_; ++s)
      row_[static_cast<std::size_t>(s)] = log_share(
          x, sizes.vocab, normaliser, s < count_ ? std::int64_t{entry.labels[s]} : sizes.blank);
    write_shares(row_.data(), count_ + 1, 0., 1, p_.data() + t * (count_ + 1));
  }
  forward_.resize(frames * row);
  backward_.resize(frames * row);
  arrivals_.resize(row);
  forward_scale_.resize(frames);
  backward_scale_.resize(frames);
  forward();
  backward();
  const double* const last = forward_row(frames_ - 1);
  const double end = last[count_] + (count_ > 0 ? last[2 * count_ + 1] : 0);
  log_p_ = forward_scale_.back() + std::log(end);
  double most = kNoPath;
  for (std::size_t t = 0; t < frames; ++t) {
    // NaN, or nothing is left.
    if (!(forward_scale_[t] + backward_scale_[t] > kNoPath)) return false;
    most = std::max(most, (t ? forward_scale_[t - 1] : 0) + backward_scale_[t]);
  }
  return most - log_p_ < kMaxExcess;
}

void ScaledCtc::shares(std::int64_t t, double* shares) const {
  const DenormalScope flushing(DenormalMode::flushing());
  const auto at = static_cast<std::size_t>(t);
  const double* const forward = forward_.data() + t * width();
  const double* const backward = backward_.data() + t * width();
  const double factor = std::exp(forward_scale_[at] + backward_scale_[at] - log_p_);
  double blanks = 0;
  for (std::int64_t s = 0; s <= count_; ++s) blanks += forward[s] * backward[s];
  for (std::int64_t s = 0; s < count_; ++s)
    shares[s] = forward[count_ + 2 + s] * backward[count_ + 1 + s] * factor;
  shares[count_] = blanks * factor;
}

template bool ScaledCtc::run(const AlignmentSizes&, const AlignmentEntry&, const float*,
                             const double*);
template bool ScaledCtc::run(const AlignmentSizes&, const AlignmentEntry&, const double*,
                             const double*);

}  // namespace reel
