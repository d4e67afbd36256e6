#include "reel/frontend/optimisers/rmsprop.h"

#include "reel/core/ops.h"
#include "reel/frontend/optimisers/step_number.h"

namespace reel::detail {

void check_rmsprop(const RmsPropOptions& options) {
  check_below_one("RmsProp", "decay", options.decay);
  check_positive("RmsProp", "epsilon", options.epsilon);
  check_below_one("RmsProp", "momentum", options.momentum);
}

UpdateRule rmsprop_rule(const Tensor& learning_rate, const RmsPropOptions& options) {
  return [options, average = StepAverage(options.decay), epsilon = StepNumber(options.epsilon),
          momentum = StepNumber(options.momentum), zero = StepNumber(0),
          rates = GroupRates(learning_rate)](Tensor& p, const Tensor& g, std::span<Tensor> moments,
                                             const LeafOptions& own) mutable {
    std::size_t next = 0;
    const DType dtype = p.dtype();
    Tensor& squares = moments[next++];
    squares = average.next(squares, square(g));
    Tensor variance = squares;
    if (options.centered) {
      Tensor& mean = moments[next++];
      mean = average.next(mean, g);
      // Rounding must not make the variance negative if a gradient hardly varies.
      variance = maximum(squares - square(mean), zero.in(dtype));
    }
    Tensor direction = g / (sqrt(variance) + epsilon.in(dtype));
    if (options.momentum > 0) {
      Tensor& velocity = moments[next++];
      velocity = velocity * momentum.in(dtype) + direction;
      direction = velocity;
    }
    p = p - direction * rates.of(own, dtype);
  };
}

}  // namespace reel::detail
