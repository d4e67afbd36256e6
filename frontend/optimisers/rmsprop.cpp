#include "reel/frontend/optimisers/rmsprop.h"

#include "reel/core/ops.h"

namespace reel::detail {

void check_rmsprop(const RmsPropOptions& options) {
  check_below_one("RmsProp", "decay", options.decay);
  check_positive("RmsProp", "epsilon", options.epsilon);
  check_below_one("RmsProp", "momentum", options.momentum);
}

UpdateRule rmsprop_rule(const Tensor& learning_rate, const RmsPropOptions& options) {
  return
      [options, rates = GroupRates(learning_rate)](
          Tensor& p, const Tensor& g, std::span<Tensor> moments, const LeafOptions& own) mutable {
        std::size_t next = 0;
        const auto average = [&](Tensor& mean, const Tensor& value) {
          mean = mean * options.decay + value * (1 - options.decay);
        };
        Tensor& squares = moments[next++];
        average(squares, square(g));
        Tensor variance = squares;
        if (options.centered) {
          Tensor& mean = moments[next++];
          average(mean, g);
          // Rounding must not make the variance negative if a gradient hardly varies.
          variance = maximum(squares - square(mean), 0);
        }
        Tensor direction = g / (sqrt(variance) + options.epsilon);
        if (options.momentum > 0) {
          Tensor& velocity = moments[next++];
          velocity = velocity * options.momentum + direction;
          direction = velocity;
        }
        p = p - direction * rates.of(own, p.dtype());
      };
}

}  // namespace reel::detail
