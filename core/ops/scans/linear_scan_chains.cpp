#include "reel/core/ops/scans/linear_scan_chains.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "reel/core/ops/kernels/parallel_ranges.h"
#include "reel/core/ops/kernels/quiet_exceptions.h"

namespace reel {
namespace {

/// Number of chains that are walked together. A product and a sum take eight cycles if the next one
/// waits for them, so eight chains hide that.
constexpr std::int64_t kTogether = 8;
constexpr std::int64_t kSegmentSteps = 1024;
/// A chain of fewer steps is not cut: its segments would not be enough to hide the latency.
constexpr std::int64_t kLeastStepsToCut = 4 * kSegmentSteps;
constexpr std::int64_t kWork = 4;  ///< of one step, as parallel_ranges counts work

/// The value of b_k x_k, and the step to the next.
template <class T>
T term_at(const ScanChain<T>& chain, std::int64_t k) {
  const T b = chain.b.first[k * chain.b.step];
  return chain.x.first ? b * chain.x.first[k * chain.x.step] : b;
}

/// Walks kCount chains together.
template <int kCount, class T>
void walk_together(const ScanChain<T>* chains, std::int64_t steps) {
  T state[kCount];
  for (int c = 0; c < kCount; ++c) state[c] = chains[c].initial;
  for (std::int64_t k = 0; k < steps; ++k) {
#pragma GCC unroll 8
    for (int c = 0; c < kCount; ++c) {
      const ScanChain<T>& chain = chains[c];
      const T kept = chain.a.first[k * chain.a.step] * state[c];
      state[c] = kept + term_at(chain, k);
      chain.h.first[k * chain.h.step] = state[c];
    }
  }
}

template <class T>
void walk(const ScanChain<T>* chains, std::int64_t count, std::int64_t steps) {
  for (; count >= kTogether; count -= kTogether, chains += kTogether)
    walk_together<kTogether>(chains, steps);
  for (; count > 0; --count, ++chains) walk_together<1>(chains, steps);
}

/// A segment of a chain as a function of the state before it: state -> product state + sum.
struct Segment {
  double product = 1, sum = 0;
};

/// Computes `count` segments of `steps` steps together.
template <class T>
void summarise(const ScanChain<T>* chains, std::int64_t count, std::int64_t steps, Segment* to) {
  const QuietExceptions quiet;  // products overflow and vanish where no state does
  Segment segments[kTogether];
  for (std::int64_t k = 0; k < steps; ++k)
    for (std::int64_t c = 0; c < count; ++c) {
      const auto a = static_cast<double>(chains[c].a.first[k * chains[c].a.step]);
      segments[c].product *= a;
      segments[c].sum = a * segments[c].sum + static_cast<double>(term_at(chains[c], k));
    }
  std::copy(segments, segments + count, to);
}

/// Returns the state after a segment; nothing if the summary lost it: an infinite product times 0,
/// or a state times a product that has vanished.
template <class T>
std::optional<T> state_by_summary(const ScanChain<T>& chain, const Segment& segment) {
  constexpr double kLeast = std::numeric_limits<double>::min();
  const QuietExceptions quiet;
  const auto before = static_cast<double>(chain.initial);
  const auto state = static_cast<T>(segment.product * before + segment.sum);
  const bool has_vanished =
      std::abs(segment.product) < kLeast &&
      std::abs(before) * kLeast > std::numeric_limits<double>::epsilon() * std::abs(segment.sum);
  if (!std::isfinite(segment.product) || !std::isfinite(state) || has_vanished) return std::nullopt;
  return state;
}

/// Returns the state after a segment, if need be by walking it.
template <class T>
T state_after(const ScanChain<T>& chain, const Segment& segment, std::int64_t steps) {
  if (const std::optional<T> state = state_by_summary(chain, segment)) return *state;
  T state = chain.initial;
  for (std::int64_t k = 0; k < steps; ++k) {
    const T kept = chain.a.first[k * chain.a.step] * state;
    state = kept + term_at(chain, k);
  }
  return state;
}

template <class T>
void advance(ScanChain<T>& chain, std::int64_t steps) {
  chain.a.first += steps * chain.a.step;
  chain.b.first += steps * chain.b.step;
  chain.x.first += steps * chain.x.step;
  chain.h.first += steps * chain.h.step;
}

/// Walks chains on several threads.
template <class T>
void walk_on_threads(const std::vector<ScanChain<T>>& chains, std::int64_t steps) {
  const auto count = static_cast<std::int64_t>(chains.size());
  parallel_ranges((count + kTogether - 1) / kTogether, count * steps * kWork,
                  [&](std::int64_t first, std::int64_t groups) {
                    const std::int64_t begin = first * kTogether;
                    walk(chains.data() + begin, std::min(count - begin, groups * kTogether), steps);
                  });
}

/// Runs chains in segments: their summaries, then the states between them, then the values.
template <class T>
void run_in_segments(const std::vector<ScanChain<T>>& chains, std::int64_t steps) {
  const std::int64_t whole = steps / kSegmentSteps;  // per chain; the rest is one more segment
  std::vector<ScanChain<T>> segments, rests;
  for (ScanChain<T> chain : chains) {
    for (std::int64_t i = 0; i < whole; ++i, advance(chain, kSegmentSteps))
      segments.push_back(chain);
    rests.push_back(chain);
  }
  const auto count = static_cast<std::int64_t>(segments.size());
  std::vector<Segment> summaries(segments.size());
  parallel_ranges(count, count * kSegmentSteps * kWork, [&](std::int64_t first, std::int64_t size) {
    for (std::int64_t i = first; i < first + size; i += kTogether)
      summarise(segments.data() + i, std::min(kTogether, first + size - i), kSegmentSteps,
                summaries.data() + i);
  });
  for (std::size_t chain = 0, i = 0; chain < chains.size(); ++chain)
    for (std::int64_t k = 0; k < whole; ++k, ++i)
      (k + 1 < whole ? segments[i + 1] : rests[chain]).initial =
          state_after(segments[i], summaries[i], kSegmentSteps);
  walk_on_threads(segments, kSegmentSteps);
  walk_on_threads(rests, steps - whole * kSegmentSteps);
}

}  // namespace

template <class T>
void run_chains(const std::vector<ScanChain<T>>& chains, std::int64_t steps, bool may_cut) {
  if (may_cut && steps >= kLeastStepsToCut)
    run_in_segments(chains, steps);
  else
    walk_on_threads(chains, steps);
}

template void run_chains(const std::vector<ScanChain<float>>&, std::int64_t, bool);
template void run_chains(const std::vector<ScanChain<double>>&, std::int64_t, bool);

}  // namespace reel
