#include "reel/frontend/losses/transducer_loss.h"

#include <algorithm>
#include <limits>
#include <string>

#include "reel/core/base/errors.h"
#include "reel/core/base/str.h"
#include "reel/core/dims/same_name.h"
#include "reel/core/functions/checks.h"
#include "reel/core/op/bind.h"
#include "reel/core/ops.h"
#include "reel/core/ops/alignments/alignments.h"
#include "reel/core/ops/indexing/labels.h"
#include "reel/core/types/mode.h"
#include "reel/frontend/losses/alignment_scans.h"
#include "reel/frontend/tree/dim_lists.h"

namespace reel {
namespace {

constexpr double kImpossible = -std::numeric_limits<double>::infinity();

void check_arguments(const std::string& function, const Tensor& logits, const Tensor& labels,
                     const TransducerDims& dims, std::int64_t blank) {
  check_defined(function, logits);
  check_defined(function, labels);
  if (!is_float(logits.dtype()))
    throw DTypeError(
        str(function, ": logits must be f32 or f64, got ", logits.type(), "; cast them"));
  if (!is_integer(labels.dtype()))
    throw DTypeError(
        str(function, ": labels must be i32 or i64, positions along vocab, got ", labels.type()));
  const Dims of_logits = logits.dims(), of_labels = labels.dims();
  const bool fits = contains(of_logits, dims.time) && contains(of_logits, dims.prefix) &&
                    contains(of_logits, dims.vocab) && contains(of_labels, dims.label_time) &&
                    labels.type().is_named() && !contains(of_logits, dims.label_time) &&
                    have_same_dims(without(of_logits, {dims.time, dims.prefix, dims.vocab}),
                                   without(of_labels, {dims.label_time}));
  if (!fits && contains(of_logits, dims.label_time) && contains(of_labels, dims.label_time))
    throw ShapeError(str(function, ": the logits ", logits.type(), " run over ", dims.label_time,
                         ", the dim of the labels; they need dims.prefix, which has one element ",
                         "more: label_time + 1"));
  for (const Dim* dim : {&dims.time, &dims.prefix, &dims.vocab})
    if (!fits && contains(of_labels, *dim) && contains(of_logits, dims.label_time))
      throw ShapeError(str(function, ": the dims are {time, label_time, prefix, vocab} in this ",
                           "order, but ", dims.label_time, " is a dim of the logits ",
                           logits.type(), " and ", *dim, " one of the labels ", labels.type(),
                           ": exchange them"));
  if (!fits)
    throw ShapeError(str(function, ": logits must have named dims [..., ", dims.time, ',',
                         dims.prefix, ',', dims.vocab, "], and labels the same but with ",
                         dims.label_time, " in the place of these three: logits ", logits.type(),
                         ", labels ", labels.type(),
                         logits.type().is_named() && labels.type().is_named()
                             ? one_dim_hint(of_logits, of_labels)
                             : "; name the dims of both, as in reshape(x, {dim, ...})"));
  if (dims.time == dims.prefix || dims.time == dims.vocab || dims.prefix == dims.vocab)
    throw ArgumentError(str(function, ": ", dims.prefix == dims.vocab ? dims.vocab : dims.time,
                            " is named twice; the dims are {time, label_time, prefix, vocab}"));
  // The size of a ragged dim is its largest length: 0 without entries, whatever was added.
  const auto has_no_entry = [](const Dim& dim) { return dim.has_size() && dim.size() == 0; };
  const bool is_empty = std::ranges::any_of(without(of_labels, {dims.label_time}), has_no_entry);
  if (!is_empty && dims.prefix.has_size() && dims.label_time.has_size() &&
      dims.prefix.size() != dims.label_time.size() + 1)
    throw ShapeError(str(function, ": prefix must have one element more than ", dims.label_time,
                         ", got ", dims.prefix));
  if (dims.vocab.has_size() && (blank < -dims.vocab.size() || blank >= dims.vocab.size()))
    throw ArgumentError(
        str(function, ": blank must be a position along ", dims.vocab, ", got ", blank));
}

/// Returns labels over prefix, behind the dims of entries. The last ones have no meaning.
Tensor labels_by_prefix(const std::string& function, const Tensor& labels, const Dims& entries,
                        const TransducerDims& dims, const Tensor& counts) {
  const Tensor ordered = transpose(cast(labels, i32), with_more(entries, {dims.label_time}));
  const Dim longer = dims.label_time + 1;
  const Tensor padded = pad(ordered, dims.label_time, 0, 1, 0, longer);
  if (dims.prefix == longer) return padded;
  const Tensor prefixes = expand(cast(dims.prefix.lengths(), i32), entries);
  const Tensor reaches = assert_that(
      prefixes > counts, str(function, ": prefix has more elements than labels"), prefixes, counts);
  return where(expand(reaches, with_more(entries, {dims.prefix})),
               rename(padded, longer, dims.prefix), 0);
}

/// function: the public function, for errors.
Tensor log_likelihood(const std::string& function, const Tensor& logits, const Tensor& labels,
                      const TransducerDims& given, std::int64_t blank) {
  const TransducerDims dims{canonical(given.time), canonical(given.label_time),
                            canonical(given.prefix), canonical(given.vocab)};
  check_arguments(function, logits, labels, dims, blank);
  const Dims inner{dims.time, dims.prefix, dims.vocab}, entries = without(logits.dims(), inner);
  const auto lengths = [&](const Dim& dim) { return expand(cast(dim.lengths(), i32), entries); };
  const Tensor counts = lengths(dims.label_time);
  const Tensor frames = lengths(dims.time);
  const Tensor ordered = transpose(logits, with_more(entries, inner));
  const Tensor symbols = labels_by_prefix(
      function, checked_labels(function, labels, dims.vocab, blank), entries, dims, counts);
  if (AlignmentOpsOff::holds()) return transducer_by_scan(ordered, symbols, frames, counts, blank);
  return bind_all(transducer_op, {ordered, symbols, frames, counts},
                  make_attrs(AlignmentAttrs{blank, true}))[0];
}

}  // namespace

Tensor transducer_log_likelihood(const Tensor& logits, const Tensor& labels,
                                 const TransducerDims& dims, const TransducerOptions& options) {
  return log_likelihood("transducer_log_likelihood", logits, labels, dims, options.blank);
}

Tensor transducer_loss(const Tensor& logits, const Tensor& labels, const TransducerDims& dims,
                       const TransducerOptions& options) {
  const Tensor likelihood = log_likelihood("transducer_loss", logits, labels, dims, options.blank);
  const Tensor is_possible = likelihood != kImpossible;
  // 0 - x, because -x would return -0 for a loss of 0.
  if (options.zero_infinity) return 0 - mean(where(is_possible, likelihood, 0));
  return 0 - mean(where(assert_that(is_possible,
                                    "transducer_loss: the entry has an alignment; one without "
                                    "frames has none (zero_infinity leaves it out)"),
                        likelihood, kImpossible));
}

}  // namespace reel
