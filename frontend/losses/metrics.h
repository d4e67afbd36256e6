// frontend/losses/metrics.h — metrics over batches, weighted by the elements that count.
#pragma once

#include <cstdint>
#include <optional>

#include "reel/core/base/visibility.h"
#include "reel/core/dims/axis.h"
#include "reel/core/types/tensor.h"
#include "reel/frontend/losses/losses.h"

REEL_API_BEGIN
namespace reel {

/// A sum and the number of its terms: means over batches of different sizes, or over their shards.
///
///   Weighted right = accuracy(logits, targets, classes);
///   for (...) right = right + accuracy(...);
///   right.mean()
struct Weighted {
  Tensor total, weight;  ///< scalars of one floating dtype; the weight is not negative
  /// Returns total / weight; 0 if nothing counted.
  Tensor mean() const;
};
Weighted operator+(const Weighted& a, const Weighted& b);

/// Returns how many of the targets are the class with the largest logit, and how many count.
///
/// logits, targets: as for cross_entropy with class indices. Padding does not count, nor does a
/// target equal to `ignore`. A NaN among the logits is never right. Throws as cross_entropy does.
Weighted accuracy(const Tensor& logits, const Tensor& targets, const Axis& classes,
                  std::optional<std::int64_t> ignore = {});
/// Returns the sum of -log softmax(logits) at the targets, and how many count. Throws as accuracy.
Weighted log_loss(const Tensor& logits, const Tensor& targets, const Axis& classes,
                  std::optional<std::int64_t> ignore = {});
/// Returns exp(loss.mean()), for the log_loss of one or several batches.
Tensor perplexity(const Weighted& loss);

}  // namespace reel
REEL_API_END
