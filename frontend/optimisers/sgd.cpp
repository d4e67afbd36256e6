#include "reel/frontend/optimisers/sgd.h"

#include <map>

#include "reel/core/ops.h"
#include "reel/frontend/optimisers/step_number.h"

namespace reel::detail {

void check_sgd(const SgdOptions& options) {
  check_below_one("Sgd", "momentum", options.momentum);
  if (options.nesterov && options.momentum == 0)
    throw ArgumentError("Sgd: nesterov needs momentum, which is 0");
  check_not_negative("Sgd", "weight_decay", options.weight_decay);
}

UpdateRule sgd_rule(const Tensor& learning_rate, const SgdOptions& options) {
  return [nesterov = options.nesterov, momentum = StepNumber(options.momentum),
          decays = std::map<double, StepNumber>(), rates = GroupRates(learning_rate)](
             Tensor& p, const Tensor& gradient, std::span<Tensor> moments,
             const LeafOptions& own) mutable {
    Tensor g = gradient;
    if (own.weight_decay)
      g = g +
          p * decays.try_emplace(own.weight_decay, own.weight_decay).first->second.in(p.dtype());
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
