#include "reel/frontend/optimisers/adam.h"

#include <algorithm>
#include <vector>

#include "reel/core/ops.h"
#include "reel/frontend/optimisers/step_number.h"

namespace reel::detail {

void check_adam(const char* optimiser, const AdamWOptions& options) {
  check_below_one(optimiser, "beta1", options.beta1);
  check_below_one(optimiser, "beta2", options.beta2);
  check_positive(optimiser, "epsilon", options.epsilon);
  check_not_negative(optimiser, "weight_decay", options.weight_decay);
}

namespace {

/// The scalars of a step for parameters with the same options.
struct GroupScalars {
  LeafOptions options;
  StepScalar rate;  ///< with the correction of the first moment
  StepScalar kept;  ///< the share of a weight that its decay leaves
};

GroupScalars scalars_of(const LeafOptions& options, const Tensor& t, const Tensor& learning_rate,
                        double beta1) {
  const Tensor rate = options.rate == 1 ? learning_rate : learning_rate * options.rate;
  return {options, StepScalar(rate / (1.0 - pow(beta1, t))),
          StepScalar(options.weight_decay ? 1.0 - rate * options.weight_decay : Tensor())};
}

}  // namespace

UpdateRule adam_rule(const Tensor& step, const Tensor& learning_rate, const AdamMoments& options) {
  const Tensor t = cast(step, f64);
  return
      [beta1 = options.beta1, t, learning_rate, first = StepAverage(options.beta1),
       second = StepAverage(options.beta2), epsilon = StepNumber(options.epsilon),
       root = StepScalar(1.0 / sqrt(1.0 - pow(options.beta2, t))),
       groups = std::vector<GroupScalars>()](Tensor& p, const Tensor& g, std::span<Tensor> moments,
                                             const LeafOptions& own) mutable {
        auto of = std::find_if(groups.begin(), groups.end(),
                               [&](const GroupScalars& group) { return group.options == own; });
        if (of == groups.end()) of = groups.insert(of, scalars_of(own, t, learning_rate, beta1));
        Tensor &m = moments[0], &v = moments[1];
        const DType dtype = p.dtype();
        m = first.next(m, g);
        v = second.next(v, square(g));
        if (own.weight_decay) p = p * of->kept.in(dtype);
        p = p - m * of->rate.in(dtype) / (sqrt(v) * root.in(dtype) + epsilon.in(dtype));
      };
}

}  // namespace reel::detail
