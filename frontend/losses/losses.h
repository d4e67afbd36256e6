// frontend/losses/losses.h — loss functions.
//
// Each loss is by default a scalar: the mean over all entries without the padding of ragged dims.
// Padding has a gradient of exactly 0, whatever its values are. The mean over nothing is 0.
// LossReduction chooses the sum, or one loss for each entry. ctc_loss has a header of its own.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "reel/core/base/visibility.h"
#include "reel/core/dims/axis.h"
#include "reel/core/types/tensor.h"

REEL_API_BEGIN
namespace reel {

/// How the losses of entries are combined.
enum class LossReduction : std::uint8_t {
  mean,  ///< the mean, a scalar
  sum,   ///< the sum, a scalar
  none,  ///< one loss for each entry, with zeros in padding
};

/// Options of cross_entropy.
struct CrossEntropyOptions {
  double label_smoothing = 0;  ///< ε: the share of each target that is spread evenly over all
                               ///< classes
  std::optional<std::int64_t> ignore{};  ///< targets with this index do not count
  Tensor class_weights{};  ///< over classes: factors of the terms; the mean is weighted by the
                           ///< factors of the targets
  LossReduction reduction = LossReduction::mean;  ///< the mean, the sum, or the losses of entries
};

/// Returns the cross entropy in nats: the mean of -Σ q log softmax(logits), where q is the target.
///
/// logits: floating, [..., classes]. targets: in one form of two:
/// - Class indices: i32 or i64 over the dims of logits without classes; q is 1 for this class.
/// - q itself: dtype and dims of logits; should sum to 1 along classes.
///
/// Named dims may be in any order. With label smoothing q becomes (1 - ε) q + ε / classes (Szegedy
/// et al. 2016, section 7). A class with q = 0 does not count, even if its logit is -inf. Returns a
/// scalar of logits' dtype, or losses of entries. Throws DTypeError or ShapeError for other types,
/// ArgumentError unless ε is in [0, 1], and IndexError for a class index out of range (negative
/// ones are).
///
/// class_weights w, of logits' dtype: the loss is Σ w_c q_c (-log p_c), summed over entries. For
/// class indices the sum is divided by the sum of the targets' weights; for probabilities by the
/// number of entries, as PyTorch does. ignore, for class indices only: such entries count neither
/// in the sum nor in the divisor; the index may be out of range. If nothing counts, the loss is 0.
///
/// reduction: the sum is not divided; losses of entries have the dims of logits without classes,
/// and are 0 for `ignore`.
Tensor cross_entropy(const Tensor& logits, const Tensor& targets, const Axis& classes,
                     const CrossEntropyOptions& options = {});

namespace detail {
/// Returns cross_entropy(...). Errors name `function`.
Tensor cross_entropy_as(const std::string& function, const Tensor& logits, const Tensor& targets,
                        const Axis& classes, const CrossEntropyOptions& options);
/// Returns the logits of the targets' classes, and of class 0 for targets that are `ignore`. Throws
/// as cross_entropy, and DTypeError unless targets are class indices. Errors name `function`.
Tensor logits_of_targets(const std::string& function, const Tensor& logits, const Tensor& targets,
                         const Axis& classes, std::optional<std::int64_t> ignore);
}  // namespace detail

/// Returns the binary cross entropy in nats: the mean of -(t log σ(x) + (1 - t) log(1 - σ(x))),
/// without overflow or cancellation at large |x|.
///
/// logits: floating, any dims. targets: the dims of logits (named ones in any order); booleans, or
/// probabilities of logits' dtype. Returns a scalar of logits' dtype. Throws DTypeError or
/// ShapeError for other types.
/// Source: Bishop (2006), eq. 4.90.
Tensor binary_cross_entropy(const Tensor& logits, const Tensor& targets,
                            LossReduction reduction = LossReduction::mean);

/// Returns the mean of (prediction - target)².
///
/// Both are floating, of one dtype and the same dims (named ones in any order; nothing is
/// broadcast). Returns a scalar of their dtype. Throws DTypeError or ShapeError otherwise.
Tensor mean_squared_error(const Tensor& predictions, const Tensor& targets,
                          LossReduction reduction = LossReduction::mean);

/// Returns the mean of |prediction - target|. Arguments and errors as for mean_squared_error. The
/// gradient is 0 where both are equal.
Tensor mean_absolute_error(const Tensor& predictions, const Tensor& targets,
                           LossReduction reduction = LossReduction::mean);

/// Returns the mean of Huber's loss of d = prediction - target: d²/2 for |d| <= delta, otherwise
/// delta (|d| - delta/2). Arguments and errors as for mean_squared_error; ArgumentError unless
/// delta > 0. Source: Huber (1964).
Tensor huber_loss(const Tensor& predictions, const Tensor& targets, double delta = 1,
                  LossReduction reduction = LossReduction::mean);

/// Returns the mean of the quantile loss of d = target - prediction: quantile · d for d > 0,
/// otherwise (quantile - 1) d. The prediction with the least loss is that quantile of the targets;
/// 0.5 gives half of the absolute error. Arguments and errors as for mean_squared_error;
/// ArgumentError unless quantile is between 0 and 1. If both are equal, the gradient by the
/// prediction is 1 - quantile. Source: Koenker & Bassett (1978).
Tensor quantile_loss(const Tensor& predictions, const Tensor& targets, double quantile,
                     LossReduction reduction = LossReduction::mean);

/// Returns the mean over entries of the Kullback-Leibler divergence Σ p (log p - log q) in nats,
/// where p and q are softmax of the logits over classes.
///
/// Both are floating, of one dtype and the same dims (named ones in any order). A class with p = 0
/// does not count. Throws DTypeError or ShapeError otherwise. Source: Kullback & Leibler (1951).
Tensor kl_divergence(const Tensor& p_logits, const Tensor& q_logits, const Axis& classes,
                     LossReduction reduction = LossReduction::mean);

}  // namespace reel
REEL_API_END
