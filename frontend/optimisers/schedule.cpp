#include "reel/frontend/optimisers/schedule.h"

#include <algorithm>
#include <cmath>

#include "reel/core/base/errors.h"
#include "reel/core/base/str.h"
#include "reel/core/ops.h"

namespace reel {
namespace {

// Functions on numbers with the names of the functions on tensors, so that one template computes
// both.
double minimum(double a, double b) { return std::min(a, b); }
double maximum(double a, double b) { return std::max(a, b); }
double cos(double x) { return std::cos(x); }
double pow(double a, double b) { return std::pow(a, b); }
double log(double x) { return std::log(x); }
double floor(double x) { return std::floor(x); }
double round(double x) { return std::nearbyint(x); }
double where(bool condition, double a, double b) { return condition ? a : b; }

}  // namespace

/// Returns which share of the steps between two restarts is done.
template <class T>
T Schedule::Phase::since_restart(const T& step) const {
  const auto length = static_cast<double>(steps), times = static_cast<double>(growth);
  if (growth == 1) return (step - floor(step / length) * length) / length;
  // Run i begins at steps (growthⁱ - 1) / (growth - 1), a whole number. The logarithm may be
  // rounded to a neighbour of i.
  const auto begin = [&](const T& run) {
    return round(length * (round(pow(times, run)) - 1.0) / (times - 1.0));
  };
  const T guess = floor(log(step * ((times - 1.0) / length) + 1.0) / std::log(times));
  const T lower = where(step < begin(guess), guess - 1.0, guess);
  const T run = where(step < begin(lower + 1.0), lower, lower + 1.0);
  return (step - begin(run)) / (round(pow(times, run)) * length);
}

template <class T>
T Schedule::Phase::at(const T& step) const {
  const auto length = static_cast<double>(steps);
  switch (kind) {
    case Kind::constant:
      return step * 0.0 + from;
    case Kind::restarts:
      return to + (from - to) * (0.5 + 0.5 * cos(since_restart(step) * M_PI));
    case Kind::line:
      return minimum(step + 1.0, length) * (to / length);
    case Kind::cosine:
      return to + (from - to) * (0.5 + 0.5 * cos(minimum(step, length) * (M_PI / length)));
    case Kind::exponential:
      return from * pow(to, step / length);
  }
  return step;
}

template <class T>
T Schedule::at(const T& step) const {
  double begin = 0;
  for (std::size_t i = 0; i + 1 < phases_.size(); ++i)
    begin += static_cast<double>(phases_[i].steps);
  T value = phases_.back().at<T>(maximum(step - begin, 0.0));
  for (std::size_t i = phases_.size() - 1; i-- > 0;) {
    const double end = begin;
    begin -= static_cast<double>(phases_[i].steps);
    value = where(step < end, phases_[i].at<T>(maximum(step - begin, 0.0)), value);
  }
  return value;
}

Schedule::Schedule(const char* name, const Phase& phase) : phases_{phase} {
  if (phase.steps < 1)
    throw ArgumentError(str("Schedule::", name, ": steps must be positive, got ", phase.steps));
  for (const double value : {phase.from, phase.to})
    if (!std::isfinite(value))
      throw ArgumentError(str("Schedule::", name, ": takes finite numbers, got ", value));
}

Schedule Schedule::warm_up(double peak, std::int64_t steps) {
  return Schedule("warm_up", {Phase::Kind::line, 0, peak, steps});
}
Schedule Schedule::cosine(double from, double to, std::int64_t steps) {
  return Schedule("cosine", {Phase::Kind::cosine, from, to, steps});
}
Schedule Schedule::exponential(double from, double factor, std::int64_t steps) {
  if (!(factor > 0))
    throw ArgumentError(str("Schedule::exponential: factor must be positive, got ", factor));
  return Schedule("exponential",
                  {Phase::Kind::exponential, from, factor, steps, 1, "an exponential"});
}
Schedule Schedule::constant(double value) {
  return Schedule("constant", {Phase::Kind::constant, value, value, 1, 1, "a constant"});
}
Schedule Schedule::constant(double value, std::int64_t steps) {
  return Schedule("constant", {Phase::Kind::constant, value, value, steps});
}
Schedule Schedule::cosine_restarts(double from, double to, std::int64_t steps,
                                   std::int64_t growth) {
  if (growth < 1)
    throw ArgumentError(str("Schedule::cosine_restarts: growth must be positive, got ", growth));
  return Schedule("cosine_restarts",
                  {Phase::Kind::restarts, from, to, steps, growth, "a restarting"});
}
Schedule Schedule::one_cycle(double peak, std::int64_t steps, const OneCycleOptions& options) {
  for (const double value : {peak, options.rise, options.start, options.end})
    if (!std::isfinite(value))
      throw ArgumentError(str("Schedule::one_cycle: takes finite numbers, got ", value));
  const double rising = std::round(options.rise * static_cast<double>(steps));
  if (!(rising >= 2 && rising < static_cast<double>(steps)))
    throw ArgumentError(str("Schedule::one_cycle: a rise of ", options.rise, " of ", steps,
                            " steps leaves no step for one half; the rise takes at least 2 steps, "
                            "the fall at least 1"));
  const auto up = static_cast<std::int64_t>(rising);
  // The last step, which has the end of the second cosine, belongs to the cycle: `then` follows it.
  return cosine(options.start * peak, peak, up - 1)
      .then(cosine(peak, options.end * peak, steps - up))
      .then(constant(options.end * peak, 1));
}

Schedule Schedule::then(const Schedule& next) const {
  if (phases_.back().endless)
    throw ArgumentError(str("Schedule::then: ", phases_.back().endless, " schedule has no end"));
  Schedule result = *this;
  result.phases_.insert(result.phases_.end(), next.phases_.begin(), next.phases_.end());
  return result;
}

double Schedule::operator()(std::int64_t step) const { return at(static_cast<double>(step)); }

Tensor Schedule::operator()(const Tensor& step) const {
  if (is_float(step.dtype()) || step.dtype() == boolean)
    throw DTypeError(str("Schedule: a step is an integer scalar, got ", step.type()));
  if (step.rank())
    throw ShapeError(str("Schedule: a step is an integer scalar, got ", step.type()));
  return at(cast(step, f64));
}

}  // namespace reel
