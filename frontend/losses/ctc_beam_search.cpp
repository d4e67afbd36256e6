#include "reel/frontend/losses/ctc_beam_search.h"

#include <limits>

#include "reel/core/base/errors.h"
#include "reel/core/base/str.h"
#include "reel/core/dims/same_name.h"
#include "reel/core/ops.h"
#include "reel/core/types/mode.h"
#include "reel/frontend/loops/backtrack.h"
#include "reel/frontend/loops/scan.h"
#include "reel/frontend/losses/alignment_scans.h"
#include "reel/frontend/losses/ctc_lattice.h"
#include "reel/frontend/tree/dim_lists.h"

namespace reel {
namespace {

/// Scores of missing hypotheses, and of entries with NaN.
constexpr double kMissingScore = -std::numeric_limits<double>::infinity(),
                 kNanScore = std::numeric_limits<double>::quiet_NaN();

/// A prefix's identity: two polynomials of its labels, modulo primes. Products fit into i64.
struct PrefixHash {
  Tensor first, second;  // i64, over hypotheses
  auto members() { return std::tie(first, second); }

  static PrefixHash step(const PrefixHash& prefix, const Tensor& symbol) {
    const Tensor digit = cast(symbol, i64) + 1;
    return {mod(prefix.first * 1000003 + digit, 2147483647),
            mod(prefix.second * 69621 + digit, 2147483629)};
  }
};

/// The hypotheses after some frames, over entries and beam.
struct Hypotheses {
  Tensor by_blank, by_label;  // log p of the alignments that end in blank, or in the last label
  Tensor last;                // i32: the last label; blank if there is none
  PrefixHash prefix, parent;  // of all labels, and of all but the last
  Tensor rank;                // the scorer's part of the score
  Tensor next;                // of the next label, over vocab; a scalar without a scorer
  Tensors state;              // of the scorer
  auto members() { return std::tie(by_blank, by_label, last, prefix, parent, rank, next, state); }
};

void check_arguments(const Tensor& logits, const CtcBeamDims& dims, std::int64_t blank) {
  check_defined("ctc_beam_search", logits);
  if (!is_float(logits.dtype()))
    throw DTypeError(
        str("ctc_beam_search: logits must be f32 or f64, got ", logits.type(), "; cast them"));
  const bool has_both = contains(logits.dims(), dims.time) && contains(logits.dims(), dims.vocab);
  const bool has_beam = contains(logits.dims(), dims.beam);
  std::string repair;
  if (!logits.type().is_named())
    repair = "; name its dims, as in reshape(x, {dim, ...})";
  else if (has_beam)
    repair = has_both ? "; give another Dim as beam"
                      : "; the dims are {time, vocab, beam} in this order";
  else
    for (const Dim& dim : {dims.time, dims.vocab})
      if (repair.empty() && !contains(logits.dims(), dim))
        repair = lacking_dim_hint(dim, logits.dims());
  if (!logits.type().is_named() || !has_both || has_beam)
    throw ShapeError(str("ctc_beam_search: logits must have named dims [..., ", dims.time, ',',
                         dims.vocab, "] without ", dims.beam, ", got ", logits.type(), repair));
  if (!dims.beam.is_named() || !dims.beam.has_size() || dims.beam.is_ragged() ||
      dims.beam.size() < 1)
    throw ArgumentError(
        str("ctc_beam_search: beam must be a named dim of a size, at least 1, got ", dims.beam));
  if (dims.vocab.has_size() && (blank < -dims.vocab.size() || blank >= dims.vocab.size()))
    throw ArgumentError(
        str("ctc_beam_search: blank must be a position along ", dims.vocab, ", got ", blank));
}

class PrefixBeamSearch {
 public:
  PrefixBeamSearch(const Tensor& logits, const CtcBeamDims& dims, const CtcBeamOptions& options,
                   const std::optional<detail::CtcScorer>& scorer)
      : dims_(dims), options_(options), scorer_(scorer), other_("other", dims.beam.size()) {
    for (const Dim& dim : logits.dims())
      if (!(dim == dims.time) && !(dim == dims.vocab)) entries_.push_back(dim);
    rows_ = entries_;
    rows_.push_back(dims.beam);
    candidates_ = rows_;
    candidates_.push_back(dims.vocab);
    log_p_ = maximum(log_softmax(mask_padding(stop_gradient(logits)), dims.vocab), kNever);
    blank_ = options.blank < 0 ? cast(dims.vocab.lengths(), i32) + options.blank
                               : scalar(options.blank, i32);
  }

