// frontend/losses/losses.h — loss functions.
//
// Each loss is a scalar: the mean over all entries without the padding of ragged dims. Padding has
// a gradient of exactly 0, whatever its values are. The mean over nothing is 0. ctc_loss has a
// header of its own.
#pragma once

#include "reel/core/dims/axis.h"
#include "reel/core/types/tensor.h"

namespace reel {

struct CrossEntropyOptions {
  double label_smoothing = 0;  ///< ε: the share of each target that is spread evenly over all
                               ///< classes
};

/// Returns the cross entropy in nats: the mean of -Σ q log softmax(logits), where q is the target.
///
/// logits: floating, [..., classes]. targets: in one form of two:
/// - Class indices: i32 or i64 over the dims of logits without classes; q of that class is 1.
/// - q itself: dtype and dims of logits; should sum to 1 along classes.
///
/// Named dims may be in any order. With label smoothing q becomes (1 - ε) q + ε / classes (Szegedy
/// et al. 2016, section 7). A class with q = 0 does not count, even if its logit is -inf. Returns a
/// scalar of logits' dtype. Throws DTypeError or ShapeError for other types, ArgumentError unless ε
/// is in [0, 1], and IndexError for a class index out of range (negative ones are).
Tensor cross_entropy(const Tensor& logits, const Tensor& targets, const Axis& classes,
                     const CrossEntropyOptions& options = {});

/// Returns the binary cross entropy in nats: the mean of -(t log σ(x) + (1 - t) log(1 - σ(x))),
/// without overflow or cancellation at large |x|.
///
/// logits: floating, any dims. targets: the dims of logits (named ones in any order); booleans, or
/// probabilities of logits' dtype. Returns a scalar of logits' dtype. Throws DTypeError or
/// ShapeError for other types.
/// Source: Bishop (2006), eq. 4.90.
Tensor binary_cross_entropy(const Tensor& logits, const Tensor& targets);

/// Returns the mean of (prediction - target)².
///
/// Both are floating, of one dtype and the same dims (named ones in any order; nothing is
/// broadcast). Returns a scalar of their dtype. Throws DTypeError or ShapeError otherwise.
Tensor mean_squared_error(const Tensor& predictions, const Tensor& targets);

}  // namespace reel
