// The sum over the alignments of CTC, and its gradient, entry by entry: by ScaledCtc, and in log
// space if that loses paths.
//
// State 2s is the blank before label s, state 2s + 1 is label s, and the last state is the blank
// behind all labels. A forward sum α holds the paths that end in a state at a frame, with its
// symbol. A backward sum β holds the paths from there to the end, without that symbol.
#include <algorithm>
#include <cmath>
#include <vector>

#include "reel/core/ops/alignments/alignments.h"
#include "reel/core/ops/alignments/ctc_scaled.h"
#include "reel/core/ops/alignments/symbol_rows.h"
#include "reel/core/ops/kernels/parallel_ranges.h"

namespace reel {
namespace {

/// The work of an element of logits, and of a state of a frame, in the unit of parallel_ranges().
constexpr std::int64_t kCtcElementWork = 4, kCtcStateWork = 12;

double log_add_three(double a, double b, double c) { return log_add(log_add(a, b), c); }

/// The states of one entry, and buffers of one thread.
struct CtcPaths {
  std::int64_t frames = 0, states = 0;
  std::vector<std::int64_t> symbols;  ///< by state
  std::vector<char> skips;            ///< true for a label that may follow the one before it
  std::vector<double> log_p;          ///< by frame and state
  std::vector<double> alpha;          ///< by frame and state, or of one frame
  std::vector<double> row;