  CtcBeams run() const {
    const auto body = [&](const Tensor& frame, const Hypotheses& at) { return step(frame, at); };
    const auto found = scan(Scan{.spatial_dim = dims_.time,
                                 .initial = initial(),
                                 .xs = log_p_,
                                 .body = body,
                                 .name = "ctc_beam_search"});
    const Hypotheses& last = found.state;
    const Tensor log_p = finite_log_add(last.by_blank, last.by_label);
    const Tensor has_nan =
        expand(any(isnan(log_p_), {dims_.time, dims_.vocab}) || any(isnan(last.rank), {dims_.beam}),
               rows_);
    // A rank of -inf: the scorer forbids the labels.
    const Tensor is_there = log_p > kNeverBound && last.rank != kMissingScore && !has_nan;
    const Tensor missing = where(has_nan, over({}, kNanScore), kMissingScore);
    const auto or_missing = [&](const Tensor& x) { return where(is_there, x, missing); };
    const Tensor symbols = backtrack(found.ys.first, found.ys.second, dims_.time, dims_.beam);
    const Tensor is_label =
        symbols != blank_ && expand(is_there, symbols.dims()) && in_time(symbols.dims());
    const Tensor packed = pack(symbols, is_label, {dims_.time});
    const Dims order = with_more(rows_, packed.dims());
    const Dim labels("labels", packed.dim("packed").lengths());
    return {rename(transpose(packed, order), order.back(), labels), or_missing(log_p + last.rank),
            or_missing(log_p)};
  }

 private:
  /// Elements behind an entry's frames are zeros, which may be a label.
  Tensor in_time(const Dims& dims) const {
    return expand(range(dims_.time), dims) < cast(dims_.time.lengths(), i32);
  }
  Tensor over(const Dims& dims, double value) const { return full(dims, value, log_p_.dtype()); }
  Tensor over_rows(const Tensor& x) const { return expand(x, with_more(rows_, x.dims())); }

  /// Calls the scorer with the last labels, and stores its results.
  void score(Hypotheses& at) const {
    if (!scorer_) {
      at.next = over({}, 0);
      return;
    }
    const auto [log_p, state] = scorer_->score(at.state, at.last);
    if (!log_p.is_defined() || !is_float(log_p.dtype()) || !contains(log_p.dims(), dims_.vocab))
      throw ShapeError(str("ctc_beam_search: the scorer must return floating log p over ",
                           dims_.vocab, ", got ",
                           log_p.is_defined() ? str(log_p.type()) : "an empty Tensor",
                           log_p.is_defined() && log_p.rank() && !log_p.type().is_named()
                               ? "; name its dims, as in reshape(x, {dim, ...})"
                               : ""));
    if (state.size() != at.state.size())
      throw StructureError(str("ctc_beam_search: the scorer returns a state of ", state.size(),
                               " tensors, but `initial` has ", at.state.size(),
                               "; the state must keep its structure"));
    at.next = cast(stop_gradient(expand(log_p, candidates_)), log_p_.dtype());
    for (std::size_t i = 0; i < state.size(); ++i) at.state[i] = over_rows(state[i]);
  }

  /// The hypothesis without labels, and missing ones.
  Hypotheses initial() const {
    const Tensor never = over(rows_, kNever), is_first = expand(range(dims_.beam) == 0, rows_);
    const Tensor none = zeros(rows_, i64);
    Hypotheses at{where(is_first, 0, never),
                  never,
                  expand(blank_, rows_),
                  {none, none},
                  {none - 1, none - 1},
                  over(rows_, 0),
                  {},
                  {}};
    if (scorer_)
      for (const Tensor& x : scorer_->initial) at.state.push_back(over_rows(x));
    score(at);
    return at;
  }

  /// Returns log p of hypotheses that a frame does not extend and that end with a label. If an
  /// extension equals a hypothesis, adds its probability to the result and drops it from `longer`.
  Tensor stay_by_label(const Tensor& frame, const Hypotheses& at, const Tensor& total,
                       Tensor& longer) const {
    const Tensor p_last = gather(frame, at.last, dims_.vocab);
    const auto other = [&](const Tensor& x) { return rename(x, dims_.beam, other_); };
    const Dims pairs = with_more(rows_, {other_});
    const auto has_parent = [&](const Tensor& parent, const Tensor& prefix) {
      return expand(parent, pairs) == expand(other(prefix), pairs);
    };
    const Tensor is_there = total > kNeverBound;
    const Tensor is_parent = has_parent(at.parent.first, at.prefix.first) &&
                             has_parent(at.parent.second, at.prefix.second) &&
                             expand(is_there, pairs) && expand(other(is_there), pairs);
    // A repeated label needs a blank in between.
    const Tensor repeats = expand(at.last, pairs) == expand(other(at.last), pairs);
    const Tensor from =
        where(repeats, expand(other(at.by_blank), pairs), expand(other(total), pairs)) +
        expand(p_last, pairs);
    const Tensor merged = maximum(logsumexp(where(is_parent, from, kNever), other_), kNever);
    const Dims all = with_more(pairs, {dims_.vocab});
    const Tensor taken =
        any(expand(is_parent, all) && expand(at.last, all) == expand(range(dims_.vocab), all),
            dims_.beam);
    longer = where(transpose(rename(taken, other_, dims_.beam), candidates_), kNever, longer);
    return finite_log_add(at.by_label + p_last, merged);
  }

