#include "reel/frontend/losses/ctc_lattice.h"

#include "reel/core/base/errors.h"
#include "reel/core/base/str.h"
#include "reel/core/dims/same_name.h"
#include "reel/core/ops.h"
#include "reel/core/ops/indexing/labels.h"
#include "reel/core/types/dim_expression.h"
#include "reel/frontend/tree/dim_lists.h"

namespace reel {
namespace {

/// Returns true if arithmetic on `source`, such as time / 4, made the dim.
bool is_computed_from(const Dim& dim, const Dim& source) {
  const DimExpression* expression = expression_of(dim);
  if (!expression) return false;
  for (const Dim& operand : expression->operands)
    if (operand == source || is_computed_from(operand, source)) return true;
  return false;
}
/// Returns the dim among `dims` that was made from `source`; null if there is none.
const Dim* computed_from(const Dims& dims, const Dim& source) {
  for (const Dim& dim : dims)
    if (is_computed_from(dim, source)) return &dim;
  return nullptr;
}

/// Returns the repair for dims that do not meet.
std::string hint_of_dims(const TensorType& logits, const TensorType& labels) {
  return logits.is_named() && labels.is_named()
             ? one_dim_hint(logits.dims(), labels.dims())
             : "; name the dims of both, as in reshape(x, {dim, ...})";
}

}  // namespace

void check_ctc_arguments(const std::string& function, const TensorType& logits,
                         const TensorType& labels, const CtcDims& dims, std::int64_t blank) {
  if (!is_float(logits.dtype()))
    throw DTypeError(str(function, ": logits must be f32 or f64, got ", logits, "; cast them"));
  if (!is_integer(labels.dtype()))
    throw DTypeError(
        str(function, ": labels must be i32 or i64, positions along vocab, got ", labels));
  const bool fits = contains(logits.dims(), dims.time) && contains(logits.dims(), dims.vocab) &&
                    contains(labels.dims(), dims.label_time) && labels.is_named() &&
                    !contains(logits.dims(), dims.label_time) &&
                    have_same_dims(without(logits.dims(), {dims.time, dims.vocab}),
                                   without(labels.dims(), {dims.label_time}));
  if (!fits && !contains(logits.dims(), dims.time))
    if (const Dim* computed = computed_from(logits.dims(), dims.time))
      throw ShapeError(
          str(function, ": the logits ", logits, " run over ", *computed, ", not over ", dims.time,
              ": pass ", *computed,
              " as dims.time, as the layer that shortened the frames returns it, or as "
              "the same arithmetic on ",
              dims.time.name(), " makes it"));
  for (const Dim* dim : {&dims.vocab, &dims.time})
    if (!fits && contains(logits.dims(), dims.label_time) && contains(labels.dims(), *dim) &&
        !contains(labels.dims(), dims.label_time))
      throw ShapeError(str(function, ": the dims are {time, label_time, vocab} in this order, but ",
                           dims.label_time, " is a dim of the logits ", logits, " and ", *dim,
                           " one of the labels ", labels, ": exchange them"));
  if (!fits)
    throw ShapeError(str(function, ": logits must have named dims [..., ", dims.time, ',',
                         dims.vocab, "], and labels the same but with ", dims.label_time,
                         " in the place of these two: logits ", logits, ", labels ", labels,
                         hint_of_dims(logits, labels)));
  if (dims.time == dims.vocab)
    throw ArgumentError(str(function, ": ", dims.time,
                            " is named twice, as time and as vocab; the dims are {time, "
                            "label_time, vocab}"));
  if (dims.vocab.has_size() && (blank < -dims.vocab.size() || blank >= dims.vocab.size()))
    throw ArgumentError(
        str(function, ": blank must be a position along ", dims.vocab, ", got ", blank));
}

namespace {

/// Returns the given tensor once the arguments are checked.
const Tensor& checked(const std::string& function, const Tensor& logits, const Tensor& labels,
                      const CtcDims& dims, std::int64_t blank) {
  check_ctc_arguments(function, logits.type(), labels.type(), dims, blank);
  return logits;
}

}  // namespace

// NaN in padding would spread to its gradient through softmax; mask_padding removes it.
CtcLattice::CtcLattice(const std::string& function, const Tensor& logits, const Tensor& labels,
                       const CtcDims& dims, std::int64_t blank)
    : CtcLattice(mask_padding(checked(function, logits, labels, dims, blank)),
                 checked_labels(function, labels, dims.vocab, blank), dims,
                 dims.label_time.lengths(), blank) {}

CtcLattice::CtcLattice(const Tensor& logits, const Tensor& labels, const CtcDims& dims,
                       const Tensor& counts, std::int64_t blank)
    : dims_(dims),
      entries_(without(logits.dims(), {dims.time, dims.vocab})),
      labels_(labels),
      blank_(scalar(blank, labels.dtype())) {
  const Tensor place = range(dims.label_time);
  is_first_ = place == 0;
  before_ = maximum(place - 1, 0);
  is_last_ = expand(place, labels.dims()) == counts - 1;
  is_repeated_ = labels_ == gather(labels_, before_, dims.label_time);
  log_p_ = maximum(log_softmax(logits, dims.vocab), kNever);
}

CtcScores CtcLattice::none() const {
  Dims all = entries_;
  all.push_back(dims_.label_time);
  const Tensor never = full(all, kNever, log_p_.dtype());
  return {never, never, zeros(entries_, log_p_.dtype())};
}

CtcArcs CtcLattice::arcs(const Tensor& log_p, const CtcScores& at) const {
  const Tensor p_blank = gather(log_p, blank_, dims_.vocab);
  const Tensor p_label = gather(log_p, labels_, dims_.vocab);
  return {.from_blank = where(is_first_, at.start, before(at.blank)),
          .skipping = where(is_first_ || is_repeated_, kNever, before(at.label)),
          .p_label = p_label,
          .p_blank = p_blank};
}

Tensor CtcLattice::at_last(const Tensor& x) const {
  return sum(where(is_last_, x, 0), dims_.label_time);
}

Tensor CtcLattice::before(const Tensor& x) const { return gather(x, before_, dims_.label_time); }

}  // namespace reel
