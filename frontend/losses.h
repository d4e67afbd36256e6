// frontend/losses.h — what models are trained to make small.
#pragma once

#include "reel/core/axis.h"
#include "reel/core/tensor.h"

namespace reel {

/// How badly logits predict classes: the mean of -log softmax(logits) at the target, in nats.
///
/// logits: floating, [..., classes]; targets: i32 or i64 over the other dims (named ones in any
/// order), the position along `classes` that is right -> scalar of logits' dtype. Padding of ragged
/// dims does not count, whatever is in it, and its gradient is exactly 0. The mean over nothing is
/// 0. Throws DTypeError, ShapeError, and IndexError for a target that is no position along
/// `classes`.
Tensor cross_entropy(const Tensor& logits, const Tensor& targets, const Axis& classes);

}  // namespace reel
