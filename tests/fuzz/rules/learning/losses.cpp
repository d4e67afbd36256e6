// Rules for losses and metrics. Targets are made from the logits, so that every axis of classes
// fits.
#include "reel/frontend/losses/losses.h"

#include "reel/frontend/losses/metrics.h"
#include "reel/frontend/transforms/scale_gradient.h"
#include "reel/tests/fuzz/program/families.h"
#include "reel/tests/fuzz/program/slices.h"
#include "reel/tests/fuzz/program/typing.h"

namespace reel::fuzz {
namespace {

/// Operand a, and an axis of classes with a size, which is `to` as well. No lengths run over it.
bool of_classes(Drafter& d, Instruction& in) {
  const int a = d.pick([&](int v) {
    return !d.type(v).is_array && d.type(v).element == Element::real && d.rank(v) > 0;
  });
  if (a < 0) return false;
  const int axis = d.pick_axis(a, [](const DimInfo& dim) { return dim.size > 0; });
  if (axis < 0 || !dims_running_over(d.program(), d.type(a).dims, axis).empty()) return false;
  in.axes = {axis};
  in.dims = {d.dim_at(a, axis)};
  return gives(d, in, {a}, {});
}

/// Operands a and b of the same dims; named ones may be in another order.
bool of_pair(Drafter& d, Instruction& in) {
  const int a = d.pick(Element::real);
  if (a < 0) return false;
  const int b = d.pick([&](int v) {
    return !d.type(v).is_array && d.type(v).element == Element::real &&
           same_dims(d.program(), d.type(v).dims, d.type(a).dims);
  });
  return gives(d, in, {a, b}, {});
}

/// Operands a and b of the same dims, and an axis of classes.
bool of_two_distributions(Drafter& d, Instruction& in) {
  if (!of_classes(d, in)) return false;
  const int a = in.inputs[0];
  in.inputs.push_back(d.pick([&](int v) {
    return !d.type(v).is_array && d.type(v).element == Element::real &&
           same_dims(d.program(), d.type(v).dims, d.type(a).dims);
  }));
  return true;
}

}  // namespace

Rules loss_rules() {
  return {
      expression(REEL_EXPRESSION(cross_entropy(a, argmax(cos(3.0 * a), axis), axis)), 3,
                 of_classes),
      expression(REEL_EXPRESSION(cross_entropy(a, argmax(cos(3.0 * a), axis), axis,
                                               {.label_smoothing = 0.25, .ignore = 1})),
                 3, of_classes),
      expression(REEL_EXPRESSION(
                     cross_entropy(a, argmax(cos(3.0 * a), axis) - 1, axis,
                                   {.ignore = -1, .class_weights = 0.5 + cast(range(to), real)})),
                 3, of_classes),
      expression(REEL_EXPRESSION(cross_entropy(
                     a, softmax(sin(a), {axis}), axis,
                     {.label_smoothing = 0.5, .class_weights = 0.5 + cast(range(to), real)})),
                 3, of_classes),
      expression(REEL_EXPRESSION(accuracy(a, argmax(cos(3.0 * a), axis), axis, 0).mean()), 1,
                 of_classes),
      expression(
          REEL_EXPRESSION(perplexity(log_loss(tanh(a), argmax(cos(3.0 * a), axis), axis, 2))), 2,
          of_classes),
      expression(REEL_EXPRESSION(kl_divergence(a, b, axis)), 3, of_two_distributions),
      expression(REEL_EXPRESSION(mean_squared_error(scale_gradient(a, 1.), b)), 2, of_pair),
      expression(REEL_EXPRESSION(mean_absolute_error(a, b)), 3, of_pair),
      expression(
          REEL_EXPRESSION(huber_loss(a, b, 0.5) + quantile_loss(a, b, 0.25, LossReduction::sum)), 3,
          of_pair),
      expression(REEL_EXPRESSION(binary_cross_entropy(a, sigmoid(b))), 2, of_pair),
  };
}

}  // namespace reel::fuzz
