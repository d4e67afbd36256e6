// examples/beam_search/search.h — beam search: finds the likeliest label sequences of a model that
// predicts labels.
#pragma once

#include <reel/reel.h>

#include <limits>
#include <tuple>
#include <utility>

struct BeamSearch {
  reel::Dim beam{"beam", 4};  ///< number of hypotheses kept for each entry
  int end = 0;                ///< the label that ends a hypothesis
  /// Hypotheses are compared by log p / length^exponent. An exponent of 0 favours short ones, 1
  /// takes the mean over labels.
  double length_exponent = 1;
};

/// The hypotheses of each entry, the best one first.
struct Hypotheses {
  reel::Tensor labels;    ///< i32 {batch, beam, length}, including the end label if it was reached
  reel::Tensor log_prob;  ///< {batch, beam}: of all its labels; -inf for a missing hypothesis
  reel::Tensor score;     ///< {batch, beam}: log_prob / length^exponent
  reel::Dim length;       ///< of labels: lengths over {batch, beam}
  reel::Dim steps;        ///< steps of the search: lengths over {batch}
};

namespace search_detail {

template <class State>
struct Beam {
  reel::Tensor label, length, log_prob, has_finished;  ///< {batch, beam}
  State state;                                         ///< of the model, for each hypothesis
};

inline reel::Tensor normalised(const reel::Tensor& log_prob, const reel::Tensor& length,
                               double exponent) {
  return log_prob / reel::pow(reel::cast(reel::maximum(length, 1), log_prob.dtype()), exponent);
}

}  // namespace search_detail

/// Label-synchronous beam search: each step extends all hypotheses by one label, and keeps the best
/// ones. A finished hypothesis stays unchanged, and competes with the running ones. An entry stops
/// when all of its hypotheses have finished, or at its limit; other entries run on.
///
/// step: (label i32 {batch, beam}, state) -> {log p of the next label, f32 {batch, beam,
/// vocabulary}, state}.
/// start: i32 {batch}, the label before the first one.
/// state: a tree of tensors; each hypothesis gets its own copy.
/// limits: i32 {batch}, maximum numbers of labels; an entry with limit 0 is skipped.
/// Source: Sutskever, Vinyals & Le (2014), section 3.2; division by a power of the length: Wu et
/// al. (2016), equation 14, without its constant.
template <class Step, class State>
Hypotheses beam_search(const Step& step, const reel::Tensor& start, const State& state,
                       const reel::Tensor& limits, const BeamSearch& options) {
  using namespace reel;
  using Beam = search_detail::Beam<State>;
  constexpr double kInf = std::numeric_limits<double>::infinity();
  const Dim& beam = options.beam;
  const Dims entries = start.dims();
  // {batch, beam, hidden} for a state {batch, hidden}.
  const auto for_each_hypothesis = [&](const Tensor& x) {
    Dims dims = entries;
    dims.push_back(beam);
    for (const Dim& dim : x.dims())
      if (!contains(entries, dim)) dims.push_back(dim);
    return expand(x, dims);
  };
  const Tensor zero = for_each_hypothesis(zeros_like(start));
  // All hypotheses start equal: only the first one counts.
  const Tensor only_first = where(range(beam) == 0, full({}, 0.), -kInf);
  const Beam initial{for_each_hypothesis(start), zero, cast(zero, f32) + only_first, zero != 0,
                     tree_map(for_each_hypothesis, state)};

  const auto body = [&](const Beam& s) {
    const auto [log_probs, next_state] = step(s.label, s.state);
    const Dim vocabulary = log_probs.dims().back();
    // A finished hypothesis repeats the end label, at no cost.
    const Tensor only_end = where(range(vocabulary) == options.end, full({}, 0.), -kInf);
    const Tensor log_prob = s.log_prob + where(s.has_finished, only_end, log_probs);
    const Tensor length = s.length + cast(!s.has_finished, i32);
    const Tensor score = search_detail::normalised(log_prob, length, options.length_exponent);
    const auto best = top_k(score, {beam, vocabulary}, beam);
    const Tensor &from = best.indices[0], &label = best.indices[1];
    const auto [all, new_length, has_finished, new_state] =
        gather_nested(std::tuple{log_prob, length, s.has_finished, next_state}, from, beam);
    return std::pair{std::pair{label, from}, Beam{label, new_length, gather(all, label, vocabulary),
                                                  has_finished || label == options.end, new_state}};
  };
  const auto goes_on = [&](const Beam& s) {
    return any(!s.has_finished && s.log_prob > -kInf, beam);
  };
  const auto [kept, last, steps] = scan(Scan{.spatial_dim = Dim("steps"),
                                             .cond_dims = entries,
                                             .initial = initial,
                                             .cond = goes_on,
                                             .body = body,
                                             .max_seq_len = limits,
                                             .name = "beam search"});

  const Tensor labels = backtrack(kept.first, kept.second, steps, beam);
  // A hypothesis that finished before its entry's last step repeats the end label; this cuts it
  // off.
  const Dim length("length", last.length);
  const Tensor is_its_own = expand(range(steps), labels.dims()) < last.length;
  Dims dims = last.length.dims();
  dims.push_back(length);
  return {transpose(pack(labels, is_its_own, {steps}, length), dims), last.log_prob,
          search_detail::normalised(last.log_prob, last.length, options.length_exponent), length,
          steps};
}
