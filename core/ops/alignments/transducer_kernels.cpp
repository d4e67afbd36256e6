// The sum over the alignments of a transducer, and its gradient, entry by entry.
//
// A state (t, s) is a frame and the number of labels emitted before. A blank leads to (t + 1, s),
// label s to (t, s + 1). Forward sums α hold the paths to a state, backward sums β the paths from
// it to the end, which is the blank of the last frame behind all labels.
#include <algorithm>
#include <cmath>
#include <vector>

#include "reel/core/ops/alignments/alignments.h"
#include "reel/core/ops/alignments/symbol_rows.h"
#include "reel/core/ops/kernels/parallel_ranges.h"

namespace reel {
namespace {

/// The work of an element of logits, and of a state, in the unit of parallel_ranges().
constexpr std::int64_t kElementWork = 4, kStateWork = 160;

/// Log-probabilities of the arcs of one entry, by state.
struct TransducerArcs {
  std::int64_t frames = 0, states = 0;
  std::vector<double> blank, label;

  std::int64_t at(std::int64_t t, std::int64_t s) const { return t * states + s; }
};

/// normalisers: of the entry's rows; read if `given`, else written.
template <class T>
void read_arcs(const AlignmentSizes& sizes, const AlignmentEntry& entry, const T* logits,
               double* normalisers, bool given, TransducerArcs& arcs) {
  arcs.frames = entry.frames;
  arcs.states = entry.count + 1;
  const auto size = static_cast<std::size_t>(arcs.frames * arcs.states);
  arcs.blank.resize(size);
  arcs.label.resize(size);
  for (std::int64_t t = 0; t < arcs.frames; ++t) {
    const std::int64_t row = t * sizes.prefixes;
    if (!given)
      write_normalisers(logits + row * sizes.vocab, arcs.states, sizes.vocab, normalisers + row);
    for (std::int64_t s = 0; s < arcs.states; ++s) {
      const T* const x = logits + (row + s) * sizes.vocab;
      const double normaliser = normalisers[row + s];
      const auto at = static_cast<std::size_t>(arcs.at(t, s));
      arcs.blank[at] = log_share(x, sizes.vocab, normaliser, sizes.blank);
      arcs.label[at] =
          s == entry.count ? kNoPath : log_share(x, sizes.vocab, normaliser, entry.labels[s]);
    }
  }
}

/// Returns log p of all labels. Writes α, by state, unless `alpha` is null.
double forward_sums(const TransducerArcs& arcs, double* alpha, std::vector<double>& arrivals) {
  arrivals.assign(static_cast<std::size_t>(arcs.states), kNoPath);
  arrivals[0] = 0;
  for (std::int64_t t = 0; t < arcs.frames; ++t) {
    const double* const blank = arcs.blank.data() + arcs.at(t, 0);
    const double* const label = arcs.label.data() + arcs.at(t, 0);
    double by_label = kNoPath;
    for (std::int64_t s = 0; s < arcs.states; ++s) {
      double& arrival = arrivals[static_cast<std::size_t>(s)];
      const double sum = log_add(arrival, by_label);
      if (alpha) alpha[arcs.at(t, s)] = sum;
      by_label = sum + label[s];
      arrival = sum + blank[s];
    }
  }
  return arrivals.back();
}

template <class T>
void clear_row(const AlignmentSizes& sizes, T* to) {
  std::fill_n(to, sizes.vocab, T(0));
}

/// Buffers of one thread.
struct TransducerScratch {
  TransducerArcs arcs;
  SymbolGradients gradients;
  std::vector<double> alpha, next;
};

/// Writes g times the gradient of an entry's log p. Requires arcs and normalisers.
template <class T>
void write_gradient(const AlignmentSizes& sizes, const AlignmentEntry& entry, const T* logits,
                    const double* normalisers, double g, TransducerScratch& scratch, T* to) {
  const TransducerArcs& arcs = scratch.arcs;
  scratch.alpha.resize(arcs.blank.size());
  const double total = forward_sums(arcs, scratch.alpha.data(), scratch.next);
  if (total == kNoPath) {
    std::fill_n(to, sizes.rows() * sizes.vocab, T(0));
    return;
  }
  std::vector<double>& next = scratch.next;  // β of the frame behind
  std::fill(next.begin(), next.end(), kNoPath);
  next.back() = 0;
  for (std::int64_t t = arcs.frames - 1; t >= 0; --t) {
    double after_label = kNoPath;
    for (std::int64_t s = arcs.states - 1; s >= 0; --s) {
      const auto at = static_cast<std::size_t>(arcs.at(t, s));
      double& beta = next[static_cast<std::size_t>(s)];
      const double by_blank = arcs.blank[at] + beta, by_label = arcs.label[at] + after_label;
      const double before = scratch.alpha[at] - total;
      const double blanks = std::exp(before + by_blank), labels = std::exp(before + by_label);
      after_label = beta = log_add(by_blank, by_label);
      const std::int64_t row = t * sizes.prefixes + s;
      T* const out = to + row * sizes.vocab;
      write_shares(logits + row * sizes.vocab, sizes.vocab, normalisers[row],
                   -g * (blanks + labels), out);
      const auto share = [&](std::int64_t i) {
        return i ? SymbolShare{entry.labels[s], std::exp(arcs.label[at]), labels}
                 : SymbolShare{sizes.blank, std::exp(arcs.blank[at]), blanks};
      };
      scratch.gradients.write(sizes.vocab, g, blanks + labels, s < entry.count ? 2 : 1, share, out);
    }
  }
  for (std::int64_t t = 0; t < sizes.time; ++t)
    for (std::int64_t s = t < arcs.frames ? arcs.states : 0; s < sizes.prefixes; ++s)
      clear_row(sizes, to + (t * sizes.prefixes + s) * sizes.vocab);
}

std::int64_t work_of(const AlignmentSizes& sizes) {
  return sizes.entries * sizes.rows() * (sizes.vocab * kElementWork + kStateWork);
}

template <class T>
void run_forward(KernelArgs& args) {
  const AlignmentSizes sizes = alignment_sizes(args, 3);
  const bool keeps = args.attr<AlignmentAttrs>().has_normalisers;
  const T* const logits = args.input(0).data<T>();
  T* const out = args.make(0).data<T>();
  double* const kept = keeps ? args.make(1).data<double>() : nullptr;
  parallel_ranges(sizes.entries, work_of(sizes), [&](std::int64_t first, std::int64_t count) {
    TransducerScratch scratch;
    std::vector<double> own(static_cast<std::size_t>(keeps ? 0 : sizes.rows()));
    for (std::int64_t e = first; e < first + count; ++e) {
      const AlignmentEntry entry = alignment_entry(args, sizes, e, sizes.prefixes - 1);
      double* const normalisers = keeps ? kept + e * sizes.rows() : own.data();
      if (keeps) std::fill_n(normalisers, sizes.rows(), 0.);
      out[e] = static_cast<T>(kNoPath);
      if (!entry.fits || !has_valid_symbols(sizes, entry)) continue;
      read_arcs(sizes, entry, logits + e * sizes.rows() * sizes.vocab, normalisers, false,
                scratch.arcs);
      out[e] = static_cast<T>(forward_sums(scratch.arcs, nullptr, scratch.next));
    }
  });
}

template <class T>
void run_gradient(KernelArgs& args) {
  const AlignmentSizes sizes = alignment_sizes(args, 3);
  const bool given = args.attr<AlignmentAttrs>().has_normalisers;
  const T* const logits = args.input(0).data<T>();
  const T* const g = args.input(4).data<T>();
  T* const out = args.make(0).data<T>();
  const std::int64_t block = sizes.rows() * sizes.vocab;
  parallel_ranges(sizes.entries, 2 * work_of(sizes), [&](std::int64_t first, std::int64_t count) {
    TransducerScratch scratch;
    std::vector<double> normalisers(static_cast<std::size_t>(sizes.rows()));
    for (std::int64_t e = first; e < first + count; ++e) {
      const AlignmentEntry entry = alignment_entry(args, sizes, e, sizes.prefixes - 1);
      if (!entry.fits || !has_valid_symbols(sizes, entry) || g[e] == T(0)) {
        std::fill_n(out + e * block, block, T(0));
        continue;
      }
      if (given)
        std::copy_n(args.input(5).data<double>() + e * sizes.rows(), sizes.rows(),
                    normalisers.data());
      read_arcs(sizes, entry, logits + e * block, normalisers.data(), given, scratch.arcs);
      write_gradient(sizes, entry, logits + e * block, normalisers.data(),
                     static_cast<double>(g[e]), scratch, out + e * block);
    }
  });
}

}  // namespace

void transducer_kernel(KernelArgs& args) {
  if (args.input(0).dtype() == f64)
    run_forward<double>(args);
  else
    run_forward<float>(args);
}

void transducer_grad_kernel(KernelArgs& args) {
  if (args.input(0).dtype() == f64)
    run_gradient<double>(args);
  else
    run_gradient<float>(args);
}

}  // namespace reel
