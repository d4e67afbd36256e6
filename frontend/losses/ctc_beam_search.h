// frontend/losses/ctc_beam_search.h — ctc_beam_search, the likeliest labels of frames, also with a
// language model.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

#include "reel/core/base/visibility.h"
#include "reel/core/types/dim.h"
#include "reel/core/types/tensor.h"
#include "reel/frontend/tree/tree.h"

REEL_API_BEGIN
namespace reel {

/// The axes of ctc_beam_search, by name.
struct CtcBeamDims {
  Dim time;   ///< the frames; in logits only
  Dim vocab;  ///< labels and blank; in logits only
  Dim beam;   ///< the hypotheses of each entry that are kept; in results only
};

/// Options of ctc_beam_search.
struct CtcBeamOptions {
  std::int64_t blank = 0;   ///< index along vocab; negative ones count from the end
  double scorer_scale = 1;  ///< factor of the scorer's log p
  double label_bonus = 0;   ///< added to the score for each label
};

/// The hypotheses of each entry, the best one first.
struct CtcBeams {
  Tensor labels;           ///< i32 [..., beam, labels]; the dim `labels` is ragged over the others
  Tensor score;            ///< [..., beam], in descending order; -inf for a missing hypothesis
  Tensor log_probability;  ///< [..., beam]: log p of the labels without the scorer, in nats
  auto members() { return std::tie(labels, score, log_probability); }
};

namespace detail {

/// A scorer with a list of tensors as state, each with the dims of hypotheses.
struct CtcScorer {
  Tensors initial;
  std::function<std::pair<Tensor, Tensors>(const Tensors& state, const Tensor& symbol)> score;
};
CtcBeams ctc_beams(const Tensor& logits, const CtcBeamDims& dims, const CtcBeamOptions& options,
                   const std::optional<CtcScorer>& scorer);

}  // namespace detail

/// Returns the labels with the largest sums over alignments, as far as a beam finds them: prefix
/// beam search. Alignments with the same labels are one hypothesis; after each frame the
/// beam.size() best ones are kept.
///
/// logits: floating, [..., time, vocab]; normalised along vocab by this function. All dims are
/// named; time may be ragged or empty. Returns hypotheses over [...] and beam. In an entry with a
/// logit of NaN or +inf, all scores are NaN and all hypotheses without labels. A sum lacks
/// alignments through prefixes that the beam dropped, so log_probability is at most
/// ctc_log_likelihood.
///
/// Runs in eager mode, in traces and under vmap. No gradient. Hypotheses are compared by two hashes
/// of 31 bits. Throws DTypeError, ShapeError or ArgumentError for other arguments.
/// Source: Graves & Jaitly (2014), algorithm 1; Hannun et al. (2014).
CtcBeams ctc_beam_search(const Tensor& logits, const CtcBeamDims& dims,
                         const CtcBeamOptions& options = {});

/// Adds the log-probabilities of a language model to the scores of hypotheses:
/// score = log_probability + scorer_scale · Σ log p + label_bonus · labels.
///
/// scorer: (state, symbol) -> std::pair{log p, state}, as a step of a recurrent model. state: after
/// the labels before `symbol`. symbol: i32 [..., beam], the last label of each hypothesis; blank
/// for a hypothesis without labels. log p: of the next label, [..., beam, vocab]; blank's is not
/// read; NaN makes the scores of its entry NaN. initial: a tree of tensors; those that lack dims of
/// hypotheses are repeated along them. The scorer is called once before the first frame and once a
/// frame, on all hypotheses.
///
/// Runs in a trace if the scorer does, that is, if it computes with tensors: the scorer is then
/// recorded once. Throws ShapeError if it returns other dims.
template <class State, class Scorer>
CtcBeams ctc_beam_search(const Tensor& logits, const CtcBeamDims& dims, const State& initial,
                         const Scorer& scorer, const CtcBeamOptions& options = {}) {
  static_assert(std::is_invocable_v<const Scorer&, const State&, const Tensor&>,
                "the scorer of ctc_beam_search is called with (state, symbol), and returns "
                "std::pair{log p, state}");
  const TreeLeaves leaves = flatten(initial);
  const auto score = [&](const Tensors& state, const Tensor& symbol) {
    auto [log_p, next] = scorer(State(unflatten(initial, with_tensors(leaves, state))), symbol);
    return std::pair{Tensor(log_p), tensors_of(flatten(State(next)))};
  };
  return detail::ctc_beams(logits, dims, options, detail::CtcScorer{tensors_of(leaves), score});
}

}  // namespace reel
REEL_API_END
