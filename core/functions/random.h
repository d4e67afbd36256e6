// core/functions/random.h — random draws.
#pragma once

#include <cstdint>

#include "reel/core/base/visibility.h"
#include "reel/core/dims/axis.h"
#include "reel/core/functions/operands.h"
#include "reel/core/types/tensor.h"

REEL_API_BEGIN
namespace reel {

// Draws use the active RandomScope (core/runtime/random.h). They are equal in eager mode, in a
// trace, and when recomputed. Draws for an entry of a ragged dim do not depend on the lengths of
// other entries. All but random_integers throw DTypeError for a dtype other than f32 and f64.

/// Restarts this thread's stream from a seed.
void manual_seed(std::uint64_t seed);
/// Returns the state of this thread's stream, i64[2]: the seed, and how many numbers were taken.
/// Throws TraceError inside a trace.
Tensor random_state();
/// Sets the state of this thread's stream. Throws TraceError inside a trace, ArgumentError if it is
/// no state.
void set_random_state(const Tensor& state);
/// Draws from the standard normal distribution.
Tensor random_normal(const Dims& dims, DType dtype = f32);
/// Draws from [low, high). Throws ArgumentError unless low < high and high - low fits the dtype.
Tensor random_uniform(const Dims& dims, double low = 0, double high = 1, DType dtype = f32);
/// Draws integers from low to high - 1, all equally likely up to (high - low) / 2^53. dtype: i32 or
/// i64. Throws ArgumentError unless low < high, high - low is at most 2^53, and the dtype holds all
/// of them; DTypeError for another dtype.
Tensor random_integers(const Dims& dims, std::int64_t low, std::int64_t high, DType dtype = i32);
/// Draws from a normal distribution, again if further than two stddev from the mean, as TensorFlow
/// does. The standard deviation of the result is 0.8796 stddev. Throws ArgumentError for a negative
/// stddev.
Tensor truncated_normal(const Dims& dims, double mean = 0, double stddev = 1, DType dtype = f32);
/// Returns booleans over dims, true with probability p. p: a number, or a floating tensor that
/// broadcasts to the dims. Throws ArgumentError for a number outside [0, 1]. In a tensor, values
/// above 1 count as 1; negative values and NaN count as 0. Throws ShapeError for other dims.
Tensor bernoulli(const Arg& p, const Dims& dims);
/// Returns indices (i32) along an axis, drawn with probabilities softmax(logits); the axis is
/// dropped. An entry without elements along the axis gives index 0. Throws ArgumentError, naming
/// the entry, if a logit is NaN, or if all logits of an entry are -inf.
Tensor categorical(const Tensor& logits, const Axis& axis);
/// Returns 0, 1, ... size-1 (i32) in random order; all orders are equally likely, being the order
/// of uniform draws of 53 bits. For a ragged dim, permutes the positions of each entry; the result
/// has the dims of the lengths, and the dim.
Tensor permutation(const Dim& dim);

/// Returns x / (1 - rate), or 0 with probability `rate`. Draws for each element, or, if given, once
/// for all elements that have the same positions along `axes`. Rate 0 returns x itself without a
/// draw; rate 1 returns zeros.
///
/// Always drops elements: evaluation code must not call it. Throws ArgumentError for a rate outside
/// [0, 1], DTypeError unless x is floating. Source: Srivastava et al. (2014).
Tensor dropout(const Tensor& x, double rate);
Tensor dropout(const Tensor& x, double rate, const Axes& axes);

}  // namespace reel
REEL_API_END
