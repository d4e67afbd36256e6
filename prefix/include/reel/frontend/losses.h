// frontend/losses.h — what models are trained to make small.
//
// Each loss is one number: the mean over everything but the padding of ragged dims, whose gradient
// is exactly 0 whatever is in it. The mean over nothing is 0. ctc_loss has a header of its own.
#pragma once

#include "reel/core/axis.h"
#include "reel/core/tensor.h"

namespace reel {

struct CrossEntropyOptions {
  double label_smoothing = 0;  ///< ε: so much of each target is spread evenly over all classes
};

/// How badly logits predict classes: the mean of -Σ q log softmax(logits) over the positions, in
/// nats, where q is the target.
///
/// logits: floating, [..., classes]. targets: i32 or i64 over the other dims (named ones in any
/// order), the position along `classes` that is right, whose q is 1; or of logits' dtype and dims,
/// q itself, which should add up to 1. With label smoothing q is (1 - ε) q + ε / classes (Szegedy
/// et al. 2016, section 7). -> scalar of logits' dtype. A class with q = 0 does not count, even if
/// its logit is -inf. Throws DTypeError, ShapeError, ArgumentError unless ε is in [0, 1], and
/// IndexError for a target that is no position along `classes`.
Tensor cross_entropy(const Tensor& logits, const Tensor& targets, const Axis& classes,
                     const CrossEntropyOptions& options = {});

/// How badly logits predict what is true or false: the mean of -(t log σ(x) + (1 - t) log(1 -
/// σ(x))) in nats, without overflow or cancellation at large |x|.
///
/// logits: floating, any; targets: booleans, or of logits' dtype, probabilities; the dims of logits
/// (named ones in any order) -> scalar of logits' dtype. Throws DTypeError or ShapeError.
/// Source: Bishop (2006), eq. 4.90.
Tensor binary_cross_entropy(const Tensor& logits, const Tensor& targets);

/// The mean of (prediction - target)².
///
/// Both floating, of one dtype and the same dims (named ones in any order; nothing is broadcast)
/// -> scalar of their dtype. Throws DTypeError or ShapeError.
Tensor mean_squared_error(const Tensor& predictions, const Tensor& targets);

}  // namespace reel
