#include "reel/frontend/optimisers/lion.h"

#include <map>

#include "reel/core/ops.h"
#include "reel/frontend/optimisers/step_number.h"

namespace reel::detail {

void check_lion(const LionOptions& options) {
  check_below_one("Lion", "beta1", options.beta1);
  check_below_one("Lion", "beta2", options.beta2);
  check_not_negative("Lion", "weight_decay", options.weight_decay);
}

UpdateRule lion_rule(const Tensor& learning_rate, const LionWeights& options) {
  return [direction = StepAverage(options.beta1), average = StepAverage(options.beta2),
          decays = std::map<double, StepNumber>(),
          rates = GroupRates(learning_rate)](Tensor& p, const Tensor& g, std::span<Tensor> moments,
                                             const LeafOptions& own) mutable {
    const DType dtype = p.dtype();
    Tensor& m = moments[0];
    Tensor change = sign(direction.next(m, g));
    if (own.weight_decay)
      change = change +
               p * decays.try_emplace(own.weight_decay, own.weight_decay).first->second.in(dtype);
    p = p - change * rates.of(own, dtype);
    m = average.next(m, g);
  };
}

}  // namespace reel::detail
