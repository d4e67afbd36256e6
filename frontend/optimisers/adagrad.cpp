#include "reel/frontend/optimisers/adagrad.h"

#include "reel/core/ops.h"
#include "reel/core/runtime/memory.h"
#include "reel/frontend/optimisers/step_number.h"

namespace reel::detail {

void check_adagrad(const AdagradOptions& options) {
  check_not_negative("Adagrad", "initial_sum", options.initial_sum);
  check_positive("Adagrad", "epsilon", options.epsilon);
}

TreeLeaves initial_sums(TreeLeaves parameters, double sum) {
  TreeLeaves sums = zero_moments(std::move(parameters));
  if (sum == 0) return sums;
  for (TreeLeaf& leaf : sums) {
    if (!is_floating(leaf)) continue;
    leaf.tensor = leaf.tensor + sum;
    count_as(leaf.tensor, MemoryClass::parameters);
  }
  return sums;
}

UpdateRule adagrad_rule(const Tensor& learning_rate, double epsilon) {
  return
      [epsilon = StepNumber(epsilon), rates = GroupRates(learning_rate)](
          Tensor& p, const Tensor& g, std::span<Tensor> moments, const LeafOptions& own) mutable {
        const DType dtype = p.dtype();
        Tensor& sum = moments[0];
        sum = sum + square(g);
        p = p - g / (sqrt(sum) + epsilon.in(dtype)) * rates.of(own, dtype);
      };
}

}  // namespace reel::detail
