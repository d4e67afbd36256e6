#include "reel/frontend/optimisers/adam.h"

#include "reel/core/ops.h"

namespace reel::detail {

void check_adam(const char* optimiser, const AdamWOptions& options) {
  check_below_one(optimiser, "beta1", options.beta1);
  check_below_one(optimiser, "beta2", options.beta2);
  check_positive(optimiser, "epsilon", options.epsilon);
  check_not_negative(optimiser, "weight_decay", options.weight_decay);
}

UpdateRule adam_rule(const Tensor& step, const Tensor& learning_rate, const AdamWOptions& options) {
  const Tensor t = cast(step, f64);
  return [options, rate = StepScalar(learning_rate / (1.0 - pow(options.beta1, t))),
          root = StepScalar(1.0 / sqrt(1.0 - pow(options.beta2, t))),
          kept = StepScalar(options.weight_decay ? 1.0 - learning_rate * options.weight_decay
                                                 : Tensor())](Tensor& p, const Tensor& g,
                                                              std::span<Tensor> moments) mutable {
    Tensor &m = moments[0], &v = moments[1];
    const DType dtype = p.dtype();
    m = m * options.beta1 + g * (1 - options.beta1);
    v = v * options.beta2 + square(g) * (1 - options.beta2);
    if (options.weight_decay) p = p * kept.in(dtype);
    p = p - m * rate.in(dtype) / (sqrt(v) * root.in(dtype) + options.epsilon);
  };
}

}  // namespace reel::detail
