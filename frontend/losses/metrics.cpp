#include "reel/frontend/losses/metrics.h"

#include "reel/core/base/str.h"
#include "reel/core/ops.h"

namespace reel {
namespace {

/// Returns which targets count, as numbers; 0 in padding.
Tensor counts(const Tensor& targets, std::optional<std::int64_t> ignore, DType dtype) {
  const Tensor all = ignore ? targets != *ignore : ones(targets.dims(), boolean);
  return mask_padding(cast(all, dtype));
}

}  // namespace

Tensor Weighted::mean() const {
  check_defined("Weighted::mean", total);
  check_defined("Weighted::mean", weight);
  const Tensor is_empty = weight == 0;
  return where(is_empty, 0, total / where(is_empty, 1, weight));
}

Weighted operator+(const Weighted& a, const Weighted& b) {
  return {a.total + b.total, a.weight + b.weight};
}

Weighted log_loss(const Tensor& logits, const Tensor& targets, const Axis& classes,
                  std::optional<std::int64_t> ignore) {
  const Tensor mean =
      detail::cross_entropy_as("log_loss", logits, targets, classes, {.ignore = ignore});
  if (!is_integer(targets.dtype()))
    throw DTypeError(str("log_loss: targets must be class indices, got ", targets.type()));
  const Tensor weight = sum(counts(targets, ignore, logits.dtype()));
  return {mean * weight, weight};
}

Weighted accuracy(const Tensor& logits, const Tensor& targets, const Axis& classes,
                  std::optional<std::int64_t> ignore) {
  // A run reads them, so it throws for an index out of range in every mode.
  const Tensor of_targets = detail::logits_of_targets("accuracy", logits, targets, classes, ignore);
  const Tensor is_best = equal(argmax(logits, classes), cast(targets, i32));
  const Tensor has_nan = logical_or(any(isnan(logits), {classes}), isnan(of_targets));
  const Tensor is_right = logical_and(is_best, logical_not(has_nan));
  const Tensor weight = counts(targets, ignore, logits.dtype());
  const Tensor right = cast(is_right, logits.dtype()) * weight;
  return {sum(mask_padding(right)), sum(weight)};
}

Tensor perplexity(const Weighted& loss) {
  return as_function("perplexity", [&] { return exp(loss.mean()); });
}

}  // namespace reel
