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
double where(bool condition, double a, double b) { return condition ? a : b; }

}  // namespace

template <class T>
T Schedule::Phase::at(const T& step) const {
  const auto length = static_cast<double>(steps);
  switch (kind) {
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
  return Schedule("exponential", {Phase::Kind::exponential, from, factor, steps});
}

Schedule Schedule::then(const Schedule& next) const {
  if (phases_.back().kind == Phase::Kind::exponential)
    throw ArgumentError("Schedule::then: an exponential schedule has no end");
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
