#include "reel/frontend/losses/losses.h"

#include <limits>
#include <string>
#include <string_view>

#include "reel/core/base/errors.h"
#include "reel/core/base/str.h"
#include "reel/core/dims/dim_slices.h"
#include "reel/core/dims/same_name.h"
#include "reel/core/op/op_errors.h"
#include "reel/core/ops.h"
#include "reel/core/ops/indexing/index.h"
#include "reel/core/ops/shape/dims.h"

namespace reel {
namespace {

void check_float(std::string_view loss, std::string_view what, const Tensor& x) {
  check_defined(loss, x);
  if (!is_float(x.dtype()))
    throw DTypeError(str(loss, ": ", what, " must be f32 or f64, got ", x.type(), "; cast them"));
}

/// True if both have the same dims, named ones in any order; sizes that a trace does not know are
/// accepted.
bool fit(const Dims& expected, const Dims& dims) {
  bool fits = expected.size() == dims.size();
  for (std::size_t i = 0; fits && i < dims.size(); ++i) {
    if (dims[i].is_named() || expected[i].is_named())
      fits = dims[i].is_named() && contains(expected, dims[i]);
    else
      fits = dims[i] == expected[i] || !dims[i].has_size() || !expected[i].has_size();
  }
  return fits;
}

void check_same_dims(std::string_view loss, std::string_view what, const TensorType& x,
                     const TensorType& targets) {
  if (!fit(x.dims(), targets.dims()))
    throw ShapeError(str(loss, ": targets must have the dims of ", what, ": ", x, ", targets ",
                         targets, one_dim_hint(x.dims(), targets.dims())));
}

/// Returns the position of the classes among the axes of `logits`. Throws as Axis::in, naming the
/// role of the tensor.
int axis_of_classes(std::string_view function, std::string_view role, const Tensor& logits,
                    const Axis& classes) {
  const Dim* dim = classes.dim();
  if (dim && dim->is_named() && find_axis(logits.dims(), *dim) < 0)
    throw ShapeError(str(function, ": ", role, ' ', logits.type(), " have no dim ", *dim,
                         ", the classes", missing_dim_hint(logits.type(), *dim)));
  return classes.in(logits, function);
}

/// Throws ShapeError unless probabilities of classes have the dims of logits.
void check_probabilities(std::string_view function, const TensorType& logits,
                         const TensorType& targets) {
  if (targets.rank() + 1 == logits.rank())
    throw ShapeError(str(function, ": targets must have the dims of logits where they are ",
                         "probabilities: ", logits, ", targets ", targets,
                         "; numbers of classes are integers: cast(targets, i32)"));
  check_same_dims(function, "logits where they are probabilities", logits, targets);
}

/// Throws ShapeError unless class indices have the dims of logits without the classes.
void check_positions(std::string_view function, const TensorType& logits, const TensorType& targets,
                     int axis) {
  Dims expected = logits.dims();
  expected.erase(expected.begin() + axis);
  if (!fit(expected, targets.dims()))
    throw ShapeError(str(function, ": targets must have the dims of logits but the classes, ",
                         expected, ": logits ", logits, ", classes ",
                         logits.dims()[static_cast<std::size_t>(axis)], ", targets ", targets,
                         one_dim_hint(expected, targets.dims())));
}

/// Returns logits with the classes as the last axis, so that plain targets match the axes in front.
Tensor with_classes_last(const Tensor& logits, int axis) {
  if (logits.type().is_named() || axis == logits.rank() - 1) return logits;
  std::vector<Axis> order;
  for (int i = 0; i < logits.rank(); ++i)
    if (i != axis) order.emplace_back(i);
  order.emplace_back(axis);
  return transpose(logits, order);
}

/// Returns log p of the classes with these indices.
Tensor at_positions(const std::string& function, const Tensor& log_p, const Tensor& targets,
                    int axis) {
  const bool is_named = log_p.type().is_named();
  const int last = log_p.rank() - 1;
  return gather_for(function, with_classes_last(log_p, axis), targets, is_named ? axis : last,
                    {.from_end = false, .batch_dims = is_named ? 0 : last});
}

/// Returns Σ q log p over the classes, with 0 · -inf = 0.
Tensor expected(const Tensor& log_p, const Tensor& q, int axis) {
  const Tensor is_nothing = q == 0 && log_p == -std::numeric_limits<double>::infinity();
  const Tensor product = q * where(is_nothing, 0, log_p);
  return sum(product.type().is_named() ? transpose(product, log_p.dims()) : product, axis);
}

/// Returns the number of classes as a scalar.
Tensor range_size(const Tensor& logits, int axis) {
  const Dim& classes = logits.dims()[static_cast<std::size_t>(axis)];
  return classes.is_named() ? extent_of(classes) : scalar(classes.size(), i64);
}

/// Returns Σ w q log p over the classes, for weights of the classes.
Tensor weighted(const Tensor& log_p, const Tensor& q, const Tensor& weights, int axis) {
  return expected(log_p, q * weights, axis);
}

/// Returns class weights as they broadcast with logits.
Tensor along_classes(const Tensor& weights, const Tensor& logits, int axis) {
  if (logits.type().is_named()) return expand(weights, logits.dims());
  Dims dims(static_cast<std::size_t>(logits.rank()), Dim(1));
  dims[static_cast<std::size_t>(axis)] = weights.dims()[0];
  return expand(reshape(weights, dims), logits.dims());
}

void check_weights(std::string_view function, const Tensor& weights, const Tensor& logits,
                   int axis) {
  const Dim& classes = logits.dims()[static_cast<std::size_t>(axis)];
  if (weights.dtype() != logits.dtype())
    throw DTypeError(str(function, ": class_weights must have the dtype of logits: logits ",
                         logits.type(), ", class_weights ", weights.type()));
  if (!fit({classes}, weights.dims()))
    throw ShapeError(str(function, ": class_weights must have the dim of the classes, ", classes,
                         ", got ", weights.type()));
}

/// Returns the losses of entries as the caller requests them.
Tensor reduced(const Tensor& losses, LossReduction reduction) {
  switch (reduction) {
    case LossReduction::sum:
      return sum(losses);
    case LossReduction::none:
      return mask_padding(losses);
    default:
      return mean(losses);
  }
}

Tensor quotient_or_zero(const Tensor& total, const Tensor& weight) {
  const Tensor is_empty = weight == 0;
  return where(is_empty, 0, total / where(is_empty, 1, weight));
}

/// Returns the cross entropy of class indices with weights: some may not count.
Tensor weighted_by_index(const std::string& function, const Tensor& log_p, const Tensor& targets,
                         int axis, const CrossEntropyOptions& options) {
  const double smoothing = options.label_smoothing;
  const Tensor counts = options.ignore ? targets != *options.ignore : ones(targets.dims(), boolean);
  const Tensor index = where(counts, targets, 0);
  Tensor weight = cast(counts, log_p.dtype());
  if (options.class_weights.is_defined())
    weight = weight * gather_for(function, options.class_weights, index, 0, {.from_end = false});
  const Tensor right = at_positions(function, log_p, index, axis);
  const LossReduction terms =
      options.reduction == LossReduction::none ? LossReduction::none : LossReduction::sum;
  Tensor total = reduced(weight * where(weight == 0, 0, right), terms);
  if (smoothing != 0) {
    const Tensor weights = options.class_weights.is_defined()
                               ? along_classes(options.class_weights, log_p, axis)
                               : ones_like(log_p);
    const Tensor even = mean(log_p * weights, axis);
    total = total * (1 - smoothing) + reduced(where(counts, even, 0), terms) * smoothing;
  }
  if (options.reduction != LossReduction::mean) return 0 - total;
  return quotient_or_zero(0 - total, sum(mask_padding(weight)));
}

}  // namespace

Tensor detail::cross_entropy_as(const std::string& function, const Tensor& logits,
                                const Tensor& targets, const Axis& classes,
                                const CrossEntropyOptions& options) {
  const double smoothing = options.label_smoothing;
  if (!(smoothing >= 0 && smoothing <= 1))
    throw ArgumentError(str(function, ": label_smoothing must be in [0, 1], got ", smoothing));
  check_defined(function, targets);
  check_float(function, "logits", logits);
  if (!is_integer(targets.dtype()) && targets.dtype() != logits.dtype())
    throw DTypeError(str(function,
                         ": targets must be i32 or i64, the positions of the right "
                         "classes, or probabilities of logits' dtype: logits ",
                         logits.type(), ", targets ", targets.type()));
  const int axis = axis_of_classes(function, "logits", logits, classes);
  const bool has_positions = is_integer(targets.dtype());
  if (has_positions)
    check_positions(function, logits.type(), targets.type(), axis);
  else
    check_probabilities(function, logits.type(), targets.type());
  // NaN in padding would spread to its gradient through softmax; mask_padding removes it.
  const Tensor log_p = log_softmax(mask_padding(logits), axis);
  const bool has_weights = options.class_weights.is_defined();
  if (has_weights) check_weights(function, options.class_weights, logits, axis);
  if (options.ignore && !has_positions)
    throw ArgumentError(
        str(function, ": ignore is for class indices, but targets are probabilities"));
  if (has_positions && (options.ignore || has_weights))
    return weighted_by_index(function, log_p, targets, axis, options);
  if (has_weights) {
    const Tensor q = mask_padding(targets) * (1 - smoothing) +
                     smoothing / cast(range_size(logits, axis), logits.dtype());
    return 0 - reduced(weighted(log_p, q, along_classes(options.class_weights, log_p, axis), axis),
                       options.reduction);
  }
  const Tensor right = reduced(has_positions ? at_positions(function, log_p, targets, axis)
                                             : expected(log_p, mask_padding(targets), axis),
                               options.reduction);
  // 0 - x, because -x would return -0 for a loss of 0 (no entries, or certain predictions).
  if (smoothing == 0) return 0 - right;
  return 0 - (right * (1 - smoothing) + reduced(mean(log_p, axis), options.reduction) * smoothing);
}

Tensor detail::logits_of_targets(const std::string& function, const Tensor& logits,
                                 const Tensor& targets, const Axis& classes,
                                 std::optional<std::int64_t> ignore) {
  check_defined(function, targets);
  check_float(function, "logits", logits);
  if (!is_integer(targets.dtype()))
    throw DTypeError(str(function, ": targets must be class indices, got ", targets.type()));
  const int axis = axis_of_classes(function, "logits", logits, classes);
  check_positions(function, logits.type(), targets.type(), axis);
  return at_positions(function, logits, ignore ? where(targets != *ignore, targets, 0) : targets,
                      axis);
}

Tensor cross_entropy(const Tensor& logits, const Tensor& targets, const Axis& classes,
                     const CrossEntropyOptions& options) {
  return detail::cross_entropy_as("cross_entropy", logits, targets, classes, options);
}

Tensor binary_cross_entropy(const Tensor& given_logits, const Tensor& given_targets,
                            LossReduction reduction) {
  check_defined("binary_cross_entropy", given_targets);
  check_float("binary_cross_entropy", "logits", given_logits);
  const DType dtype = given_logits.dtype();
  if (given_targets.dtype() != boolean && given_targets.dtype() != dtype)
    throw DTypeError(
        str("binary_cross_entropy: targets must be booleans, or probabilities of "
            "logits' dtype: logits ",
            given_logits.type(), ", targets ", given_targets.type()));
  check_same_dims("binary_cross_entropy", "logits", given_logits.type(), given_targets.type());
  const Tensor logits = mask_padding(given_logits), t = mask_padding(cast(given_targets, dtype));
  // For infinite logits the loss is (σ(x) - t) x with 0 · inf = 0: such a prediction is right.
  const Tensor is_infinite = isinf(logits), error = where(logits > 0, 1 - t, -t);
  const Tensor x = where(is_infinite, 0, logits);
  const Tensor of_infinite = error * where(is_infinite && error != 0, logits, 0);
  // log(1 + exp x) - t x, with the larger of 1 and exp x moved out of the logarithm. It is a
  // constant to the gradient, in which it cancels, so derivatives of any order are right at x = 0
  // too.
  const Tensor larger = stop_gradient(maximum(x, 0));
  const Tensor a = exp(x - larger), b = exp(-larger), sum = a + b;
  // The rounding error of the sum of 1 and a small number.
  const Tensor lost = stop_gradient(minimum(a, b) - (sum - 1));
  const Tensor of_finite = (larger - t * x) + (log(sum) + lost / sum);
  return reduced(where(is_infinite, of_infinite, of_finite), reduction);
}

namespace {

/// Returns predictions - targets, with zeros in the padding.
Tensor difference(std::string_view loss, const Tensor& predictions, const Tensor& targets) {
  check_defined(loss, targets);
  check_float(loss, "predictions", predictions);
  if (targets.dtype() != predictions.dtype())
    throw DTypeError(str(loss, ": dtypes differ: predictions ", predictions.type(), ", targets ",
                         targets.type(), "; cast one of them"));
  check_same_dims(loss, "predictions", predictions.type(), targets.type());
  return mask_padding(predictions - targets);
}

}  // namespace

Tensor mean_squared_error(const Tensor& predictions, const Tensor& targets,
                          LossReduction reduction) {
  return reduced(square(difference("mean_squared_error", predictions, targets)), reduction);
}

Tensor mean_absolute_error(const Tensor& predictions, const Tensor& targets,
                           LossReduction reduction) {
  return reduced(abs(difference("mean_absolute_error", predictions, targets)), reduction);
}

Tensor huber_loss(const Tensor& predictions, const Tensor& targets, double delta,
                  LossReduction reduction) {
  if (!(delta > 0)) throw ArgumentError(str("huber_loss: delta must be positive, got ", delta));
  const Tensor size = abs(difference("huber_loss", predictions, targets));
  // min(|d|, delta) times the rest: one formula for both parts, finite if d is large.
  const Tensor inner = minimum(size, delta);
  return reduced(inner * (size - inner * 0.5), reduction);
}

Tensor quantile_loss(const Tensor& predictions, const Tensor& targets, double quantile,
                     LossReduction reduction) {
  if (!(quantile > 0 && quantile < 1))
    throw ArgumentError(str("quantile_loss: quantile must be between 0 and 1, got ", quantile));
  const Tensor above = difference("quantile_loss", predictions, targets);
  return reduced(where(above < 0, above * -quantile, above * (1 - quantile)), reduction);
}

Tensor kl_divergence(const Tensor& p_logits, const Tensor& q_logits, const Axis& classes,
                     LossReduction reduction) {
  constexpr std::string_view kName = "kl_divergence";
  check_defined(kName, q_logits);
  check_float(kName, "p_logits", p_logits);
  if (p_logits.dtype() != q_logits.dtype())
    throw DTypeError(str(kName, ": dtypes differ: p_logits ", p_logits.type(), ", q_logits ",
                         q_logits.type(), "; cast one of them"));
  check_same_dims(kName, "p_logits", p_logits.type(), q_logits.type());
  const int axis = axis_of_classes(kName, "p_logits", p_logits, classes);
  const Tensor same = p_logits.type().is_named() && q_logits.dims() != p_logits.dims()
                          ? transpose(q_logits, Axes(p_logits.dims()))
                          : q_logits;
  const Tensor log_p = log_softmax(mask_padding(p_logits), axis),
               log_q = log_softmax(mask_padding(same), axis);
  const Tensor is_nothing = log_p == -std::numeric_limits<double>::infinity();
  const Tensor finite = where(is_nothing, 0, log_p);
  const Tensor terms = where(is_nothing, 0, exp(finite) * (finite - where(is_nothing, 0, log_q)));
  return reduced(sum(terms, axis), reduction);
}

}  // namespace reel