  std::pair<std::pair<Tensor, Tensor>, Hypotheses> step(const Tensor& frame,
                                                        const Hypotheses& at) const {
    const Tensor total = finite_log_add(at.by_blank, at.by_label);
    const Tensor place = expand(range(dims_.vocab), candidates_);
    const Tensor is_blank = place == blank_;
    Tensor longer = where(place == expand(at.last, candidates_), expand(at.by_blank, candidates_),
                          expand(total, candidates_)) +
                    expand(frame, candidates_);
    const Tensor same_by_label = stay_by_label(frame, at, total, longer);
    const Tensor same_by_blank = total + expand(gather(frame, blank_, dims_.vocab), rows_);
    // The candidate that would add a blank stands for the hypothesis itself.
    // A scale of 0 leaves the scorer out, because 0 · -inf is NaN.
    const Tensor by_scorer = options_.scorer_scale == 0
                                 ? over(candidates_, 0)
                                 : options_.scorer_scale * expand(at.next, candidates_);
    const Tensor added = where(is_blank, 0, by_scorer + options_.label_bonus);
    const Tensor ranks = expand(at.rank, candidates_) + added;
    const Tensor log_p =
        where(is_blank, expand(finite_log_add(same_by_blank, same_by_label), candidates_), longer);
    const TopKOverAxes best = top_k(log_p + ranks, {dims_.beam, dims_.vocab}, dims_.beam);
    const Tensor &from = best.indices[0], &symbol = best.indices[1];
    const auto kept = [&](const Tensor& x) { return gather(x, from, dims_.beam); };
    const auto of_candidate = [&](const Tensor& x) { return gather(kept(x), symbol, dims_.vocab); };
    const Tensor stays = symbol == blank_;
    const auto either = [&](const Tensor& same, const Tensor& extended) {
      return where(expand(stays, same.dims()), same, extended);
    };
    Hypotheses next;
    next.by_blank = either(kept(same_by_blank), over(rows_, kNever));
    next.by_label = either(kept(same_by_label), of_candidate(longer));
    next.last = either(kept(at.last), symbol);
    const PrefixHash before{kept(at.prefix.first), kept(at.prefix.second)};
    const PrefixHash after = PrefixHash::step(before, symbol);
    next.prefix = {either(before.first, after.first), either(before.second, after.second)};
    next.parent = {either(kept(at.parent.first), before.first),
                   either(kept(at.parent.second), before.second)};
    next.rank = of_candidate(ranks);
    Tensors state;
    for (const Tensor& x : at.state) state.push_back(kept(x));
    next.state = state;
    score(next);
    if (scorer_) {
      const Tensor same = kept(at.next);
      next.next = either(same, transpose(next.next, same.dims()));
      for (std::size_t i = 0; i < state.size(); ++i)
        next.state[i] = either(state[i], transpose(next.state[i], state[i].dims()));
    }
    return {{symbol, from}, in_order(next, at)};
  }

  /// Returns the hypotheses with their dims in the order of `before`.
  static Hypotheses in_order(Hypotheses next, const Hypotheses& before) {
    const auto order = [](Tensor& x, const Tensor& like) { x = transpose(x, like.dims()); };
    order(next.by_blank, before.by_blank);
    order(next.by_label, before.by_label);
    order(next.last, before.last);
    order(next.prefix.first, before.prefix.first);
    order(next.prefix.second, before.prefix.second);
    order(next.parent.first, before.parent.first);
    order(next.parent.second, before.parent.second);
    order(next.rank, before.rank);
    order(next.next, before.next);
    for (std::size_t i = 0; i < next.state.size(); ++i) order(next.state[i], before.state[i]);
    return next;
  }

  CtcBeamDims dims_;
  CtcBeamOptions options_;
  std::optional<detail::CtcScorer> scorer_;
  Dim other_;  ///< the beam again, for pairs of hypotheses
  Dims entries_, rows_, candidates_;
  Tensor log_p_, blank_;
};

}  // namespace

namespace detail {

CtcBeams ctc_beams(const Tensor& logits, const CtcBeamDims& given, const CtcBeamOptions& options,
                   const std::optional<CtcScorer>& scorer) {
  const CtcBeamDims dims{canonical(given.time), canonical(given.vocab), canonical(given.beam)};
  check_arguments(logits, dims, options.blank);
  return PrefixBeamSearch(logits, dims, options, scorer).run();
}

}  // namespace detail

CtcBeams ctc_beam_search(const Tensor& logits, const CtcBeamDims& dims,
                         const CtcBeamOptions& options) {
  return detail::ctc_beams(logits, dims, options, {});
}

}  // namespace reel
