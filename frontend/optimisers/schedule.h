// frontend/optimisers/schedule.h — Schedule, a learning rate as a function of the training step.
#pragma once

#include <cstdint>
#include <vector>

#include "reel/core/base/visibility.h"
#include "reel/core/types/tensor.h"

REEL_API_BEGIN
namespace reel {

/// Options of Schedule::one_cycle. The values are PyTorch's.
struct OneCycleOptions {
  double rise = 0.3;       ///< the share of the steps up to the peak, between 0 and 1
  double start = 1 / 25.;  ///< the first rate, as a share of the peak
  double end = 4e-6;       ///< the last rate, as a share of the peak
};

/// A number as a function of the training step: one or more phases, one after another. The last
/// value of the last phase holds forever.
///
/// Returns a number for a plain step number, and a tensor for a tensor; both agree up to rounding.
/// It works inside a trace too, so a traced training step can compute its own learning rate.
///
///   const auto schedule = Schedule::warm_up(0.01, 500).then(Schedule::cosine(0.01, 0.0001, 9500));
///   adam.set_learning_rate(schedule(adam.step()));
///
/// Steps count from 0, the step of the first update. Steps below 0 count as 0.
class Schedule {
 public:
  /// Returns a linear ramp to `peak`: peak · (t + 1) / steps. Source: Goyal et al. (2017), section
  /// 2.2. Throws ArgumentError unless steps is positive and peak finite; the functions below check
  /// their arguments in the same way.
  static Schedule warm_up(double peak, std::int64_t steps);
  /// Returns half a cosine: to + (from - to) (1 + cos(π t / steps)) / 2. Source: Loshchilov &
  /// Hutter (2017), eq. 5, without restarts.
  static Schedule cosine(double from, double to, std::int64_t steps);
  /// Returns from · factor^(t / steps), without an end. Throws ArgumentError unless factor is
  /// positive.
  static Schedule exponential(double from, double factor, std::int64_t steps);
  /// Returns `value` at every step, without an end.
  static Schedule constant(double value);
  /// Returns `value` for a number of steps, which `then` ends.
  static Schedule constant(double value, std::int64_t steps);
  /// Returns one cycle over a number of steps: half a cosine from start · peak up to the peak,
  /// which step rise · steps - 1 has, and half a cosine down to end · peak, which the last of the
  /// steps has. Source: Smith & Topin (2018); the cosines: PyTorch's OneCycleLR. Throws
  /// ArgumentError unless both halves have steps.
  static Schedule one_cycle(double peak, std::int64_t steps, const OneCycleOptions& options = {});
  /// Returns cosine(from, to, steps) again and again, without an end; each run has `growth` times
  /// the steps of the run before. Source: Loshchilov & Hutter (2017), eq. 5. Throws ArgumentError
  /// unless growth is positive.
  static Schedule cosine_restarts(double from, double to, std::int64_t steps,
                                  std::int64_t growth = 1);

  /// Returns this schedule followed by `next`, which counts steps from the end of this schedule.
  /// Throws ArgumentError if this schedule has no end.
  Schedule then(const Schedule& next) const;

  double operator()(std::int64_t step) const;
  /// Returns an f64 scalar. step: an integer scalar. Throws DTypeError or ShapeError otherwise.
  Tensor operator()(const Tensor& step) const;

 private:
  struct Phase {
    enum class Kind { line, cosine, exponential, constant, restarts } kind;
    double from, to;  ///< for an exponential, `to` is its factor
    std::int64_t steps;
    std::int64_t growth = 1;        ///< of restarts
    const char* endless = nullptr;  ///< "an exponential": the phase without an end, in errors
    template <class T>
    T at(const T& step) const;
    template <class T>
    T since_restart(const T& step) const;
  };
  explicit Schedule(const char* name, const Phase& phase);
  template <class T>
  T at(const T& step) const;

  std::vector<Phase> phases_;
};

}  // namespace reel
REEL_API_END
