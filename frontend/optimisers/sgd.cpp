#include "reel/frontend/optimisers/sgd.h"

#include "reel/core/ops.h"
#include "reel/frontend/optimisers/step_number.h"

namespace reel::detail {

void check_sgd(const SgdOptions& options) {
  check_below_one("Sgd", "momentum", options.momentum);
  if (options.nesterov && options.momentum == 0)
    throw ArgumentError("Sgd: nesterov needs momentum, which is 0");
}

UpdateRule sgd_rule(const Tensor& learning_rate, const SgdOptions& options) {
  return [nesterov = options.nesterov, momentum = StepNumber(options.momentum),
          rates = GroupRates(learning_rate)](Tensor& p, const Tensor& g, std::span<Tensor> moments,
                                             const LeafOptions& own) mutable {
    Tensor direction = g;
    if (!moments.empty()) {
      Tensor& velocity = moments[0];
      velocity = velocity * momentum.in(p.dtype()) + g;
      direction = nesterov ? g + velocity * momentum.in(p.dtype()) : velocity;
    }
    p = p - direction * rates.of(own, p.dtype());
  };
}

}  // namespace reel::detail
