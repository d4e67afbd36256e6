// tests/frontend/losses/ctc_entries.h — a batch for tests of CTC, and all alignments of an entry.
#pragma once

#include <cmath>
#include <limits>
#include <vector>

#include "reel/frontend/losses/ctc_loss.h"
#include "reel/tests/modes.h"

namespace reel {

/// Returns the labels of an alignment: repetitions count once, blanks are left out.
inline std::vector<int> collapsed(const std::vector<int>& alignment, int blank) {
  std::vector<int> labels;
  int last = blank;
  for (const int symbol : alignment) {
    if (symbol != last && symbol != blank) labels.push_back(symbol);
    last = symbol;
  }
  return labels;
}

/// Calls visit(alignment, probability) for each alignment that spells the labels. frames: logits.
template <class Visit>
void visit_alignments(const std::vector<std::vector<double>>& frames,
                      const std::vector<int>& labels, int vocab, int blank, const Visit& visit) {
  std::vector<int> alignment(frames.size(), 0);
  for (;;) {
    if (collapsed(alignment, blank) == labels) {
      double p = 1;
      for (std::size_t t = 0; t < frames.size(); ++t) {
        double sum = 0;
        for (const double logit : frames[t]) sum += std::exp(logit);
        p *= std::exp(frames[t][static_cast<std::size_t>(alignment[t])]) / sum;
      }
      visit(alignment, p);
    }
    std::size_t t = 0;
    while (t < frames.size() && ++alignment[t] == vocab) alignment[t++] = 0;
    if (t == frames.size()) return;
  }
}

/// Six entries. The fourth has too few frames for its repeated label, the fifth has no labels, and
/// the sixth has neither frames nor labels.
class CtcEntries : public InEveryMode {
 protected:
  const std::vector<std::vector<int>> spelt{{1, 2}, {2, 2, 1}, {1}, {1, 1}, {}, {}};
  const std::vector<int> frame_counts{4, 5, 1, 2, 3, 0};
  static constexpr int kVocab = 3, kFrames = 5, kLabels = 3, kEntries = 6;
  const Dim batch{"batch", kEntries}, vocab{"vocab", kVocab};
  const Dim time{"time", tensor(frame_counts, {batch})};
  const Dim spelling{"spelling", tensor({2, 3, 1, 2, 0, 0}, {batch})};
  const CtcDims dims{time, spelling, vocab};
  Tensor logits;

  void SetUp() override {
    manual_seed(9);
    logits = random_normal({batch, time, vocab}, f64) * 2;
  }
  /// Returns the labels, counted from 1 and shifted if the blank is last. Padding holds `garbage`.
  Tensor labels(int blank, int garbage = 1000) const {
    std::vector<int> all;
    for (const auto& entry : spelt)
      for (std::size_t i = 0; i < kLabels; ++i)
        all.push_back(i < entry.size() ? moved(entry[i], blank) : garbage);
    return tensor(all, {batch, spelling});
  }
  static int moved(int label, int blank) { return blank == 0 ? label : label - 1; }
  Tensor dirty() const {
    return where(mask(time), logits, scalar(std::numeric_limits<double>::quiet_NaN(), f64));
  }
  /// Returns the logits with `value` for one symbol at the second frame of the first entry.
  Tensor spoilt(double value) const {
    const Tensor is_there = expand(range(batch) == 0, {batch, time, vocab}) &&
                            expand(range(time) == 1, {batch, time, vocab}) &&
                            expand(range(vocab) == 2, {batch, time, vocab});
    return where(is_there, scalar(value, f64), dirty());
  }
  /// Returns the logits with -infinity for all symbols at the second frame of the first entry.
  Tensor without_a_frame() const {
    const Tensor is_there = expand(range(batch) == 0, {batch, time, vocab}) &&
                            expand(range(time) == 1, {batch, time, vocab});
    return where(is_there, scalar(-std::numeric_limits<double>::infinity(), f64), dirty());
  }
  /// Returns the logits of an entry's frames, without padding.
  std::vector<std::vector<double>> frames_of(int entry) const {
    std::vector<std::vector<double>> frames;
    for (int t = 0; t < frame_counts[entry]; ++t) {
      const double* frame = logits.data<double>() + (entry * kFrames + t) * kVocab;
      frames.emplace_back(frame, frame + kVocab);
    }
    return frames;
  }
  std::vector<int> labels_of(int entry, int blank) const {
    std::vector<int> labels;
    for (const int label : spelt[entry]) labels.push_back(moved(label, blank));
    return labels;
  }
};

}  // namespace reel
