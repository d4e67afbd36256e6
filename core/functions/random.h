// core/functions/random.h — draws.
#pragma once

#include <cstdint>

#include "reel/core/axis.h"
#include "reel/core/functions/operands.h"
#include "reel/core/tensor.h"

namespace reel {

// Drawn from the active scope of keys (core/random.h): the same eagerly, traced, and when
// recomputed. What an entry of a ragged dim draws does not depend on how long the others are.

/// Starts the stream of this thread afresh.
void manual_seed(std::uint64_t seed);
/// Where this thread's stream stands, i64[2]: the seed, and how many numbers were taken. Throws
/// TraceError inside a trace.
Tensor random_state();
/// Goes on from there. Throws TraceError inside a trace, ArgumentError when it is no state.
void set_random_state(const Tensor& state);
Tensor random_normal(const Dims& dims, DType dtype = f32);
/// In [low, high).
Tensor random_uniform(const Dims& dims, double low = 0, double high = 1, DType dtype = f32);
/// Normal, but drawn again where it is further than two stddev from the mean, as TensorFlow's. The
/// result's own standard deviation is 0.8796 stddev. Throws ArgumentError for a negative stddev.
Tensor truncated_normal(const Dims& dims, double mean = 0, double stddev = 1, DType dtype = f32);
/// Booleans over dims, true with probability p: a number, or a floating tensor that broadcasts to
/// them. Throws ArgumentError for a number outside [0, 1]; in a tensor more than 1 counts as 1,
/// less than 0 and NaN as 0.
Tensor bernoulli(const Arg& p, const Dims& dims);
/// Indices (i32) along an axis, drawn with probabilities softmax(logits); the axis is dropped.
/// Where an entry has no elements along the axis, the index is 0. Throws ArgumentError, which names
/// the entry, if a logit is NaN, or all of an entry are -inf.
Tensor categorical(const Tensor& logits, const Axis& axis);
/// 0, 1, ... size-1 (i32) in random order, all orders being equally likely: the order of uniform
/// draws of 53 bits. For a ragged dim of the positions of every entry: over the dims of its
/// lengths, and the dim.
Tensor permutation(const Dim& dim);

/// x / (1 - rate), but 0 with probability rate: element by element, or once for all elements that
/// differ along other axes than `axes` only. Rate 0 gives x itself, without a draw, rate 1 zeros.
///
/// Always drops: whoever evaluates a model leaves it out. Throws ArgumentError for a rate outside
/// [0, 1], DTypeError unless x is floating. Source: Srivastava et al. (2014).
Tensor dropout(const Tensor& x, double rate);
Tensor dropout(const Tensor& x, double rate, const Axes& axes);

}  // namespace reel