  const double* log_p_of(std::int64_t t) const { return log_p.data() + t * states; }
};

/// normalisers: by frame.
template <class T>
void read_paths(const AlignmentSizes& sizes, const AlignmentEntry& entry, const T* logits,
                const double* normalisers, CtcPaths& paths) {
  paths.frames = entry.frames;
  paths.states = 2 * entry.count + 1;
  const auto states = static_cast<std::size_t>(paths.states);
  paths.symbols.assign(states, sizes.blank);
  paths.skips.assign(states, false);
  for (std::int64_t s = 0; s < entry.count; ++s) {
    const auto at = static_cast<std::size_t>(2 * s + 1);
    paths.symbols[at] = entry.labels[s];
    paths.skips[at] = s > 0 && entry.labels[s] != entry.labels[s - 1];
  }
  paths.log_p.resize(static_cast<std::size_t>(paths.frames) * states);
  for (std::int64_t t = 0; t < paths.frames; ++t)
    for (std::size_t i = 0; i < states; ++i)
      paths.log_p[static_cast<std::size_t>(t) * states + i] =
          log_share(logits + t * sizes.vocab, sizes.vocab, normalisers[t], paths.symbols[i]);
}

/// Returns log p of all labels. Writes α of frame t to alpha + t · step.
double ctc_forward_sums(const CtcPaths& paths, double* alpha, std::int64_t step) {
  const std::int64_t states = paths.states;
  if (paths.frames == 0) return states == 1 ? 0 : kNoPath;
  std::fill_n(alpha, states, kNoPath);
  for (std::int64_t i = 0; i < std::min(states, std::int64_t{2}); ++i)
    alpha[i] = paths.log_p_of(0)[i];
  for (std::int64_t t = 1; t < paths.frames; ++t) {
    const double* const before = alpha;
    alpha += step;
    const double* const log_p = paths.log_p_of(t);
    // Downwards, since `before` may be the same row.
    for (std::int64_t i = states - 1; i >= 2; --i)
      alpha[i] = (paths.skips[static_cast<std::size_t>(i)]
                      ? log_add_three(before[i], before[i - 1], before[i - 2])
                      : log_add(before[i], before[i - 1])) +
                 log_p[i];
    if (states > 1) alpha[1] = log_add(before[1], before[0]) + log_p[1];
    alpha[0] = before[0] + log_p[0];
  }
  return states == 1 ? alpha[0] : log_add(alpha[states - 1], alpha[states - 2]);
}

/// Replaces β of a frame by β of the frame before it. arrivals: β + log p of this frame.
void step_back(const CtcPaths& paths, const std::vector<double>& arrivals, double* beta) {
  for (std::int64_t i = 0; i < paths.states; ++i) {
    const auto at = static_cast<std::size_t>(i);
    double sum = arrivals[at];
    if (i + 1 < paths.states) sum = log_add(sum, arrivals[at + 1]);
    if (i + 2 < paths.states && paths.skips[at + 2]) sum = log_add(sum, arrivals[at + 2]);
    beta[i] = sum;
  }
}

/// Writes g times the gradient of an entry's log p. Requires paths and normalisers.
template <class T>
void write_log_gradient(const AlignmentSizes& sizes, const T* logits, const double* normalisers,
                        double g, CtcPaths& paths, SymbolGradients& gradients, T* to) {
  const auto states = static_cast<std::size_t>(paths.states);
  paths.alpha.resize(std::max<std::size_t>(paths.log_p.size(), 1));
  const double total = ctc_forward_sums(paths, paths.alpha.data(), paths.states);
  if (total == kNoPath) {
    std::fill_n(to, sizes.time * sizes.vocab, T(0));
    return;
  }
  std::fill_n(to + paths.frames * sizes.vocab, (sizes.time - paths.frames) * sizes.vocab, T(0));
  std::vector<double> beta(states, kNoPath);
  beta[states - 1] = 0;
  if (states > 1) beta[states - 2] = 0;
  for (std::int64_t t = paths.frames - 1; t >= 0; --t) {
    T* const out = to + t * sizes.vocab;
    const double* const alpha = paths.alpha.data() + t * paths.states;
    paths.row.resize(states);
    double all = 0;
    for (std::size_t i = 0; i < states; ++i)
      all += paths.row[i] = std::exp(alpha[i] + beta[i] - total);
    write_shares(logits + t * sizes.vocab, sizes.vocab, normalisers[t], -g * all, out);
    const double* const log_p = paths.log_p_of(t);
    const auto at = [&](std::int64_t i) {
      const auto state = static_cast<std::size_t>(i);
      return SymbolShare{paths.symbols[state], std::exp(log_p[state]), paths.row[state]};
    };
    gradients.write(sizes.vocab, g, all, paths.states, at, out);
    for (std::size_t i = 0; i < states; ++i) paths.row[i] = beta[i] + paths.log_p_of(t)[i];
    step_back(paths, paths.row, beta.data());
  }
}

std::int64_t ctc_work(const AlignmentSizes& sizes) {
  return sizes.entries * sizes.time *
         (sizes.vocab * kCtcElementWork + 2 * sizes.labels * kCtcStateWork);
}

/// Returns true if all symbols are in range, and the frames suffice for the labels and a blank
/// between equal ones.
bool has_alignment(const AlignmentSizes& sizes, const AlignmentEntry& entry) {
  if (!entry.fits || !has_valid_symbols(sizes, entry)) return false;
  std::int64_t needed = entry.count;
  for (std::int64_t s = 1; s < entry.count; ++s) needed += entry.labels[s] == entry.labels[s - 1];
  return needed <= entry.frames;
}

/// Buffers of one thread.
struct CtcScratch {
  ScaledCtc scaled;
  CtcPaths paths;
  SymbolGradients gradients;
  std::vector<double> shares;
};

template <class T>
double log_p_of(const AlignmentSizes& sizes, const AlignmentEntry& entry, const T* logits,
                const double* normalisers, CtcScratch& scratch) {
  if (scratch.scaled.run(sizes, entry, logits, normalisers)) return scratch.scaled.log_p();
  CtcPaths& paths = scratch.paths;
  read_paths(sizes, entry, logits, normalisers, paths);
  paths.alpha.resize(static_cast<std::size_t>(paths.states));
  return ctc_forward_sums(paths, paths.alpha.data(), 0);
}

template <class T>
void write_gradient_of(const AlignmentSizes& sizes, const AlignmentEntry& entry, const T* logits,
                       const double* normalisers, double g, CtcScratch& scratch, T* to) {
  if (!scratch.scaled.run(sizes, entry, logits, normalisers)) {
    read_paths(sizes, entry, logits, normalisers, scratch.paths);
    write_log_gradient(sizes, logits, normalisers, g, scratch.paths, scratch.gradients, to);
    return;
  }
  std::vector<double>& shares = scratch.shares;
  shares.resize(static_cast<std::size_t>(entry.count + 1));
  for (std::int64_t t = 0; t < entry.frames; ++t) {
    T* const out = to + t * sizes.vocab;
    scratch.scaled.shares(t, shares.data());
    write_shares(logits + t * sizes.vocab, sizes.vocab, normalisers[t], -g, out);
    // Their sum is 1 up to rounding, which would hide small differences from p.
    double all = 0;
    for (const double share : shares) all += share;
    const double* const p = scratch.scaled.probabilities(t);
    const auto at = [&](std::int64_t s) {
      return SymbolShare{s < entry.count ? entry.labels[s] : sizes.blank, p[s],
                         shares[static_cast<std::size_t>(s)]};
    };
    scratch.gradients.write(sizes.vocab, g, all, entry.count + 1, at, out);
  }
  std::fill_n(to + entry.frames * sizes.vocab, (sizes.time - entry.frames) * sizes.vocab, T(0));
}

template <class T>
void run_ctc(KernelArgs& args) {
  const AlignmentSizes sizes = alignment_sizes(args, 2);
  const bool keeps = args.attr<AlignmentAttrs>().has_normalisers;
  const T* const logits = args.input(0).data<T>();
  T* const out = args.make(0).data<T>();
  double* const kept = keeps ? args.make(1).data<double>() : nullptr;
  parallel_ranges(sizes.entries, ctc_work(sizes), [&](std::int64_t first, std::int64_t count) {
    CtcScratch scratch;
    std::vector<double> own(static_cast<std::size_t>(keeps ? 0 : sizes.time));
    for (std::int64_t e = first; e < first + count; ++e) {
      const AlignmentEntry entry = alignment_entry(args, sizes, e, sizes.labels);
      const T* const of_entry = logits + e * sizes.time * sizes.vocab;
      double* const normalisers = keeps ? kept + e * sizes.time : own.data();
      if (keeps) std::fill_n(normalisers, sizes.time, 0.);
      write_normalisers(of_entry, entry.frames, sizes.vocab, normalisers);
      out[e] = static_cast<T>(has_alignment(sizes, entry)
                                  ? log_p_of(sizes, entry, of_entry, normalisers, scratch)
                                  : kNoPath);
    }
  });
}

template <class T>
void run_ctc_gradient(KernelArgs& args) {
  const AlignmentSizes sizes = alignment_sizes(args, 2);
  const bool given = args.attr<AlignmentAttrs>().has_normalisers;
  const T* const logits = args.input(0).data<T>();
  const T* const g = args.input(4).data<T>();
  T* const out = args.make(0).data<T>();
  const std::int64_t block = sizes.time * sizes.vocab;
  parallel_ranges(sizes.entries, 2 * ctc_work(sizes), [&](std::int64_t first, std::int64_t count) {
    CtcScratch scratch;
    std::vector<double> own(static_cast<std::size_t>(given ? 0 : sizes.time));
    for (std::int64_t e = first; e < first + count; ++e) {
      const AlignmentEntry entry = alignment_entry(args, sizes, e, sizes.labels);
      if (!has_alignment(sizes, entry) || g[e] == T(0)) {
        std::fill_n(out + e * block, block, T(0));
        continue;
      }
      const double* normalisers = own.data();
      if (given)
        normalisers = args.input(5).data<double>() + e * sizes.time;
      else
        write_normalisers(logits + e * block, entry.frames, sizes.vocab, own.data());
      write_gradient_of(sizes, entry, logits + e * block, normalisers, static_cast<double>(g[e]),
                        scratch, out + e * block);
    }
  });
}

}  // namespace

void ctc_kernel(KernelArgs& args) {
  if (args.input(0).dtype() == f64)
    run_ctc<double>(args);
  else
    run_ctc<float>(args);
}

void ctc_grad_kernel(KernelArgs& args) {
  if (args.input(0).dtype() == f64)
    run_ctc_gradient<double>(args);
  else
    run_ctc_gradient<float>(args);
}

}  // namespace reel
