#include "reel/frontend/optimisers/plateau.h"

#include <cmath>
#include <limits>

#include "reel/core/base/errors.h"
#include "reel/core/base/str.h"
#include "reel/core/ops.h"
#include "reel/frontend/optimisers/optimiser.h"

namespace reel {
namespace {

void check(const Plateau& plateau) {
  detail::check_below_one("Plateau", "factor", plateau.factor);
  if (plateau.relative)
    detail::check_below_one("Plateau", "a relative threshold", plateau.threshold);
  else
    detail::check_not_negative("Plateau", "threshold", plateau.threshold);
  detail::check_not_negative("Plateau", "least", plateau.least);
  detail::check_not_negative("Plateau", "patience", static_cast<double>(plateau.patience));
  detail::check_not_negative("Plateau", "cooldown", static_cast<double>(plateau.cooldown));
}

}  // namespace

Plateau::State Plateau::initial_state(double rate) const {
  check(*this);
  constexpr double kWorst = std::numeric_limits<double>::infinity();
  return {detail::learning_rate_tensor("Plateau", rate),
          scalar(higher_is_better ? -kWorst : kWorst, f64), scalar(0, i64), scalar(0, i64)};
}

std::pair<Tensor, Plateau::State> Plateau::operator()(const Tensor& score,
                                                      const State& state) const {
  check_defined("Plateau", score);
  for (const auto& [name, value] : {std::pair{"rate", &state.rate},
                                    {"best", &state.best},
                                    {"waited", &state.waited},
                                    {"cooldown", &state.cooldown}})
    if (!value->is_defined())
      throw ArgumentError(str("Plateau: state.", name, " is an empty Tensor; make the state with ",
                              "initial_state, and do not use one that was moved"));
  if (score.rank())
    throw ShapeError(str("Plateau: ", score.type(), " is not one number; give it a mean"));
  const Tensor now = cast(score, f64);
  const double sign = higher_is_better ? 1 : -1;
  const Tensor bound =
      relative ? state.best * (1 + sign * threshold) : state.best + sign * threshold;
  const Tensor improves = higher_is_better ? now > bound : now < bound;
  const Tensor is_cooling = state.cooldown > 0;
  const Tensor waited = where(improves || is_cooling, 0, state.waited + 1);
  const Tensor lowers = waited > patience;
  const Tensor rate =
      where(lowers, minimum(state.rate, maximum(state.rate * factor, least)), state.rate);
  return {rate,
          {rate, where(improves, now, state.best), where(lowers, 0, waited),
           where(lowers, cooldown, maximum(state.cooldown - 1, 0))}};
}

std::pair<Tensor, Plateau::State> Plateau::operator()(double score, const State& state) const {
  return (*this)(scalar(score, f64), state);
}

}  // namespace reel
